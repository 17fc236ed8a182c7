"""Clearing in arbitrary sessions: invariants before every call."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longhold.core.log import Header, Log
from longhold.core.log.entries import Asked, Cleared, Framed, Pinned, Ran, Section, Switched, Undone
from longhold.core.messages import Text, Thinking, ToolUse, Usage
from longhold.core.messages.measure import measure_text
from longhold.core.messages.rules import violations
from longhold.core.models.protocol import Reply
from longhold.core.policy import clearing
from longhold.core.policy.candidates import weight
from longhold.core.request.server_side import EDITS_BETA
from longhold.core.settings import ClearSettings, GaugeSettings, Settings, WindowSettings
from longhold.core.stages.clear.clear import Clearing
from longhold.core.turn.engine import Engine
from longhold.core.view import fold
from longhold.core.view.items import Round

SYSTEM = "be careful " * 300
MODELS = ("claude-opus-4-6", "claude-opus-5-5", "claude-sonnet-4-5", "simulated/claude-opus-5")
NAMES = ("Read", "Read", "Bash", "Edit", "mcp__x__y")
EAGER = Settings(
    gauge=GaugeSettings(calibrate=False),
    window=WindowSettings(limit_tokens=30_000),
    clear=ClearSettings(
        keep_results=2,
        smallest_tokens=20,
    ),
)
OTHER = Settings(
    gauge=GaugeSettings(calibrate=False), clear=ClearSettings(keep_results=1, on=False)
)

_calls = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from((0, 1, 40, 400, 3_000))),
    min_size=1,
    max_size=4,
)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("call"), _calls),
        st.tuples(st.just("call"), _calls),
        st.tuples(st.just("call"), _calls),
        st.tuples(st.just("say"), st.just(())),
        st.tuples(st.just("wait"), st.sampled_from((10, 290, 400))),
        st.tuples(st.just("undo"), st.integers(0, 3)),
        st.tuples(st.just("pin"), st.integers(0, 30)),
        st.tuples(st.just("switch"), st.sampled_from(MODELS)),
    ),
    min_size=5,
    max_size=20,
)


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Clear little as well, so that short sessions show every way."""
    monkeypatch.setattr(clearing, "IDLE_LEAST_TOKENS", 100)
    monkeypatch.setattr(clearing, "PAID_LEAST_TOKENS", 500)
    monkeypatch.setattr(clearing, "EDITS_TRIGGER_RESULTS", 4)


class Session:
    """An engine that clears, driven by steps."""

    def __init__(self, path, model):
        self.now, self.stage = 1_800_000_000.0, Clearing()
        log = Log.create(path, Header(session="s"))
        self.engine = Engine(log, EAGER, clock=lambda: self.now)
        self.engine.record(Switched(model=model))
        sections, betas = (Section(name="a", text=SYSTEM),), (EDITS_BETA,)
        self.engine.record(Framed(sections=sections, betas=betas, measure=measure_text(SYSTEM)))
        self.engine.say("go")

    async def take(self, kind, given):
        """Do one step; each call is sent first, and looked at."""
        engine, view = self.engine, self.engine.view
        cleared = [
            e for e in view.history if isinstance(e, Cleared) and e.n not in view.in_force.dead
        ]
        match kind:
            case "call":
                await self.send()
                self.answer(given)
            case "say":
                engine.say("and now?")
            case "wait":
                self.now += given
            case "undo" if cleared:
                engine.record(Undone(target=cleared[given % len(cleared)].n))
            case "pin":
                engine.record(Pinned(targets=(given,)))
            case "switch":
                engine.switch(given, "why not")

    def answer(self, calls):
        engine, n = self.engine, len(self.engine.view.history)
        uses = [
            ToolUse(id=f"t{n}_{i}", name=name, input={"file_path": f"/p/{i}", "command": "ls"})
            for i, (name, _) in enumerate(calls)
        ]
        usage = Usage(cache_read_tokens=engine.fullness().used_tokens, output_tokens=9)
        content = (Thinking(thinking="hm", signature="c2ln"), Text(text="so"), *uses)
        engine.record_reply(
            Reply(
                response_id=f"r{n}",
                model=engine.model,
                content=content,
                stop_reason="tool_use",
                usage=usage,
            )
        )
        for use, (_, size) in zip(uses, calls, strict=True):
            engine.take_result(use.id, "a word " * size)

    async def send(self):
        """Send, and look at what the stage did."""
        view = self.engine.view
        before, size, unread = len(view.history), weight(view.total), _unread(view)
        self.now += 5
        await self.stage(self.engine)
        length = len(view.history)
        await self.stage(self.engine)
        assert len(view.history) == length, "twice adds nothing"
        await self.engine.prepare((self.stage,), max_output_tokens=50)
        *others, request = view.history[length:]
        assert isinstance(request, Asked), "but for the request"
        assert all(isinstance(one, Framed) and one.system_lifetime == "1h" for one in others)
        assert len(others) <= 1, "an hour for the system prompt, after the first pause"
        made = [e for e in view.history[before:] if isinstance(e, Cleared)]
        assert weight(view.total) <= size, "never larger"
        assert not violations(view.messages()) and not violations(view.render_seen())
        assert not {id for entry in made for id in entry.ids} & unread, "what was not read stays"
        assert all(e.why and (e.ids or e.inputs or e.thinking) for e in made)


def _unread(view):
    rounds = [item for item in view.items if isinstance(item, Round)]
    return {use.id for use in rounds[-1].tool_uses()} if rounds else set()


def run(steps, model, path):
    session = Session(path, model)

    async def go():
        for kind, given_ in steps:
            await session.take(kind, given_)
        await session.send()

    asyncio.run(go())
    return session


@settings(max_examples=min(60, settings.default.max_examples))
@given(_steps, st.sampled_from(MODELS))
def test_every_view_stays_sound_and_no_larger(steps, model):
    with tempfile.TemporaryDirectory() as name:
        session = run(steps, model, Path(name) / "s.jsonl")
        session.engine.close()


@settings(max_examples=40)
@given(_steps, st.sampled_from(MODELS))
def test_decisions_survive_a_restart_and_other_settings(steps, model):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "s.jsonl"
        session = run(steps, model, path)
        sent = session.engine.prefix().messages
        entries, bodies = list(session.engine.view.history), _bodies(session.engine.view)
        session.engine.close()
        again = Engine(Log.open(path), OTHER)
        assert again.prefix().messages == sent
        again.close()
        assert fold(entries).messages() == session.engine.view.messages()
        assert _bodies(fold(entries)) == bodies, "all of it is in the log"


def _bodies(view):
    return {entry.tool_use_id: entry.content for entry in view.history if isinstance(entry, Ran)}


@settings(max_examples=40)
@given(_steps)
@example(
    [
        ("call", [("Read", 0)]),
        ("call", [("Bash", 400), ("Bash", 3_000)]),
        ("call", [("Read", 0)]),
        ("call", [("Read", 3_000)]),
        ("switch", "claude-sonnet-4-5"),
    ]
)
def test_what_was_taken_back_is_not_planned_again(steps):
    with tempfile.TemporaryDirectory() as name:
        session = run(steps, MODELS[0], Path(name) / "s.jsonl")
        view = session.engine.view
        undone = {e.target: e.n for e in view.history if isinstance(e, Undone)}
        blocked = session.engine.fullness().window.blocking_tokens
        for entry in view.history:
            if isinstance(entry, Cleared) and entry.n in undone:
                later = [
                    e
                    for e in view.history
                    if isinstance(e, Cleared)
                    and e.n > undone[entry.n]
                    and set(e.ids) & set(entry.ids)
                ]
                assert not later or _was_full(view, later[0].n, blocked)
        session.engine.close()


def _was_full(view, n, blocked):
    before = fold([entry for entry in view.history if entry.n < n])
    return weight(before.total) > 0.5 * blocked
