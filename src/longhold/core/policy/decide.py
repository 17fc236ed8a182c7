"""Decide how to free space before a call: a table of rules, and a pure function over it.

`decide` takes the steps in order. The first rule that applies returns the plan. Each rule before it
returns the reason why it does not apply. A stage carries out the plan and then calls `decide` for
the later steps only, so every preparation ends. Slow facts are callables, computed when needed.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from longhold.core.log.entries import Snipped
from longhold.core.policy.clearing import (
    Clear,
    ClearingFacts,
    ReadableCache,
    clear_at_threshold,
    clear_cold,
    clear_edits,
    clear_paid,
    clear_stale,
)
from longhold.core.policy.threshold import WAIT_SHARE, Fullness, Weight, explain_floor, itemise
from longhold.core.settings import Settings

Trigger: TypeAlias = Literal["manual", "auto", "reactive"]
Step: TypeAlias = str
"""A step of the preparation, such as `clear`. The table lists steps in order."""
Way: TypeAlias = Literal["plugin", "notes", "fork", "direct", "digest"]

COMMIT_RATIO = 0.90
"""From this share of the effective window on, spans are collapsed."""
WRITE_RATIO = 0.95
"""If the window is still this full after collapsing, a fork writes lines for longer spans."""
WITHOUT_MODELS = 2
"""After this many streaks of quick compactions, no model is called for summaries."""
ENOUGH_STREAKS = 3
"""After this many streaks, the user has to act."""
BROKEN = "several summaries by a model failed in a row, so no model is asked now"
BOUND = "thinking is bound to the sent messages"
COLD = "the cache has expired, so a model would read everything at the full price"
REFILLED = "the window was refilled again and again"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFacts:
    """The facts that a compaction needs."""

    limit_tokens: int = 0
    """The upper limit for the result: the window's limit, or less after an overflow."""
    is_plain: bool = True
    """There are no special instructions, so existing notes may serve as the summary."""
    has_overflowed: bool = False
    model: bool = True
    """A model is available, and the settings and the request let it write summaries."""
    plugin: bool = False
    """A plug-in is available, and the settings and the request let it write summaries."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Ways that failed in this compaction, each with the reason."""
    no_answer: str = ""
    """The reason why no model answers at all."""
    covers: Callable[[], str] = lambda: ""
    """Returns "" if there is history to summarise, or else the reason why not."""
    floor: Callable[[], list[Weight]] = list
    """Content that no compaction removes."""
    parts: Callable[[], list[Weight]] = list
    """Everything that fills the window."""
    undone_tokens: Callable[[], int] = lambda: 0
    """Returns the size before a compaction that the user undid, or 0 if its span is not shown."""
    notes: Callable[[], str] = lambda: "there are no notes"
    """Returns "" if the notes can replace history, or else the reason why not."""
    streaks: Callable[[], int] = lambda: 0
    is_thrashing: Callable[[], bool] = lambda: False
    is_broken: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The facts before a call. The defaults describe a session without the optional parts."""

    full: Fullness
    settings: Settings
    trigger: Trigger = "auto"
    is_wanted: bool = False
    """A compaction was requested, or the provider refused the prompt, whatever its size."""
    taken: frozenset[Step] = frozenset()
    """Steps that were already carried out before this call."""
    is_thinking: Callable[[], bool] = lambda: False
    """The running tool loop has thinking that is bound to the sent messages."""
    oversized: Callable[[bool], Sequence[tuple[Any, str]]] = lambda together: ()
    """Unsent results over their own limit or their message's limit, each with the reason."""
    marked: Callable[[], Snipped | None] = lambda: None
    """Messages that were marked as dropped and may be removed."""
    has_edits: bool = False
    """Longhold asked the provider to delete results in its cache."""
    cache: Callable[[], ReadableCache] = ReadableCache
    clearing: Callable[[], ClearingFacts] | None = None
    can_write: bool = False
    """A fork can write lines for finished work."""
    history: Callable[[], HistoryFacts] = HistoryFacts

    def can_move(self) -> bool:
        """Whether an entry may change sent messages. Bound thinking delays it only for a while."""
        full = self.full
        return not self.is_thinking() or full.used_tokens >= full.wait_tokens or full.is_blocked


class Send(NamedTuple):
    """Nothing has to be done. The request can be sent."""

    why: str = "there is space"


class CarryOut(NamedTuple):
    """The plan: carry out the rule's step on `subject`."""

    why: str
    subject: Any = None


class Wait(NamedTuple):
    until_tokens: int
    why: str


class Compact(NamedTuple):
    way: Way
    why: str


class Refuse(NamedTuple):
    why: str
    is_overflow: bool = True
    """The window is too small. If this is False, there is nothing to compact."""


Plan: TypeAlias = Send | CarryOut | Clear | Wait | Compact | Refuse
ENDS = (Send, Wait, Refuse)
"""Plans that end the preparation."""


class Lost(NamedTuple):
    rule: str
    why: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.why}"


class SpaceDecision(NamedTuple):
    plan: Plan
    rule: str
    step: Step | None = None
    lost: tuple[Lost, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the rule that applies and then the rejected rules, in words."""
        yield describe_rule(self.rule, self.plan.why)
        yield from (f"  not {one}" for one in self.lost)


class SpaceRule(NamedTuple):
    step: Step
    name: str
    when: str
    """The condition, in words."""
    judge: Callable[[Situation], Plan | str]
    """Returns a plan, or the reason why the rule does not apply ("" if it is not shown)."""


def decide(situation: Situation, steps: Collection[Step] | None = None) -> SpaceDecision:
    """Return the plan of the first rule that applies, with the rules rejected before it.

    `steps` limits the steps to consider.
    """
    lost: list[Lost] = []
    gates: dict[Step, str | None] = {}
    for rule in RULES:
        step = rule.step
        if steps is not None and step not in steps:
            continue
        if step not in gates:
            gates[step] = closed = _find_gate(situation, step)
            if closed:
                lost.append(Lost(step, closed))
        if gates[step] is not None:
            continue
        found = rule.judge(situation)
        if not isinstance(found, str):
            return SpaceDecision(found, rule.name, step, tuple(lost))
        if found:
            lost.append(Lost(rule.name, found))
    return SpaceDecision(Send(), "send", lost=tuple(lost))


def describe_rule(rule: str, why: str = "") -> str:
    when = next((f" ({one.when})" for one in RULES if one.name == rule), "")
    return f"rule {rule}{when}" + (f": {why}" if why else "")


def steps_after(step: Step, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps after `step`, so that a preparation only goes forward."""
    order = list(dict.fromkeys(rule.step for rule in RULES))
    return tuple(one for one in steps if order.index(one) > order.index(step))


def _find_gate(s: Situation, step: Step) -> str | None:
    """Return why no rule of a step can apply, or None if a rule may. "" hides the reason."""
    compact, used, window = s.settings.compact, s.full.used_tokens, s.full.window
    is_on = compact.on and window.auto and not compact.reactive_only
    is_past = used >= window.auto_tokens
    match step:
        case "clear":
            return _find_clear_gate(s)
        case "collapse" | "lines":
            is_open = s.settings.collapse.on
        case "wait":
            is_open = is_on and is_past and not s.full.is_blocked and not s.is_wanted
        case "relieve" | "shorten":
            is_open = is_on and is_past
        case "compact" if not s.is_wanted and not (is_on and (is_past or _pays_cold(s))):
            below = f"{used:,} tokens are below the threshold, {window.auto_tokens:,}"
            return below if is_on else "automatic compaction is off"
        case _:
            is_open = True
    return None if is_open else ""


def _pays_cold(s: Situation) -> bool:
    """Whether the cache has expired and a digest below the threshold saves more than it loses."""
    full = s.full
    if not 0 < full.window.cold_tokens <= full.used_tokens < full.window.auto_tokens:
        return False
    return s.cache().is_expired and not s.is_thinking() and not s.history().undone_tokens()


def _find_clear_gate(s: Situation) -> str | None:
    if not s.settings.clear.on or s.clearing is None:
        return ""
    full = s.full
    is_empty = full.used_tokens < s.settings.clear.warm_share * full.window.base_tokens
    cache = s.cache()
    if s.has_edits or not is_empty or cache.cold or cache.is_expired or full.is_blocked:
        return None
    return "the cache is warm and the window mostly empty"


def _spill(s: Situation, *, together: bool = False) -> Plan | str:
    results = s.oversized(together)
    return CarryOut("results are over their limit", results) if results else ""


def _snip(s: Situation) -> Plan | str:
    entry = s.marked()
    if entry is None:
        return ""
    return CarryOut("messages were marked as dropped", entry) if s.can_move() else BOUND


def _on_clearing(rule: Callable[[ClearingFacts], Clear | str]) -> Callable[[Situation], Plan | str]:
    def judge(s: Situation) -> Plan | str:
        assert s.clearing is not None
        return rule(s.clearing())

    return judge


def _collapse(s: Situation) -> Plan | str:
    if s.full.used_tokens < COMMIT_RATIO * s.full.window.effective_tokens:
        return ""
    return CarryOut("finished work can be shown as one line") if s.can_move() else BOUND


def _write_lines(s: Situation) -> Plan | str:
    is_past = s.full.used_tokens >= WRITE_RATIO * s.full.window.effective_tokens
    if not (is_past and s.can_write and s.settings.collapse.write):
        return ""
    return CarryOut("counted lines did not free enough") if s.can_move() else BOUND


def _wait_for_collapse(s: Situation) -> Plan | str:
    if not s.settings.collapse.on:
        return ""
    limit = s.full.window.full_tokens
    return _wait(s, limit, "compaction waits because finished work is collapsed")


def _wait_after_undo(s: Situation) -> Plan | str:
    undone, window = s.history().undone_tokens(), s.full.window
    if not undone:
        return ""
    least = int((1 + WAIT_SHARE) * max(undone, window.auto_tokens))
    return _wait(s, min(least, window.full_tokens), "the undone compaction is not repeated yet")


def _wait_for_thinking(s: Situation) -> Plan | str:
    # An undo and a collapse have their own, longer delays.
    if s.history().undone_tokens() or s.settings.collapse.on or not s.is_thinking():
        return ""
    return _wait(s, s.full.wait_tokens, "compaction waits for the end of the thinking")


def _wait(s: Situation, until: int, why: str) -> Plan | str:
    if s.full.used_tokens < until:
        return Wait(until, why)
    return f"{s.full.used_tokens:,} tokens are past {until:,}"


def _shorten(s: Situation) -> Plan | str:
    limit = s.history().limit_tokens
    return CarryOut("unread results exceed the limit", limit) if _sum_floor(s) >= limit else ""


def _refuse_refilled(s: Situation) -> Plan | str:
    """Stop the work, because the window keeps filling up."""
    is_again = "relieve" in s.taken and s.history().streaks() >= ENOUGH_STREAKS
    if not is_again or not s.full.is_blocked:
        return ""
    why = f"{REFILLED}, and compacting does not help. {itemise(s.history().parts())}"
    return Refuse(f"{why}. Or use a model with a larger window")


def _refuse_floor(s: Situation) -> Plan | str:
    history = s.history()
    if _sum_floor(s) < history.limit_tokens:
        return ""
    why = explain_floor(history.floor(), history.limit_tokens)
    # Automatic compactions are only refused if the next request would not fit.
    return Refuse(why) if s.is_wanted or s.full.is_blocked else Send(why)


def _sum_floor(s: Situation) -> int:
    return sum(weight.tokens for weight in s.history().floor())


def _refuse_empty(s: Situation) -> Plan | str:
    why = s.history().covers()
    if not why:
        return ""
    return Refuse(why, is_overflow=False) if s.is_wanted else Send(why)


def _compact_from_notes(s: Situation) -> Plan | str:
    history = s.history()
    if why := history.failed.get("notes") or history.notes():
        return why
    if not history.is_plain:
        return "the summary has special instructions"
    if s.trigger != "reactive" and not s.can_move():
        return BOUND
    return Compact("notes", "the notes need no call")


def _compact_by(way: Way) -> Callable[[Situation], Plan | str]:
    def judge(s: Situation) -> Plan | str:
        history = s.history()
        if way == "digest":
            return Compact(way, "the digest needs no model")
        if not (history.plugin if way == "plugin" else history.model):
            return ""
        if why := history.failed.get(way) or _find_model_obstacle(s, history):
            return why
        if way == "fork" and history.has_overflowed:
            return "the conversation is too long for a fork"
        return Compact(way, f"a {'plug-in' if way == 'plugin' else 'model'} writes the summary")

    return judge


def _find_model_obstacle(s: Situation, history: HistoryFacts) -> str:
    """Return why no model may write a summary now. A user's request is always allowed."""
    if history.no_answer or s.trigger == "manual":
        return history.no_answer
    if _pays_cold(s):
        return COLD
    if "relieve" in s.taken or history.streaks() >= WITHOUT_MODELS:
        return REFILLED
    return BROKEN if history.is_broken() else ""


RULES: tuple[SpaceRule, ...] = (
    SpaceRule("spill", "spill-result", "a new result is over its limit", _spill),
    SpaceRule("total", "spill-message", "the new results together are over the limit", partial(_spill, together=True)),
    SpaceRule("snip", "snip", "messages were marked as dropped", _snip),
    SpaceRule("clear", "clear-stale", "the provider ignored cache edits", _on_clearing(clear_stale)),
    SpaceRule("clear", "clear-cold", "the cache has expired, so clearing is free", _on_clearing(clear_cold)),
    SpaceRule("clear", "clear-edits", "the provider can delete inside its cache", _on_clearing(clear_edits)),
    SpaceRule("clear", "clear-paid", "clearing saves more than the rewrite costs", _on_clearing(clear_paid)),
    SpaceRule("clear", "clear-threshold", "clearing avoids a compaction", _on_clearing(clear_at_threshold)),
    SpaceRule("collapse", "collapse-counted", "90 % of the window is used", _collapse),
    SpaceRule("lines", "collapse-written", "95 % of the window is still used after that", _write_lines),
    SpaceRule("wait", "wait-collapse", "finished work is collapsed first", _wait_for_collapse),
    SpaceRule("wait", "wait-undo", "the user undid a compaction of the same span", _wait_after_undo),
    SpaceRule("wait", "wait-thinking", "the running tool loop has thinking bound to the sent messages", _wait_for_thinking),
    SpaceRule("shorten", "shorten", "the part that no compaction can remove exceeds the limit", _shorten),
    SpaceRule("relieve", "relieve", "the third quick compaction in a row", lambda s: CarryOut(REFILLED) if s.history().is_thrashing() else ""),
    SpaceRule("compact", "refuse-refilled", "the third such streak, and the window is full", _refuse_refilled),
    SpaceRule("compact", "refuse-floor", "the part that no compaction can remove exceeds the limit", _refuse_floor),
    SpaceRule("compact", "refuse-empty", "no history is left to summarise", _refuse_empty),
    SpaceRule("compact", "compact-plugin", "`plugins.use` names a summariser", _compact_by("plugin")),
    SpaceRule("compact", "compact-notes", "notes cover the history", _compact_from_notes),
    SpaceRule("compact", "compact-fork", "a model answers on the conversation's prefix", _compact_by("fork")),
    SpaceRule("compact", "compact-direct", "the fork failed, or the prompt is too long", _compact_by("direct")),
    SpaceRule("compact", "compact-digest", "always", _compact_by("digest")),
)  # fmt: skip
