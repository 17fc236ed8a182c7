"""The History tool returns every result that left the view, exactly."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from longhold.core.log import Header, Log
from longhold.core.log.entries import (
    Cleared,
    Collapsed,
    Compacted,
    Redone,
    Replied,
    Snipped,
    Spilled,
    Undone,
)
from longhold.core.messages import Text, ToolUse, text_of
from longhold.core.settings import LogSettings, Settings
from longhold.core.tools.context import ToolContext
from longhold.core.tools.history.history import History
from longhold.core.tools.history.tool import history_tool
from longhold.core.turn.engine import Engine

PAGE_CHARS = 1_000
BODY_LIMIT_BYTES = 1_024

_pieces = st.text(st.sampled_from("ab \n\r\t\x00\u2028é日🙂[]"), max_size=60)
_bodies = st.builds(lambda piece, times: piece * times, _pieces, st.sampled_from((1, 1, 40, 400)))
_shapes = st.tuples(
    st.sampled_from(["spill", "clear", "snip", "collapse", "compact", "undo", "redo"]),
    *[st.integers(0, 60)] * 2,
)
_steps = st.lists(st.one_of(_bodies.map(lambda body: ("run", body)), _shapes), max_size=14)


def shape(engine, kind, a, b):
    """Do something to the view; targets are hit and missed."""
    n = len(engine.view.history)
    a, b = sorted((a % (n + 2), b % (n + 2)))
    id = f"toolu_{a}"
    match kind:
        case "spill":
            engine.record(Spilled(tool_use_id=id, text="preview", file=f"tool-results/{id}.txt"))
        case "clear":
            ids = tuple(f"toolu_{i}" for i in range(a, b))
            engine.record(Cleared(ids=ids, texts=("gone",) * len(ids)))
        case "snip":
            engine.record(Snipped(targets=(a, b)))
        case "collapse":
            engine.record(Collapsed(first=a, last=b, text="a line"))
        case "compact":
            engine.record(Compacted(first=a, last=b, summary=(Text(text="a summary"),)))
        case "undo":
            engine.record(Undone(target=a))
        case "redo":
            engine.record(Redone(target=a))


def play(engine, steps):
    """Run tools and shape the view; give each result by its tool use."""
    bodies = {}
    for step in steps:
        if step[0] == "run":
            id = f"toolu_{len(engine.view.history)}"
            use = ToolUse(id=id, name="Bash", input={"command": "x"})
            engine.record(Replied(response_id=id, content=(use,)))
            engine.take_result(id, step[1])
            bodies[id] = step[1]
        else:
            shape(engine, *step)
    return bodies


async def turned(tool, place, id):
    """Turn every page that the tool gives of a result."""
    asked, pieces = {"id": id}, []
    while True:
        outcome = await tool.run(asked, place)
        assert not outcome.is_error, outcome.content
        body, _, end = text_of(outcome.content).partition("\n")[2].rpartition("\n")
        assert len(body) <= PAGE_CHARS
        pieces.append(body)
        if not end.startswith("[continue with "):
            return "".join(pieces)
        kind, wanted = end.removeprefix("[continue with ").removesuffix("]").split(" ")
        asked = {"id": id, kind: wanted.strip('"')}


@settings(max_examples=min(60, settings.default.max_examples))
@given(_steps)
def test_every_result_comes_back_exactly(steps):
    with tempfile.TemporaryDirectory() as name:
        path, place = (
            Path(name) / "s.jsonl",
            ToolContext(root=Path(name), home=Path(name), scratch=Path(name)),
        )
        limits = Settings(log=LogSettings(body_limit_bytes=BODY_LIMIT_BYTES))
        engine = Engine(Log.create(path, Header(session="s")), limits)
        bodies = play(engine, steps)
        for is_resumed in (False, True):
            if is_resumed:
                engine.close()
                engine = Engine(Log.open(path), limits)
            history = History(
                lambda engine=engine: engine.view.history,
                directory=path.with_suffix(""),
                session="s",
            )
            tool = history_tool(history, window_tokens=lambda: 10 * PAGE_CHARS)
            for id, body in bodies.items():
                assert asyncio.run(turned(tool, place, id)) == body
            history.close()
        engine.close()
