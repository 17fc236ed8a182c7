"""One round by itself: the answer is in the log before its tools run, and every call gets a result."""

import asyncio

import pytest

from longhold.core.log.entries import Began, Ran, Replied
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.models.protocol import Reply
from longhold.core.models.protocol import play as events_of
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome, Tool
from longhold.core.turn.round import (
    NOT_RUN_REFUSED,
    Allowed,
    Denied,
    Played,
    ToolBegan,
    Toolbox,
    ToolRan,
    run_round,
)
from longhold.errors import StoreError, StreamBroken


def tool(name, run, is_safe=True):
    return Tool(
        name=name,
        description=name,
        input_schema={"type": "object"},
        kind="other",
        path_inputs=(),
        command_input="",
        is_read_only=lambda _: is_safe,
        limit_chars=None,
        run=run,
    )


async def echo(given, tool_context):
    return Outcome(content=str(given.get("n")))


def calling(*names, text=""):
    uses = tuple(ToolUse(id=f"t{i}", name=name, input={"n": i}) for i, name in enumerate(names))
    content = (*((Text(text=text),) if text else ()), *uses)
    return Reply(response_id="r", model="m", content=content, stop_reason="tool_use", usage=Usage())


@pytest.fixture
def log():
    return []


@pytest.fixture
def round_of(log, tmp_path):
    """Play a round over events; give what it yields."""
    context = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)

    async def played(events, *tools, record=None, **more):
        box = Toolbox(tools={t.name: t for t in tools}, tool_context=context, **more)

        async def stream():
            for event in events:
                if isinstance(event, Exception):
                    raise event
                yield event

        def keep(entry):
            log.append(entry)
            return entry

        return [event async for event in run_round(stream(), box, record or keep)]

    return played


def kinds(log):
    return [type(entry) for entry in log]


async def test_the_answer_is_written_before_its_tool_begins(round_of, log):
    events = await round_of(events_of(calling("Echo", text="look")), tool("Echo", echo))
    assert kinds(log)[0] is Replied and log[0].content[-1].id == "t0"
    assert kinds(log).index(Began) < kinds(log).index(Ran)
    assert [type(e) for e in events if isinstance(e, ToolBegan | ToolRan | Played)] == [
        ToolBegan,
        ToolRan,
        Played,
    ]


async def test_every_call_gets_one_result_whatever_becomes_of_it(round_of, log):
    async def fails(given, tool_context):
        raise KeyError("odd")

    async def gate(use, tool):
        return Denied(reason="not that") if use.id == "t1" else Allowed(input=use.input)

    names = ("Nothing", "Echo", "Fails", "Echo")
    await round_of(events_of(calling(*names)), tool("Echo", echo), tool("Fails", fails), gate=gate)
    results = {entry.tool_use_id: entry for entry in log if isinstance(entry, Ran)}
    assert sorted(results) == ["t0", "t1", "t2", "t3"]
    assert "There is no tool 'Nothing'" in results["t0"].content
    assert results["t1"].content == "not that"
    assert "Fails failed" in results["t2"].content
    assert (results["t3"].content, results["t3"].is_error) == ("3", False)
    assert [entry.tool_use_id for entry in log if isinstance(entry, Began)] == ["t2", "t3"]


async def test_a_denial_may_end_the_turn(round_of):
    async def gate(use, tool):
        return Denied(reason="no", ends_turn=True)

    *_, played = await round_of(events_of(calling("Echo")), tool("Echo", echo), gate=gate)
    assert played.ends_turn


async def test_a_stream_that_breaks_before_any_call_is_the_callers_to_see(round_of, log):
    with pytest.raises(StreamBroken):
        await round_of([StreamBroken("cut")], tool("Echo", echo))
    assert log == []


async def test_a_stream_that_breaks_after_a_call_ends_the_round_with_what_came(round_of, log):
    events = [*list(events_of(calling("Echo")))[:-1], StreamBroken("cut")]
    *_, played = await round_of(events, tool("Echo", echo))
    assert isinstance(played.error, StreamBroken) and (played.reply, played.results) == (None, 1)
    assert [entry.content for entry in log if isinstance(entry, Ran)] == ["0"]


async def test_a_round_that_is_abandoned_answers_what_ran_and_what_waited(tmp_path, log):
    async def waits(given, tool_context):
        await asyncio.Event().wait()

    box = Toolbox(
        tools={"Slow": tool("Slow", waits, is_safe=False)},
        tool_context=ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path),
    )

    async def stream():
        for event in events_of(calling("Slow", "Slow")):
            yield event

    def keep(entry):
        log.append(entry)
        return entry

    rounds = run_round(stream(), box, keep)
    async for event in rounds:
        if isinstance(event, ToolBegan):
            break
    await rounds.aclose()
    assert sorted(entry.tool_use_id for entry in log if isinstance(entry, Ran)) == ["t0", "t1"]


async def test_a_result_that_cannot_be_written_ends_the_round(round_of):
    def record(entry):
        if isinstance(entry, Ran):
            raise StoreError("the disk is full")
        return entry

    with pytest.raises(StoreError, match="disk is full"):
        await round_of(events_of(calling("Echo")), tool("Echo", echo), record=record)


async def test_after_a_refusal_that_ends_the_turn_nothing_more_of_the_answer_runs(round_of, log):
    asked = []

    async def gate(use, tool):
        asked.append(use.id)
        return Denied(reason="no", ends_turn=True)

    echoes = tool("Echo", echo, is_safe=False)
    await round_of(events_of(calling("Echo", "Echo", "Echo")), echoes, gate=gate)
    results = [entry.content for entry in log if isinstance(entry, Ran)]
    assert asked == ["t0"]
    assert results == ["no", NOT_RUN_REFUSED, NOT_RUN_REFUSED]
