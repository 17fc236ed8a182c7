"""In any situation the decision ends, repeats no step, and spares protected content."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log import Header, Log
from longhold.core.log.entries import Framed, Pinned, Section, Switched, Undone, ViewChange
from longhold.core.messages import Text, ToolUse, Usage, text_of
from longhold.core.messages.measure import measure_text
from longhold.core.messages.rules import violations
from longhold.core.models.protocol import Reply
from longhold.core.policy.decide import ENDS, RULES, HistoryFacts, Situation, decide, steps_after
from longhold.core.policy.threshold import Fullness, Weight
from longhold.core.settings import (
    ClearSettings,
    CollapseSettings,
    CompactSettings,
    GaugeSettings,
    NotesSettings,
    Settings,
    WindowSettings,
)
from longhold.core.stages.layers import build_layers
from longhold.core.stages.space import foresee
from longhold.core.stages.spill.spill import Spill
from longhold.core.turn.engine import Engine
from longhold.core.view.items import Round
from longhold.core.view.window import window_for
from longhold.errors import ContextOverflow

STEPS = tuple(dict.fromkeys(rule.step for rule in RULES))
WINDOW = window_for("claude-opus-4-6", WindowSettings(auto_line="100000"))
_reasons = st.sampled_from(("", "because"))
_ways = st.sampled_from(("notes", "fork", "direct"))


@st.composite
def situations(draw):
    """Draw facts that need not make sense together."""
    facts = HistoryFacts(
        limit_tokens=draw(st.sampled_from((WINDOW.full_tokens, 40_000))),
        is_plain=draw(st.booleans()),
        has_overflowed=draw(st.booleans()),
        model=draw(st.booleans()),
        failed=draw(st.dictionaries(_ways, st.just("it failed"))),
        no_answer=draw(_reasons),
        covers=_fact(draw(_reasons)),
        floor=_fact([Weight(kind="waiting", name="m", tokens=draw(_sizes), advice="a")]),
        undone_tokens=_fact(draw(st.sampled_from((0, 120_000)))),
        notes=_fact(draw(_reasons)),
        streaks=_fact(draw(st.integers(0, 4))),
        is_thrashing=_fact(draw(st.booleans())),
        is_broken=_fact(draw(st.booleans())),
    )
    settings = Settings(
        compact=CompactSettings(on=draw(st.booleans()), reactive_only=draw(st.booleans())),
        collapse=CollapseSettings(on=draw(st.booleans())),
    )
    trigger = draw(st.sampled_from(("auto", "manual", "reactive")))
    return Situation(
        full=Fullness(used_tokens=draw(_sizes), margin=lambda: 0, window=WINDOW),
        settings=settings,
        trigger=trigger,
        is_wanted=trigger != "auto",
        taken=frozenset(draw(st.sets(st.sampled_from(STEPS)))),
        is_thinking=_fact(draw(st.booleans())),
        can_write=draw(st.booleans()),
        history=_fact(facts),
    )


_sizes = st.sampled_from((1_000, 60_000, 96_000, 101_000, 130_000, 166_000, 190_000))


def _fact(value):
    return lambda: value


@given(situations())
def test_every_path_through_the_table_ends(situation):
    steps, count = STEPS, 0
    while steps:
        decision = decide(situation, steps)
        assert decision == decide(situation, steps), "the same facts give the same decision"
        count += 1
        if isinstance(decision.plan, ENDS):
            return
        steps = steps_after(decision.step, steps)
        assert decision.step not in steps
    assert count <= len(STEPS)


@given(situations())
def test_whatever_fails_something_is_sent_or_refused_in_the_end(situation):
    failed = dict(situation.history().failed)
    for _ in range(len(RULES)):
        facts = _replace(situation.history(), failed=dict(failed))
        decision = decide(_replace(situation, history=_fact(facts)), ("compact",))
        if decision.rule == "compact-digest" or isinstance(decision.plan, ENDS):
            return
        assert decision.plan.way not in failed, "a way that failed is not tried again"
        failed[decision.plan.way] = "it failed"
    raise AssertionError("no end")


def _replace(one, **changes):
    known = {name: getattr(one, name) for name in one.__dataclass_fields__}
    return type(one)(**known | changes)


SYSTEM = "be careful " * 100
_calls = st.lists(st.sampled_from((5, 300, 1_500, 4_000)), min_size=1, max_size=3)
_acts = st.lists(
    st.one_of(
        st.tuples(st.just("call"), _calls),
        st.tuples(st.just("call"), _calls),
        st.tuples(st.just("say"), st.sampled_from((3, 200, 900))),
        st.tuples(st.just("wait"), st.sampled_from((10, 400))),
        st.tuples(st.just("undo"), st.integers(0, 3)),
        st.tuples(st.just("pin"), st.integers(0, 30)),
    ),
    min_size=8,
    max_size=25,
)


class Working:
    """A session with every layer and no model, in a window that fills."""

    def __init__(self, path, model, auto_line):
        self.now, spill = 1_800_000_000.0, Spill()
        settings = Settings(
            gauge=GaugeSettings(calibrate=False),
            window=WindowSettings(limit_tokens=24_000, auto_line=auto_line),
            clear=ClearSettings(keep_results=2, smallest_tokens=20),
            notes=NotesSettings(on=False),
        )
        log = Log.create(path, Header(session="s"))
        self.engine = Engine(log, settings, on_result=spill.arrive, clock=lambda: self.now)
        self.layers = build_layers(spill)
        self.engine.record(Switched(model=model))
        section = Section(name="a", text=SYSTEM)
        self.engine.record(Framed(sections=(section,), measure=measure_text(SYSTEM)))
        self.engine.say("the first request")

    async def act(self, kind, given):
        engine, view = self.engine, self.engine.view
        changes = [
            entry
            for entry in view.history
            if isinstance(entry, ViewChange) and entry.rule and entry.n not in view.in_force.dead
        ]
        match kind:
            case "call":
                await self.send()
                self.answer(given)
            case "say":
                engine.say("word " * given)
            case "wait":
                self.now += given
            case "undo" if changes:
                engine.record(Undone(target=changes[given % len(changes)].n))
            case "pin":
                engine.record(Pinned(targets=(given,)))

    def answer(self, sizes):
        engine, n = self.engine, len(self.engine.view.history)
        uses = [
            ToolUse(id=f"t{n}_{i}", name="Read", input={"file_path": f"/p/{n}/{i}"})
            for i in range(len(sizes))
        ]
        usage = Usage(cache_read_tokens=engine.fullness().used_tokens, output_tokens=9)
        content = (Text(text="so"), *uses)
        reply = Reply(
            response_id=f"r{n}",
            model=engine.model,
            content=content,
            stop_reason="tool_use",
            usage=usage,
        )
        engine.record_reply(reply)
        for use, size in zip(uses, sizes, strict=True):
            engine.take_result(use.id, f"{use.id} " + "word " * size)

    async def send(self):
        view = self.engine.view
        unread, before = _unread(view), len(view.history)
        pinned = {item.id for item in view.items if view.is_pinned(item)}
        self.now += 5
        foreseen = foresee(self.engine, self.layers.parts)
        assert len(view.history) == before, "looking ahead changes nothing"
        await self.layers.free_space(self.engine)
        made = [one for one in view.history[before:] if isinstance(one, ViewChange)]
        if made:
            assert foreseen.step, "what was done was foreseen"
        length = len(view.history)
        await self.layers.free_space(self.engine)
        assert len(view.history) == length, "twice adds nothing"
        assert not violations(view.messages())
        for one in made:  # a preview stands for a result that is too long for its message
            unread.pop(getattr(one, "tool_use_id", ""), None)
        if not any(one.rule == "shorten" for one in made):
            assert unread.items() <= _unread(view).items(), "what no answer followed stays"
        assert pinned <= {item.id for item in view.items}, "what is pinned stays"
        assert all(one.rule for one in made if type(one).__name__ in ("Cleared", "Compacted"))
        await self.engine.prepare((), max_output_tokens=50)


def _unread(view):
    """Return the texts behind the last answer, and its results."""
    shown = {}
    for item in reversed(view.items):
        if isinstance(item, Round):
            return shown | {
                result.tool_use_id: text_of(result.block("sent").content) for result in item.results
            }
        if item.is_asked():
            shown[item.id] = text_of(item.content)
    return shown


@given(
    _acts,
    st.sampled_from(("claude-opus-4-6", "claude-sonnet-5-5", "gpt-6-sol")),
    st.sampled_from(("cost", "", "50%")),
)
def test_no_plan_removes_what_was_not_answered_or_repeats_itself(acts, model, auto_line):
    async def play():
        with tempfile.TemporaryDirectory() as directory:
            one = Working(Path(directory) / "log.jsonl", model, auto_line)
            try:
                for kind, given_ in acts:
                    await one.act(kind, given_)
            except ContextOverflow:
                assert one.engine.fullness().is_blocked
            finally:
                one.engine.close()

    asyncio.run(play())
