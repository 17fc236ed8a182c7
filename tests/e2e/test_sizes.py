"""Sizes and windows at default settings, over HTTP: media, images, output limits, windows."""

import base64

import anthropic
import pytest

from casting import entries
from chat_servers import MODEL, SERVERS, SILENT, WINDOW, serving
from longhold.agent.build import build_agent
from longhold.core.log.entries import Asked, Compacted, Failed, Ran, Replied, Switched
from longhold.core.messages import Usage
from longhold.core.models import open_model
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import Settings
from longhold.core.turn.status import cache_seconds
from longhold.core.view import fold
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, SimulatorSettings, run_simulator
from longhold.simulator.brains import text, tool_use

PDF = base64.b64encode(b"%PDF-1.4" + b"x" * 2_000).decode()
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Recorder:
    """Answers in a word, or as `plan` says, and keeps the requests."""

    def __init__(self, plan=None):
        self.plan, self.seen = plan, []

    def answer(self, request):
        self.seen.append(request)
        return self.plan(request) if self.plan else BrainAnswer(blocks=(text("Yes."),))


def images_in(request):
    return sum(block["type"] == "image" for m in request.messages for block in m["content"])


async def call(session, client):
    request = await session.prepare()
    response = await client.messages.create(**request.kwargs)
    await session.record(response)
    return response


async def test_the_size_of_a_pdf_is_what_the_provider_reports(tmp_path):
    with run_simulator(Recorder(), SimulatorSettings(document_tokens=70_000)) as simulator:
        async with anthropic.AsyncAnthropic(base_url=simulator.url, api_key="pdf") as client:
            session = Session.open(model="claude-haiku-4-5", client=client, directory=tmp_path)
            source = {"type": "base64", "media_type": "application/pdf", "data": PDF}
            ask = {"type": "text", "text": "Summarise it."}
            async with session:
                session.user([{"type": "document", "source": source}, ask])
                for question in ("And then?", "And at last?"):
                    usage = (await call(session, client)).usage
                    real = usage.input_tokens + usage.output_tokens
                    real += usage.cache_read_input_tokens + usage.cache_creation_input_tokens
                    assert session.fullness().used_tokens == pytest.approx(real, rel=0.02)
                    session.user(question)


async def test_the_oldest_images_beyond_the_limit_become_placeholders(tmp_path):
    brain = Recorder()
    with run_simulator(brain, SimulatorSettings(image_tokens=100)) as simulator:
        async with anthropic.AsyncAnthropic(base_url=simulator.url, api_key="img") as client:
            session = Session.open(model="claude-haiku-4-5", client=client, directory=tmp_path)
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            read = []
            async with session:
                for n in range(130):
                    session.user(
                        [{"type": "image", "source": source}, {"type": "text", "text": f"{n}"}]
                    )
                    read.append((await call(session, client)).usage.cache_read_input_tokens)
    counts = [images_in(request) for request in brain.seen]
    assert counts[99:102] == [100, 76, 77]
    assert max(counts) == 100
    last = brain.seen[-1].messages
    assert last[0]["content"][0] == {"type": "text", "text": "[image]"}
    assert last[-1]["content"][0]["type"] == "image"
    # The prefix moves only when a step is left out, at the 101st and at the 126th image.
    assert [n for n in range(60, 130) if read[n] < read[n - 1]] == [100, 125]


async def test_a_cut_off_answer_is_asked_for_again_within_the_window(tmp_path):
    words = "anchor beam cleat davit fender " * 1_800

    brain = Recorder(lambda request: BrainAnswer(blocks=(text(words),)))
    with run_simulator(brain) as simulator:
        model = open_model("claude-sonnet-4", base_url=simulator.url, api_key="x")
        agent = await build_agent(model, directory=tmp_path, mode="bypass", settings=Settings())
        async for _ in agent.run("Write it all: " + "anchor beam cleat davit " * 23_500):
            pass
        used = agent.engine.fullness().used_tokens
        failed = [one.error for one in entries(agent, Failed) if one.what == "model"]
        compacted = entries(agent, Compacted)
        await agent.close()
    asked = [request.max_tokens for request in brain.seen]
    assert used > 136_000
    assert failed == []
    assert compacted == []
    assert 8_000 < max(asked) < 64_000


def local(name, window):
    overrides = {"family": "local", "window_tokens": window, "max_output_tokens": window // 4}
    return ScriptedModel("text: hi", name=name, overrides=overrides)


@pytest.mark.parametrize(
    ("model", "window"),
    [
        (local("local/smollm2", 8_192), 8_192),
        (local("qwen2.5-coder", 32_768), 32_768),
        (local("claude-opus-5", 50_000), 50_000),
    ],
)
async def test_an_agent_takes_the_window_of_its_model_object(model, window, tmp_path):
    agent = await build_agent(model, directory=tmp_path, settings=Settings())
    assert agent.engine.fullness().window.limit_tokens == window
    await agent.use_model(ScriptedModel("text: hi", name="claude-opus-5"), "another")
    assert agent.engine.fullness().window.limit_tokens == 1_000_000
    await agent.use_model(local("qwen2.5-coder", 32_768), "back")
    assert agent.engine.fullness().window.limit_tokens == 32_768
    assert not any("is unknown" in line for line in agent.notices.take())
    await agent.close()


async def test_an_agent_asks_the_server_for_the_window_of_an_unknown_model(tmp_path):
    with serving(SERVERS["vllm"]) as (url, _):
        model = open_model(f"openai/{MODEL}", base_url=url, api_key="x")
        agent = await build_agent(model, directory=tmp_path, settings=Settings())
        assert agent.engine.fullness().window.limit_tokens == WINDOW
        await agent.close()


async def test_an_agent_says_that_it_guesses_a_window(tmp_path):
    with serving(SILENT) as (url, _):
        model = open_model(MODEL, base_url=url, api_key="x")
        agent = await build_agent(model, directory=tmp_path, settings=Settings())
        said = agent.notices.take()
        assert agent.engine.fullness().window.limit_tokens == 200_000
        await agent.close()
    assert [line for line in said if "'qwen3-8b' is unknown" in line and "200,000" in line]


async def test_a_program_that_switches_models_gets_the_window_of_each(tmp_path):
    model = local("qwen2.5-coder", 32_768)
    with Session.open(model=model.name, client=model, directory=tmp_path) as session:
        session.user("hi")
        await session.prepare()
        assert session.fullness().window.limit_tokens == 32_768
        session.switch("claude-opus-5")
        await session.prepare()
        assert session.fullness().window.limit_tokens == 1_000_000
    with Session.resume(session.id) as again:
        assert again.fullness().window.limit_tokens == 1_000_000


async def test_a_page_of_read_fits_a_small_window(tmp_path):
    lines = [f"value_{n} = compute({n}, 'anchor beam cleat davit')" for n in range(1_500)]
    (tmp_path / "big.py").write_text("\n".join(lines) + "\n")

    def plan(request):
        if request.messages[-1]["content"][-1]["type"] == "tool_result":
            return BrainAnswer(blocks=(text("I have read it."),))
        return BrainAnswer(blocks=(tool_use("Read", {"file_path": "big.py"}),))

    with run_simulator(Recorder(plan), SimulatorSettings(accepts_unknown_models=True)) as simulator:
        overrides = {"window_tokens": 32_768, "max_output_tokens": 8_192}
        model = open_model(
            "qwen2.5-coder", base_url=f"{simulator.url}/v1", api_key="x", overrides=overrides
        )
        agent = await build_agent(model, directory=tmp_path, mode="bypass", settings=Settings())
        async for _ in agent.run("What is in big.py?"):
            pass
        [ran] = entries(agent, Ran)
        compacted = entries(agent, Compacted)
        await agent.close()
    assert "continue with offset" in str(ran.content)
    assert 5_000 < len(str(ran.content)) < 20_000
    assert compacted == []


@pytest.mark.parametrize(
    ("model", "lifetime", "left"),
    [("claude-opus-5", "5m", 180), ("claude-opus-5", "1h", 3_480), ("gpt-6-sol", "1h", 1_680)],
)
def test_the_countdown_runs_from_the_request_with_the_lifetime_of_the_provider(
    model, lifetime, left
):
    answer = Replied(
        n=3,
        at=1_120.0,
        response_id="a",
        content=(),
        model=model,
        usage=Usage(input_tokens=10, cache_read_tokens=90_000, output_tokens=2_000),
    )
    view = fold([Switched(n=1, model=model), Asked(n=2, at=1_000.0), answer])
    assert cache_seconds(view, lifetime, 1_120.0) == left


@pytest.mark.parametrize(("days", "lifetime"), [(0, "5m"), (2, "1h")])
async def test_a_resumed_session_gets_the_lifetime_of_a_chat_once_its_cache_is_dead(
    tmp_path, days, lifetime
):
    model = ScriptedModel("text: hi\n---\ntext: hi", name="claude-opus-5")
    first = await build_agent(model, directory=tmp_path, source="run", clock=lambda: 1_000.0)
    async for _ in first.run("hello"):
        pass
    await first.close()
    later = 1_000.0 + days * 86_400
    again = await build_agent(
        model,
        directory=tmp_path,
        resume=first.engine.log.header.session,
        source="chat",
        clock=lambda: later,
    )
    assert again.engine.frame.lifetime == lifetime
    await again.close()
