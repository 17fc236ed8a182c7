"""Collapse: replace each span of finished work with one line to free space. Undo is possible.

At 90 % of the window, runs of tool calls are replaced with counts. Several runs are replaced
together, because each change rewrites the cache. At 95 %, a fork writes one line for the work
between two user messages. A span that the user reopened stays open until the window is full.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

from longhold.core.log.entries import AnyEntry, Collapsed, Failed, Said, Undone, Withheld
from longhold.core.log.spending import make_failure
from longhold.core.messages import ToolUse, text_of
from longhold.core.messages.measure import NOTHING, Measure, measure_content
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import clean_line, list_some, pluralize
from longhold.core.stages.snip import newest_turn
from longhold.core.stages.space import drops_thinking, may_move
from longhold.core.tools.describe import description_of
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork, ForkRequest
from longhold.core.view import View
from longhold.core.view.items import Item, Round, Spoken
from longhold.core.view.window import scale_tokens
from longhold.errors import LongholdError, ModelError, NotInHistory

WHAT = "collapse"
NAMED_FILES = 4  # number of files named in a line
NAMED_TOOLS = 5
TARGET_CHARS = 60
QUOTE_CHARS = 80

_NUMBERED = re.compile(r"^\W*(\d{1,9})[ \t]*[.:)\]][ \t]*(\S.*)$", re.MULTILINE)
LEAST_TOKENS = 1_000  # Shorter spans are not collapsed. A line takes about a tenth of this.
LINE_CHARS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Finished work without the newest turn, pinned messages, reminders and summaries."""

    items: tuple[Item, ...]
    last: int
    asked: str = ""

    @property
    def first(self) -> int:
        return self.items[0].order

    @property
    def measure(self) -> Measure:
        return sum((item.measure for item in self.items), NOTHING)

    @property
    def is_line(self) -> bool:
        return len(self.items) == 1 and not isinstance(self.items[0], Round)

    def holds_any(self, numbers: frozenset[int | str]) -> bool:
        return any(isinstance(n, int) and self.first <= n <= self.last for n in numbers)


def runs(view: View) -> Iterator[Span]:
    """Yield runs of tool rounds in finished turns, oldest first."""
    return _spans(view, lambda item: _is_bound(view, item) or _breaks_run(item))


def stretches(view: View) -> Iterator[Span]:
    """Yield the items between two user messages in finished turns, oldest first."""
    return _spans(view, lambda item: _is_bound(view, item))


def _spans(view: View, bounds: Callable[[Item], bool]) -> Iterator[Span]:
    end, asked, start = newest_turn(view), "", 0
    for i, item in enumerate(view.items):
        if item.order < end and not bounds(item):
            continue
        yield from _span(view, start, i, asked)
        if item.order >= end:
            return
        start = i + 1
        if isinstance(item, Spoken) and item.is_asked():
            asked = clean_line(text_of(item.content), QUOTE_CHARS)


def _span(view: View, lo: int, hi: int, asked: str) -> Iterator[Span]:
    items = view.items
    while lo < hi and not _is_work(items[hi - 1]):
        hi -= 1
    while lo < hi and not _is_work(items[lo]):
        lo += 1
    if lo < hi:
        yield Span(items=tuple(items[lo:hi]), last=_last(view, items[hi - 1]), asked=asked)


def _last(view: View, item: Item) -> int:
    """Return the last message that an item covers. A collapsed line's log entry names it."""
    if isinstance(item, Round):
        return max([item.id, *(result.id for result in item.results)])
    line = next(entry for entry in reversed(view.history) if entry.n == item.id)
    assert isinstance(line, Collapsed)
    return line.last


def _is_bound(view: View, item: Item) -> bool:
    if isinstance(item, Spoken) and item.kind not in ("line", "late"):
        return True
    return view.is_pinned(item)


def _breaks_run(item: Item) -> bool:
    return not item.tool_uses() if isinstance(item, Round) else item.kind == "line"


def _is_work(item: Item) -> bool:
    return isinstance(item, Round) or item.kind == "line"


def _counted_line(span: Span) -> str:
    rounds = [item for item in span.items if isinstance(item, Round)]
    uses = [use for item in rounds for use in item.tool_uses()]
    tools = Counter(use.name for use in uses).most_common(NAMED_TOOLS)
    facts = [pluralize(len(rounds), "round"), ", ".join(f"{name} {count}" for name, count in tools)]
    if files := list(dict.fromkeys(path for use in uses for path in _paths(use))):
        facts.append(f"files {list_some(files, NAMED_FILES)}")
    if errors := sum(result.is_error for item in rounds for result in item.results):
        facts.append(pluralize(errors, "error"))
    facts.append(f"last {_ending(rounds[-1])}")
    return _framed_line(span, "; ".join(facts))


def _framed_line(span: Span, text: str) -> str:
    name = f"#{span.first}-#{span.last}"
    head, tail = f"[{name} collapsed to make room: ", f'. History with id "{name}" shows it.]'
    plain = clean_line(mask_secrets(text), max(1, LINE_CHARS - len(head) - len(tail)))
    return head + plain.rstrip(".") + tail


def _ending(last: Round) -> str:
    use = last.tool_uses()[-1]
    result = last.result_of(use.id)
    known = description_of(use.name)
    target = use.input.get(known.command_input) if known.command_input else next(_paths(use), "")
    said = f" {clean_line(str(target), TARGET_CHARS)}" if target else ""
    return f"{use.name}{said} {'failed' if result and result.is_error else 'succeeded'}"


def _paths(use: ToolUse) -> Iterator[str]:
    for path in description_of(use.name).paths_in(use.input):
        yield clean_line(path, TARGET_CHARS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollapseLimits:
    free_tokens: float
    least_tokens: float
    respects_undo: bool = True
    drops_thinking: bool = False


def drain(engine: Engine) -> bool:
    """Collapse every run, ignoring thresholds and vetoes. Return whether that freed space."""
    if not engine.settings.collapse.on:
        return False
    limits = replace(_limits(engine, float("inf")), least_tokens=0, respects_undo=False)
    return commit_counted(engine, limits)


def commit_counted(engine: Engine, limits: CollapseLimits | None = None) -> bool:
    limits = limits or _limits(engine)
    plan = _plan_collapse(engine.view, runs(engine.view), limits, engine.make_weigher())
    for span in plan:
        engine.record(_line(span, _counted_line(span), "counted", limits))
    return bool(plan)


def open_span(engine: Engine, n: int) -> str:
    """Undo a collapsed line, so that its messages are shown again. Return a line for the user."""
    entry = next((entry for entry in reversed(engine.view.history) if entry.n == n), None)
    if not isinstance(entry, Collapsed) or n in engine.view.in_force.dead:
        raise NotInHistory(f"#{n} is not a collapsed line of the current view")
    if not may_move(engine):
        raise LongholdError(
            f"#{n} cannot be put back between two tool calls; look it up in the history instead"
        )
    engine.record(Undone(target=n))
    return f"#{n} is open again: messages #{entry.first} to #{entry.last} are back in the view"


def _plan_collapse(
    view: View, spans: Iterable[Span], limits: CollapseLimits, weight: Callable[[Measure], float]
) -> list[Span]:
    """Choose the oldest spans that together free enough, except those the user reopened."""
    plan, freed = list[Span](), 0.0
    line_tokens = weight(measure_content("word " * (LINE_CHARS // 5)))
    vetoes = view.in_force.vetoes if limits.respects_undo else frozenset[int | str]()
    for span in spans:
        if freed >= limits.free_tokens:
            break
        saved = weight(span.measure) - line_tokens
        is_worth_it = saved > max(limits.least_tokens, line_tokens) and not span.is_line
        if is_worth_it and not span.holds_any(vetoes):
            plan.append(span)
            freed += saved
    return plan


def _limits(engine: Engine, free_tokens: float | None = None) -> CollapseLimits:
    fullness = engine.fullness()
    target = engine.settings.collapse.target_ratio * fullness.window.effective_tokens
    return CollapseLimits(
        free_tokens=fullness.used_tokens - target if free_tokens is None else free_tokens,
        least_tokens=scale_tokens(LEAST_TOKENS, fullness.window.limit_tokens),
        respects_undo=not fullness.is_blocked,
        drops_thinking=drops_thinking(engine),
    )


def _line(span: Span, text: str, how: str, limits: CollapseLimits) -> Collapsed:
    return Collapsed(
        first=span.first,
        last=span.last,
        text=text,
        measure=measure_content(text),
        drops_thinking=limits.drops_thinking,
        why=f"{len(span.items)} finished items became a line ({how})",
    )


async def write_lines(engine: Engine, ask: AskFork) -> None:
    limits, weight = _limits(engine), engine.make_weigher()
    spans = _plan_collapse(engine.view, stretches(engine.view), limits, weight)
    if not spans or _has_failed(engine.view.history):
        return
    try:
        reply = await ask(ForkRequest(say=_ask_for_lines(spans), source=WHAT))
    except ModelError as error:
        engine.record(make_failure(WHAT, error))
        return
    written = read_lines(reply.text, len(spans))
    lines = [
        (span, _line(span, _framed_line(span, text), "written", limits))
        for i, span in enumerate(spans, 1)
        if (text := written.get(i))
    ]
    shorter = [line for span, line in lines if weight(line.measure) < weight(span.measure)]
    if not shorter:
        engine.record(
            Failed(what=WHAT, error="the answer contains no line in the requested format")
        )
    for line in shorter:
        engine.record(line)


def _ask_for_lines(spans: Iterable[Span]) -> str:
    prompt = (files("longhold.core.stages") / "prompts" / "collapse.md").read_text(encoding="utf-8")
    listed = "\n".join(
        f"{i}. after the user's message that begins: {span.asked or '(nothing was said before)'}"
        for i, span in enumerate(spans, 1)
    )
    return prompt.strip().format(stretches=listed, chars=LINE_CHARS)


def read_lines(text: str, count: int) -> dict[int, str]:
    found = {int(number): line.strip() for number, line in _NUMBERED.findall(text)}
    return {i: line for i, line in found.items() if 1 <= i <= count}


def _has_failed(history: Sequence[AnyEntry]) -> bool:
    """Whether collapsing failed since the user's last message. It is tried once per turn."""
    for entry in reversed(history):
        if isinstance(entry, Failed | Withheld) and entry.what == WHAT:
            return True
        if isinstance(entry, Said) and not entry.hidden:
            return False
    return False
