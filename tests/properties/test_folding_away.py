"""Snip and collapse on any session: never larger, never invalid, never twice."""

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longhold.core.log import Header, Log
from longhold.core.log.entries import (
    Cleared,
    Collapsed,
    Compacted,
    Pinned,
    Redone,
    Replied,
    Snipped,
    Switched,
    Undone,
    ViewChange,
)
from longhold.core.messages import Text, Thinking, ToolUse
from longhold.core.messages.rules import violations
from longhold.core.policy import decide
from longhold.core.settings import CollapseSettings, Settings, WindowSettings
from longhold.core.stages import collapse
from longhold.core.stages.collapse import drain
from longhold.core.stages.layers import Collapsing
from longhold.core.stages.snip import Snip, drop
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import ForkReply
from longhold.core.view import fold
from longhold.core.view.tokens import default_weights, weigh
from longhold.errors import NotInHistory

MODELS = ("claude-opus-4-6", "claude-sonnet-5-5", "claude-sonnet-4-5")
FULL = Settings(
    window=WindowSettings(limit_tokens=3_000),
    collapse=CollapseSettings(on=True, target_ratio=0.0),
)
"""A window so small that there is always something to fold."""


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    monkeypatch.setattr(decide, "COMMIT_RATIO", 0.1)
    monkeypatch.setattr(decide, "WRITE_RATIO", 0.3)
    monkeypatch.setattr(collapse, "LEAST_TOKENS", 0)


_numbers = st.integers(0, 60)
_sizes = st.tuples(st.integers(1, 4), st.sampled_from((2, 60, 900)), st.booleans())
_turns = _sizes.map(lambda sizes: [("say", False), ("work", *sizes), ("answer", 1 + sizes[1] // 3)])
_single = st.one_of(
    st.tuples(st.just("say"), st.booleans()),
    _sizes.map(lambda sizes: ("work", *sizes)),
    st.tuples(st.sampled_from(["drop", "drop", "pin", "undo", "redo"]), _numbers),
    st.tuples(st.sampled_from(["clear", "compact"]), _numbers, _numbers),
    st.tuples(st.sampled_from(["stages", "drain"])),
).map(lambda step: [step])
_steps = st.lists(st.one_of(_turns, _turns, _single, _single), min_size=3, max_size=12).map(
    lambda groups: [step for group in groups for step in group] + [("say", False)]
)


async def written(request):
    """Answer a fork with a line for everything it could ask for."""
    text = "\n".join(f"{i}: done" for i in range(1, 60))
    return ForkReply(
        text=text,
        content=(Text(text=text),),
        stop_reason="end_turn",
        reason="completed",
        turns=1,
        calls=(),
        seconds=0.0,
    )


def step(engine, kind, *given):
    """Let one thing happen; targets are hit and missed."""
    history = engine.view.history
    shaped = [entry.n for entry in history if isinstance(entry, ViewChange)] or [0]
    match kind, given:
        case "say", (hidden,):
            engine.say("please go on", hidden=hidden)
        case "work", (count, words, thought):
            work(engine, count, words, thought)
        case "answer", (words,):
            content = (Text(text="so it is " * words),)
            engine.record(Replied(response_id=f"r{len(history)}", content=content))
        case "drop", (n,):
            with suppress(NotInHistory):
                items = engine.view.items
                chosen = items[n % len(items)].id if items else n
                drop(engine, [chosen], by="tool" if n % 2 else "user")
        case "pin", (n,):
            engine.record(Pinned(targets=(n % (len(history) + 1),)))
        case "undo", (n,):
            engine.record(Undone(target=shaped[n % len(shaped)]))
        case "redo", (n,):
            engine.record(Redone(target=shaped[n % len(shaped)]))
        case "clear", (a, b):
            ids = tuple(f"t{i}" for i in range(min(a, b), max(a, b)))
            engine.record(Cleared(ids=ids, texts=("gone",) * len(ids)))
        case "compact", (a, b):
            first, last = sorted((a % (len(history) + 1), b % (len(history) + 1)))
            engine.record(Compacted(first=first, last=last, summary=(Text(text="a summary"),)))


def work(engine, count, words, thought):
    """Rounds of tool calls with results."""
    for _ in range(count):
        id = f"t{len(engine.view.history)}"
        blocks = (Thinking(thinking="hm", signature="c2ln"),) if thought else ()
        use = ToolUse(id=id, name="Bash", input={"command": "make test"})
        engine.record(Replied(response_id=id, content=(*blocks, use), model=engine.model))
        engine.take_result(id, "word " * words)


def weight(engine):
    return weigh(engine.view.total, default_weights(engine.model))


async def run(engine, snip, collapse, kind):
    """Run the stages, or drain, and hold what they did against the promises."""
    items, before, known = list(engine.view.items), weight(engine), len(engine.view.history)
    if kind == "drain":
        drain(engine)
    else:
        await snip(engine)
        await collapse(engine)
    made = [e for e in engine.view.history[known:] if isinstance(e, ViewChange)]
    assert weight(engine) <= before
    if not made:
        assert list(engine.view.items) == items
    orders = {item.id: item.order for item in items}
    targets = [n for e in made for n in ((e.first,) if isinstance(e, Collapsed) else e.targets)]
    earliest = min((orders.get(n, n) for n in targets), default=0)
    unmoved = [item for item in items if item.order < earliest]
    assert list(engine.view.items)[: len(unmoved)] == unmoved
    known = len(engine.view.history)
    if kind == "drain":
        assert not drain(engine)
    else:
        await snip(engine)
        await collapse(engine)
    assert len(engine.view.history) == known


async def play(engine, steps, asks):
    snip = Snip()
    collapse = Collapsing(written if asks else None)
    for kind, *aims in steps:
        if kind in ("stages", "drain"):
            await run(engine, snip, collapse, kind)
        else:
            step(engine, kind, *aims)
        assert violations(engine.view.messages()) == []
    await run(engine, snip, collapse, "stages")


@settings(max_examples=min(80, settings.default.max_examples))
@given(_steps, st.sampled_from(MODELS), st.booleans())
@example(
    [
        ("say", False),
        ("work", 1, 2, False),
        ("answer", 1),
        ("say", False),
        ("work", 1, 2, False),
        ("answer", 1),
        ("say", False),
        ("work", 1, 2, False),
        ("answer", 1),
        ("say", False),
        ("work", 1, 900, False),
        ("answer", 301),
        ("work", 1, 60, False),
        ("compact", 0, 2),
        ("say", False),
    ],
    "claude-opus-4-6",
    True,
)
def test_folding_away_keeps_its_promises(steps, model, asks):
    with tempfile.TemporaryDirectory() as name:
        engine = Engine(Log.create(Path(name) / "s.jsonl", Header(session="s")), FULL)
        engine.record(Switched(model=model))
        asyncio.run(play(engine, steps, asks))
        again = fold(engine.view.history)
        assert again.messages() == engine.view.messages()
        bound = model == "claude-sonnet-5-5"
        ours = [e for e in engine.view.history if isinstance(e, Snipped | Collapsed)]
        assert all(entry.drops_thinking is bound for entry in ours)
        engine.close()
