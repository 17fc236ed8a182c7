"""Pydantic AI's agents with Longhold as a capability, over HTTP against the simulator."""

import pytest

from bookkeeping import (
    MODEL,
    SYSTEM,
    TOO_LONG,
    TURNS,
    WINDOW,
    Clerk,
    assert_managed,
    break_next,
    entries,
    lookup,
    question,
)
from lazy import LazyModule, needs
from longhold.core.log.entries import Compacted, Said
from longhold.core.messages import text_of
from longhold.simulator import run_simulator
from longhold.simulator.brains import ScriptedBrain

needs("pydantic_ai")
anthropic = LazyModule("anthropic")
kit = LazyModule("pydantic_ai")
exceptions = LazyModule("pydantic_ai.exceptions")
messages = LazyModule("pydantic_ai.messages")
models = LazyModule("pydantic_ai.models.anthropic")
providers = LazyModule("pydantic_ai.providers.anthropic")
adapter = LazyModule("longhold.adapters.pydantic_ai")


@pytest.fixture
async def made():
    """Make agents over a simulator, and close what they hold."""
    held, clients = [], []

    def make(simulator, *, tools=(lookup,), agent=None, **options):
        clients.append(
            anthropic.AsyncAnthropic(base_url=simulator.url, api_key="any", max_retries=0)
        )
        held.append(adapter.LongholdCapability(**{"window": WINDOW} | options))
        model = models.AnthropicModel(
            MODEL, provider=providers.AnthropicProvider(anthropic_client=clients[-1])
        )
        given = {"instructions": SYSTEM} | (agent or {})
        return kit.Agent(model, tools=tools, capabilities=[held[-1]], **given)

    def leave():
        for one in held:
            one.close()

    make.leave = leave
    yield make
    leave()
    for one in clients:
        await one.close()


async def test_a_long_conversation_stays_in_the_window_and_in_the_cache(made):
    with run_simulator(Clerk()) as simulator:
        agent = made(simulator)
        history = []
        for turn in range(TURNS):
            run = await agent.run(question(turn), message_history=history, conversation_id="books")
            history = run.all_messages()
        assert len(history) == TURNS * 4
        assert run.output == f"Turn {TURNS - 1} is in the books."
        assert_managed(simulator, "books")


async def test_a_new_process_goes_on_where_the_history_stands(made):
    saved = b"[]"
    with run_simulator(Clerk()) as simulator:
        for turn in range(TURNS):
            agent = made(simulator)
            run = await agent.run(
                question(turn),
                message_history=kit.ModelMessagesTypeAdapter.validate_json(saved),
                conversation_id=None if turn else "books",
            )
            saved = run.all_messages_json()
            made.leave()
        assert_managed(simulator, "books")


async def test_a_streamed_run_with_a_system_prompt_is_managed_too(made):
    with run_simulator(Clerk()) as simulator:
        agent = made(simulator, agent={"instructions": None, "system_prompt": SYSTEM})
        history = []
        for turn in range(TURNS):
            async with agent.run_stream(
                question(turn), message_history=history, conversation_id="books"
            ) as run:
                await run.get_output()
            history = run.all_messages()
        assert_managed(simulator, "books")


async def test_a_prompt_that_is_too_long_is_made_shorter_and_sent_again(made):
    with run_simulator(Clerk()) as simulator:
        agent = made(simulator, window=0)
        history = []
        for turn in range(5):
            if turn == 4:
                break_next(simulator, TOO_LONG)
            run = await agent.run(question(turn), message_history=history, conversation_id="books")
            history = run.all_messages()
    assert len(entries("books", Compacted)) == 1


async def test_what_cannot_be_helped_is_raised_as_the_program_knows_it(made):
    with run_simulator(Clerk()) as simulator:
        break_next(simulator, "401")
        with pytest.raises(exceptions.ModelHTTPError):
            await made(simulator).run("Hello.")


async def test_the_model_opens_what_left_its_view(made):
    brain = ScriptedBrain('tool: History {"query": "4711"}\n---\ntext: It was 4711.')
    with run_simulator(brain) as simulator:
        agent = made(simulator, tools=(), history=True)
        await agent.run("The number is 4711. What was it?")
    assert "1 records match" in str(brain.requests[-1].messages[-1])


async def test_thinking_goes_back_as_it_came(made):
    brain = ScriptedBrain('think: Hm.\ntool: lookup {"turn": 1}\n---\ntext: Done.')
    thinking = {"anthropic_thinking": {"type": "enabled", "budget_tokens": 2_000}}
    with run_simulator(brain) as simulator:
        await made(simulator).run(question(1), model_settings={**thinking, "max_tokens": 4_000})
    thought, *_ = brain.requests[-1].messages[1]["content"]
    assert thought["type"] == "thinking"
    assert thought["signature"]


async def test_what_has_no_block_of_its_own_passes_as_it_is(made):
    def fussy(turn: int) -> str:
        """Wants an even turn."""
        if turn % 2:
            raise kit.ModelRetry("only even turns")
        return "even"

    brain = ScriptedBrain('tool: fussy {"turn": 1}\n---\ntool: fussy {"turn": 2}\n---\ntext: Done.')
    picture = messages.BinaryContent(data=b"hi", media_type="image/png")
    with run_simulator(brain) as simulator:
        agent = made(simulator, tools=(fussy,))
        await agent.run(["Look at this.", picture], conversation_id="books")
    first, _, retried, *_ = brain.requests[-1].messages
    assert [block["type"] for block in first["content"]] == ["text", "image"]
    assert retried["content"][0]["is_error"]
    assert "only even turns" in str(retried["content"][0]["content"])
    assert text_of(entries("books", Said)[0].content) == "Look at this."


async def test_content_of_other_providers_reaches_the_model_class(made):
    with run_simulator(Clerk()) as simulator, pytest.raises(Exception, match=r"(?i)audio"):
        await made(simulator).run(["Listen.", messages.AudioUrl("https://example.com/a.mp3")])
