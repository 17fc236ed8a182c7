"""The loop: every reason to continue and to stop, and no endless loop."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casting import idle, until
from longhold.agent.agent import budget_in
from longhold.core.log.entries import Failed, Ran, Replied, Said, Snipped, Switched
from longhold.core.log.spending import Budget
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import BudgetSettings, LoopSettings, Settings, WindowSettings
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome, Tool
from longhold.core.turn.answering import Models
from longhold.core.turn.loop import Continued, Loop, Stopped, StopVerdict
from longhold.core.turn.round import Allowed, Denied, ToolBegan, Toolbox, ToolRan
from longhold.errors import ModelError, StoreError
from longhold.session.session import Session

MODEL = "claude-opus-4-6"


def tool(name, run, *, kind="read", is_safe=True):
    """Declare a tool of a test."""
    return Tool(
        name=name,
        description=name,
        input_schema={"type": "object"},
        kind=kind,
        path_inputs=(),
        command_input="",
        is_read_only=lambda _: is_safe,
        limit_chars=None,
        run=run,
    )


async def _echo(given, tool_context):
    return Outcome(content=f"echo {given}")


ECHO = tool("Echo", _echo)


class Bench:
    """A session with a scripted model and a few tools."""

    def __init__(
        self, directory: Path, script: str, *, tools=(ECHO,), settings=None, fallback=None, **more
    ):
        settings = settings or Settings()
        self.session = Session.open(
            model=MODEL,
            system="a test",
            tools=[t.definition() for t in tools],
            directory=directory,
            settings=settings,
        )
        tool_context = ToolContext(root=directory, home=directory, scratch=directory)
        gate = more.pop("gate", None)
        self.budget_tokens = more.pop("budget_tokens", 0)
        box = Toolbox(tools={t.name: t for t in tools}, tool_context=tool_context)
        if gate:
            box = Toolbox(tools=box.tools, tool_context=tool_context, gate=gate)
        self.loop = Loop(
            engine=self.session._engine,
            models=Models(
                ScriptedModel(script, name=MODEL),
                ScriptedModel(fallback, name="claude-sonnet-4-6") if fallback else None,
            ),
            toolbox=box,
            settings=settings.loop,
            budget=Budget(settings.budget),
            stages=self.session._layers.stages,
            after_turn=self.session._layers.after_turn,
            sleep=_no_sleep,
            **more,
        )
        self.events = []

    async def run(self, prompt="go"):
        if prompt:
            self.session.user(prompt)
        async for event in self.loop.run(self.budget_tokens):
            self.events.append(event)
        assert violations(self.session.view.messages()) == []
        return self.events[-1]

    @property
    def reasons(self):
        return [event.reason for event in self.events if isinstance(event, Continued)]

    def entries(self, kind):
        return [entry for entry in self.session.view.history if isinstance(entry, kind)]


async def _no_sleep(seconds):
    await asyncio.sleep(0)


@pytest.fixture
def bench(tmp_path):
    """Make benches, and close their sessions."""
    made = []

    def make(script, **options):
        made.append(Bench(tmp_path, script, **options))
        return made[-1]

    yield make
    for one in made:
        one.session.close()


async def test_an_answer_without_tools_completes(bench):
    assert await bench("text: all done").run() == Stopped(reason="completed", text="all done")


async def test_what_the_user_says_is_in_the_log_before_anything_is_sent(bench):
    one = bench("error: 400 no")
    end = await one.run("remember me")
    assert end.reason == "model_error"
    assert [text_of(entry.content) for entry in one.entries(Said)] == ["remember me"]


async def test_tools_run_and_the_next_turn_follows(bench):
    has_ended = asyncio.Event()

    async def slow(given, tool_context):
        if given["p"] == 1:
            await has_ended.wait()
        has_ended.set()
        return Outcome(content=str(given["p"]))

    one = bench(
        'tool: Slow {"p": 1}\ntool: Slow {"p": 2}\n---\ntext: done', tools=(tool("Slow", slow),)
    )
    assert (await one.run()).reason == "completed"
    assert one.reasons == ["next_turn"]
    results = one.session.view.messages()[2].content
    assert [result.content for result in results] == ["1", "2"]


async def test_safe_tools_run_together_and_unsafe_ones_alone(bench):
    running, most = set(), []

    def make(name, is_safe):
        async def run(given, tool_context):
            running.add(name + str(given["n"]))
            most.append(frozenset(running))
            await idle()
            running.discard(name + str(given["n"]))
            return Outcome(content="ok")

        return tool(name, run, is_safe=is_safe)

    calls = "\n".join(
        f'tool: {name} {{"n": {i}}}'
        for i, name in enumerate(["Safe", "Safe", "Risky", "Safe", "Risky"])
    )
    one = bench(f"{calls}\n---\ntext: done", tools=(make("Safe", True), make("Risky", False)))
    await one.run()
    assert any(len(group) == 2 for group in most)
    assert all(len(group) == 1 for group in most if any(name.startswith("Risky") for name in group))


async def test_a_cut_answer_is_asked_for_again_with_more_room_and_then_resumed(bench):
    one = bench("\n---\n".join(["text: a piece\nstop: max_tokens"] * 5))
    end = await one.run()
    assert one.reasons == ["output_escalated", "output_resumed", "output_resumed", "output_resumed"]
    assert end.reason == "cut_off"
    assert len(one.entries(Replied)) == 5
    assert len(one.entries(Snipped)) == 1


async def test_an_overflow_is_recovered_from_once(bench):
    tried = []

    async def recover(error: ModelError) -> bool:
        tried.append(error)
        return True

    script = "error: too-long 250000 200000\n---\n"
    one = bench(script + "text: fine", recover=recover)
    assert (await one.run()).reason == "completed"
    assert one.reasons == ["overflow_recovered"]
    two = bench(script * 2 + "text: fine", recover=recover)
    assert (await two.run()).reason == "prompt_too_long"
    assert len(tried) == 2


async def test_an_overload_passes_to_the_fallback_model(bench):
    one = bench("\n---\n".join(["error: 529"] * 12), fallback="text: I can")
    end = await one.run()
    assert (end.reason, end.text) == ("completed", "I can")
    assert one.reasons == ["model_switched"]
    assert [entry.model for entry in one.entries(Switched)] == [MODEL, "claude-sonnet-4-6"]


async def test_stop_hooks_keep_it_going_up_to_a_cap(bench):
    async def insist(text, is_active):
        return StopVerdict(blocks=("not yet",))

    one = bench("\n---\n".join(["text: done"] * 20), on_stop=insist)
    assert (await one.run()).reason == "completed"
    assert one.reasons == ["stop_hook"] * 8


async def test_a_stop_hook_can_end_it(bench):
    async def prevent(text, is_active):
        return StopVerdict(prevents="enough")

    end = await bench("text: done", on_stop=prevent).run()
    assert (end.reason, end.detail) == ("hook_stopped", "enough")


async def test_a_token_budget_asks_for_more_until_answers_fade(bench):
    one = bench("\n---\n".join(["text: a little"] * 20), budget_tokens=1_000_000)
    assert (await one.run()).reason == "completed"
    assert one.reasons == ["budget"] * 3


async def test_turns_money_and_the_window_have_limits(bench):
    script = "\n---\n".join(['tool: Echo {"a": 1}'] * 9)
    assert (
        await bench(script, settings=Settings(loop=LoopSettings(max_turns=3))).run()
    ).reason == "max_turns"
    end = await bench(script, settings=Settings(budget=BudgetSettings(max_tokens=200))).run()
    assert end.reason == "budget_spent"
    assert "tokens is reached" in end.detail
    small = Settings(window=WindowSettings(limit_tokens=50, auto=False))
    assert (await bench(script, settings=small).run("word " * 400)).reason == "blocking_limit"


async def test_what_cannot_be_compacted_away_ends_the_run_item_by_item(bench):
    one = bench("text: never", settings=Settings(window=WindowSettings(limit_tokens=50)))
    end = await one.run("word " * 400)
    assert end.reason == "context_overflow"
    assert "not answered yet" in end.detail
    assert one.loop.models.current().requests == []


async def test_a_denial_can_end_the_turn(bench):
    async def gate(use, tool):
        return Denied(reason="the user said no", ends_turn=True)

    one = bench('tool: Echo {"a": 1}\n---\ntext: never', gate=gate)
    assert (await one.run()).reason == "denied"
    assert [entry.content for entry in one.entries(Ran)] == ["the user said no"]


async def test_a_gate_can_change_the_input(bench):
    async def gate(use, tool):
        return Allowed(input={"a": 2})

    one = bench('tool: Echo {"a": 1}\n---\ntext: done', gate=gate)
    await one.run()
    assert one.entries(Ran)[0].content == "echo {'a': 2}"


@pytest.mark.parametrize("wait", ["tool", "model"])
async def test_an_abort_stops_at_once_and_leaves_nothing_open(bench, wait):
    async def hang(given, tool_context):
        await asyncio.sleep(60)
        return Outcome(content="never")

    script = (
        'tool: Hang {"a": 1}\n---\ntext: x' if wait == "tool" else "text: begin\nerror: stalled"
    )
    one = bench(script, tools=(tool("Hang", hang),))
    asyncio.get_running_loop().call_later(0.05, one.loop.abort.set)
    end = await asyncio.wait_for(one.run(), 5)
    assert end.reason == ("aborted_tools" if wait == "tool" else "aborted_streaming")
    assert one.session.view.open_round() is None


async def test_a_failing_command_stops_what_was_asked_for_beside_it(bench):
    async def fail(given, tool_context):
        return Outcome(content="exit 1", is_error=True, exit_status=1)

    async def hang(given, tool_context):
        await asyncio.sleep(60)
        return Outcome(content="never")

    one = bench(
        "tool: Shell {}\ntool: Hang {}\n---\ntext: done",
        tools=(tool("Shell", fail, kind="shell"), tool("Hang", hang)),
    )
    assert (await asyncio.wait_for(one.run(), 5)).reason == "completed"
    assert "an earlier command of the same answer failed" in one.entries(Ran)[1].content


async def test_unknown_tools_and_tools_with_bugs_are_results(bench):
    async def buggy(given, tool_context):
        raise ZeroDivisionError("oops")

    one = bench("tool: Nope {}\ntool: Buggy {}\n---\ntext: done", tools=(tool("Buggy", buggy),))
    assert (await one.run()).reason == "completed"
    ran = one.entries(Ran)
    assert "There is no tool 'Nope'" in ran[0].content
    assert "ZeroDivisionError" in ran[1].content


async def test_a_stream_that_breaks_after_a_tool_call_goes_on_with_its_result(bench):
    one = bench('tool: Echo {"a": 1}\nerror: broken\n---\ntext: done')
    assert (await one.run()).reason == "completed"
    assert sum(isinstance(event, ToolRan) for event in one.events) == 1
    assert one.entries(Failed)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("+500k fix it", 500_000),
        ("use 2M tokens", 2_000_000),
        ("Use 2 B-trees here", 0),
        ("use 3 m of rope", 0),
        ("spend 1.5m tokens now", 1_500_000),
        ("I use 2 forks", 0),
        ("it should not use 2m tokens", 0),
        ("", 0),
    ],
)
def test_a_token_budget_is_read_from_what_the_user_says(text, tokens):
    assert budget_in(text) == tokens


ANSWERS = st.sampled_from(
    [
        "text: words",
        "text: words\nstop: max_tokens",
        'tool: Echo {"a": 1}',
        'tool: Echo {"a": 1}\ntool: Nope {}',
        'tool: Echo {"a": 1}\nerror: broken',
        "think: hm",
        "error: 529",
        "error: 500",
        "error: 400 bad",
        "error: too-long 300000 200000",
        "error: broken",
        "text: half\nerror: broken",
    ]
)


@given(st.lists(ANSWERS, min_size=1, max_size=30), st.booleans(), st.booleans())
async def test_no_script_of_answers_keeps_the_loop_going_for_ever(
    tmp_path_factory, answers, insists, recovers
):
    async def insist(text, is_active):
        return StopVerdict(blocks=("go on",) if insists else ())

    async def recover(error):
        return recovers

    one = Bench(
        tmp_path_factory.mktemp("any"),
        "\n---\n".join(answers),
        on_stop=insist,
        recover=recover,
        fallback="text: fallback",
        budget_tokens=50_000,
    )
    end = await asyncio.wait_for(one.run(), 20)
    assert isinstance(end, Stopped)
    assert len(one.reasons) < 200
    one.session.close()


async def test_a_call_stopped_before_it_began_still_has_a_result(bench):
    async def fail(given, tool_context):
        return Outcome(content="exit 1", is_error=True, exit_status=1)

    shell = tool("Shell", fail, kind="shell")
    one = bench(
        "tool: Shell {}\ntool: Echo {}\ntool: Echo {}\n---\ntext: done", tools=(shell, ECHO)
    )
    assert (await asyncio.wait_for(one.run(), 5)).reason == "completed"
    assert len(one.entries(Ran)) == 3


async def test_a_denied_command_stops_nobody_else(bench):
    async def gate(use, tool):
        return Denied(reason="no") if use.name == "Shell" else Allowed(input=use.input)

    shell = tool("Shell", _echo, kind="shell")
    one = bench(
        'tool: Shell {}\ntool: Echo {"a": 1}\n---\ntext: done', tools=(shell, ECHO), gate=gate
    )
    await one.run()
    assert [entry.content for entry in one.entries(Ran)] == ["no", "echo {'a': 1}"]


async def test_a_result_that_cannot_be_written_ends_the_run_with_the_disks_word(bench):
    async def fill(given, tool_context):
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, one.session._engine.log._descriptor)
        os.close(full)
        return Outcome(content="done")

    one = bench("tool: Fill {}\n---\ntext: done", tools=(tool("Fill", fill),))
    with pytest.raises(StoreError, match="free some space"):
        await asyncio.wait_for(one.run(), 5)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("text: no\nstop: refusal", "refused"),
        ("stop: refusal", "refused"),
        ("text: full\nstop: model_context_window_exceeded", "prompt_too_long"),
        ("text: half\nstop: pause_turn\n---\ntext: whole", "completed"),
        ("\n---\n".join(["stop: end_turn"] * 9), "empty"),
    ],
)
async def test_why_an_answer_stopped_is_told_apart(bench, script, reason):
    assert (await bench(script).run()).reason == reason


async def test_leaving_a_run_early_leaves_nothing_running(bench):
    async def hang(given, tool_context):
        await asyncio.sleep(60)
        return Outcome(content="never")

    one = bench("tool: Hang {}\n---\ntext: x", tools=(tool("Hang", hang),))
    one.session.user("go")
    events = one.loop.run()
    async for event in events:
        if isinstance(event, ToolBegan):
            break
    await events.aclose()
    assert one.session.view.open_round() is None


async def test_an_answer_counts_as_soon_as_it_ended_while_its_tools_still_run(bench):
    seen = []

    async def look(given, tool_context):
        await until(lambda: one.loop.budget.session.calls)  # the answer that called this ended
        seen.append((one.loop.budget.session.calls, one.session._engine.prefix()))
        one.loop.abort.set()
        await asyncio.sleep(60)

    one = bench("tool: Look {}", tools=(tool("Look", look),))
    assert (await asyncio.wait_for(one.run(), 5)).reason == "aborted_tools"
    ((answers, prefix),) = seen
    assert answers == 1
    assert (prefix.cached_to, prefix.is_whole) == ((0, 0), True)


async def test_answers_that_break_after_every_tool_call_are_counted_and_waited_for(bench):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    broken = 'tool: Echo {"n": 1}\nerror: broken'
    one = bench("\n---\n".join([broken] * 40))
    one.loop = replace(one.loop, sleep=sleep)
    end = await one.run()
    assert end.reason == "model_error"
    assert len(one.entries(Failed)) == one.loop.retries.attempts
    assert len(waits) == one.loop.retries.attempts - 1
    assert sum(waits) > 20


async def test_a_broken_answer_now_and_then_does_not_end_a_run(bench):
    pair = 'tool: Echo {"n": 1}\nerror: broken\n---\ntool: Echo {"n": 2}'
    end = await bench("\n---\n".join([pair] * 12 + ["text: done"])).run()
    assert (end.reason, end.text) == ("completed", "done")


@pytest.mark.parametrize(("times", "reason"), [(10, "completed"), (11, "model_error")])
async def test_the_same_failing_call_over_and_over_ends_the_run(bench, times, reason):
    script = "\n---\n".join(['tool: Nothing {"INVALID_JSON": "{"}'] * times + ["text: done"])
    end = await bench(script).run()
    assert end.reason == reason
