"""Tools that a session gives a program's model: History, and tools declared in place."""

import json

import pytest

from longhold import Session, Tool
from longhold.core.log.entries import Cleared, Compacted, Spilled
from longhold.core.settings import ClearSettings, NotesSettings, Settings, WindowSettings, home
from longhold.errors import InvalidArgument
from seen import of

MODEL = "claude-opus-4-6"
SMALL = Settings(window=WindowSettings(limit_tokens=20_000), clear=ClearSettings(on=False))
LOOKUP = {"name": "lookup", "description": "looks up", "input_schema": {"type": "object"}}
READ_FILE = LOOKUP | {"name": "read_file"}
LONG = "".join(f"row {n}: value {n * n}\n" for n in range(20_000))


def answer(id, *blocks, used=100):
    return {
        "id": id,
        "role": "assistant",
        "model": MODEL,
        "content": list(blocks) or [{"type": "text", "text": "so be it"}],
        "stop_reason": "tool_use" if blocks else "end_turn",
        "usage": {"input_tokens": used, "output_tokens": 2},
    }


def use(id, name="lookup", **given):
    return {"type": "tool_use", "id": id, "name": name, "input": given}


async def looked_up(session, n, text):
    """A turn with one call and its result."""
    session.user(f"task {n}")
    await session.prepare()
    await session.record(answer(f"r{n}", use(f"t{n}"), used=session.fullness().used_tokens))
    session.tool_result(f"t{n}", text)
    request = await session.prepare()
    await session.record(answer(f"e{n}", used=session.fullness().used_tokens))
    return request


@pytest.mark.parametrize("tools", [[LOOKUP], [LOOKUP, READ_FILE]], ids=["none", "a reader"])
@pytest.mark.parametrize("history", [False, True])
async def test_the_model_of_a_program_is_shown_no_path_of_this_machine(tmp_path, tools, history):
    with Session.open(
        model=MODEL, tools=tools, history=history, settings=SMALL, directory=tmp_path
    ) as session:
        sent = [json.dumps((await looked_up(session, 0, LONG)).kwargs)]
        assert of(session, Spilled)
        for n in range(1, 14):
            sent.append(json.dumps((await looked_up(session, n, f"line {n}\n" * 400)).kwargs))
        assert of(session, Compacted)
        await session._layers.notes.wait()
    for text in sent:
        assert str(home()) not in text
        assert ".jsonl" not in text
        assert ("History" in text) == history


async def test_history_opens_a_result_that_was_shortened(tmp_path):
    with Session.open(
        model=MODEL, tools=[LOOKUP], history=True, dialect="openai", directory=tmp_path
    ) as session:
        request = await looked_up(session, 0, LONG)
        assert 'History opens it by id \\"t0\\"' in json.dumps(request.kwargs)
        assert session.tools()[0]["function"]["name"] == "History"
        assert session.tools()[0] in request.kwargs["tools"]
        arguments = '{"id": "t0", "lines": "15000-15001"}'
        call = {
            "id": "c",
            "type": "function",
            "function": {"name": "History", "arguments": arguments},
        }
        assert "row 14999: value 224970001" in await session.run_tool(call)
        item = {"type": "function_call", "call_id": "c", "name": "History", "arguments": arguments}
        assert "row 14999" in await session.run_tool(item)
        block = use("c", "History") | {"input": {"id": "t0", "lines": "15000"}}
        assert "row 14999" in await session.run_tool(block)
        found = await session.run_tool(use("c", "History", query="224970001"))
        assert "records match" in found
        with pytest.raises(InvalidArgument, match="'lookup' is the program's own tool"):
            await session.run_tool(use("c"))
        with pytest.raises(InvalidArgument, match="this is not a tool call"):
            await session.run_tool({"x": 1})


async def test_history_stays_among_the_tools_of_a_followed_list(tmp_path):
    with Session.open(model=MODEL, history=True, directory=tmp_path) as session:
        messages = [{"role": "user", "content": "hi"}]
        first = await session.follow(messages, tools=[LOOKUP])
        again = await session.follow(messages, tools=[LOOKUP, *session.tools()])
        assert [tool["name"] for tool in first.kwargs["tools"]] == ["History", "lookup"]
        assert again.kwargs["tools"] == first.kwargs["tools"]
    with Session.resume(session.id, tools=[LOOKUP]) as resumed:
        assert (await resumed.prepare()).kwargs["tools"] == first.kwargs["tools"]


@pytest.mark.parametrize(
    "tool",
    [
        Tool(LOOKUP, kind="fetch"),
        Tool(LOOKUP, clearable=True),
    ],
    ids=["kind", "clearable"],
)
async def test_old_results_of_a_declared_tool_are_cleared(tmp_path, tool):
    settings = Settings(window=WindowSettings(limit_tokens=32_000), notes=NotesSettings(on=False))
    session = Session.open(model=MODEL, tools=[tool], settings=settings, directory=tmp_path)
    for n in range(4):
        request = await looked_up(session, n, f"line {n} of it\n" * 300)
    assert request.kwargs["tools"] == [LOOKUP]
    session.close()
    with Session.resume(session.id) as again:
        for n in range(4, 14):
            await looked_up(again, n, f"line {n} of it\n" * 300)
        assert of(again, Cleared)


async def test_results_of_an_undeclared_tool_are_never_cleared(tmp_path):
    settings = Settings(window=WindowSettings(limit_tokens=32_000), notes=NotesSettings(on=False))
    with Session.open(
        model=MODEL, tools=[LOOKUP], settings=settings, directory=tmp_path
    ) as session:
        for n in range(14):
            await looked_up(session, n, f"line {n} of it\n" * 300)
        assert not of(session, Cleared)


async def test_a_declared_budget_holds_for_each_result(tmp_path):
    tool = Tool(LOOKUP, limit_chars=2_000)
    with Session.open(model=MODEL, tools=[tool], directory=tmp_path) as session:
        await looked_up(session, 0, "x" * 1_900)
        assert not of(session, Spilled)
        await looked_up(session, 1, "x y " * 900)
        assert of(session, Spilled)
    with Session.resume(session.id) as again:
        await looked_up(again, 2, "z y " * 900)
        assert len(of(again, Spilled)) == 2


async def test_a_cleared_result_is_not_listed_as_in_view(tmp_path):
    with Session.open(model=MODEL, tools=[LOOKUP], history=True, directory=tmp_path) as session:
        for n, text in enumerate(("the needle", "one more needle")):
            await looked_up(session, n, text)
        session._engine.record(Cleared(ids=("t0",), texts=("gone",)))
        found = await session.run_tool(use("h", "History", query="needle"))
    lines = [line for line in found.split("\n") if line.startswith("#")]
    assert ["in view" in line for line in lines] == [False, True]
