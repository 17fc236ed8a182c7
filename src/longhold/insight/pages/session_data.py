"""The tables of a session's page, with sanitised texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from longhold.core.log.entries import AnyEntry, CacheBroke, Ran, Replied, ViewChange
from longhold.core.log.entry_lines import kind_of
from longhold.core.messages import JsonObject, ToolUse, text_of
from longhold.core.settings import PageSettings
from longhold.core.tools.history.catalogue import Catalogue, RecordedCall
from longhold.core.tools.history.history import is_shown
from longhold.core.tools.history.records import Record, record_of
from longhold.core.view import View, fold
from longhold.core.view.window import Window
from longhold.insight.calls import CallReport, explain_calls, totals
from longhold.insight.explain import ExplainedTurn, explain
from longhold.insight.pages.tables import Columns, MessageRow, columns, fair_limit, sanitise
from longhold.insight.read_session import sum_session
from longhold.insight.timeline import STACK, Boundary, ContextPoint, Timeline, follow_context

LINE_CHARS = 600
LOST_NAMES = 300  # how many lost names a compaction lists. Further names are only counted.
USD_DIGITS, TIME_DIGITS = 6, 1
MESSAGE_CHARS = 20_000  # limit for one message. `longhold serve` shows the rest.
SUMMARY_CHARS = 60_000  # limit for a summary. The longest have about 15,000 tokens.


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionData:
    id: str
    name: str
    format: str
    title: str
    model: str
    first_at: float
    last_at: float
    entries: int
    window: Window
    totals: JsonObject
    avoidable_usd: float
    estimated_usd: float
    """The estimated cost of output and summaries without usage. The totals do not include it."""
    hit_share: float
    cut_messages: int
    problems: tuple[str, ...]
    categories: tuple[str, ...]
    """Columns of the table `context`, in stacking order."""
    tables: dict[str, Columns]

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


def session_data(
    history: Sequence[AnyEntry],
    *,
    id: str,
    name: str,
    format: str,
    window: Window,
    settings: PageSettings,
    problems: Iterable[str] = (),
) -> SessionData:
    """Convert a history into the tables of its page. All texts are sanitised."""
    view, calls, timeline = fold(history), explain_calls(history), follow_context(history)
    figures = sum_session(history, calls)
    turns, reader = explain(history), _MessageReader(view)
    messages = reader.rows(history, settings)
    times = [entry.at for entry in history if entry.at]
    states = {row.n: row.state for row in messages}
    categories = _categories(timeline.points)
    tables = {
        "calls": _call_columns(calls),
        "context": _context_columns(timeline.points, categories),
        "turns": _turn_columns(turns, states),
        "changes": _change_columns(turns, history),
        "compactions": _compaction_columns(timeline, view),
        "messages": columns(MessageRow, messages),
    }
    return SessionData(
        id=id,
        name=sanitise(name, LINE_CHARS),
        format=format,
        title=sanitise(view.title or _first_words(turns), LINE_CHARS),
        model=view.model,
        first_at=round(min(times, default=0.0), TIME_DIGITS),
        last_at=round(max(times, default=0.0), TIME_DIGITS),
        entries=len(history),
        window=window,
        totals=totals(calls) | {"calls": figures.calls, "usd": figures.usd},
        avoidable_usd=round(figures.lost_usd, USD_DIGITS),
        estimated_usd=round(figures.unrecorded_usd, USD_DIGITS),
        hit_share=round(figures.hit_share, 4),
        cut_messages=sum(row.chars > len(row.text) for row in messages),
        problems=tuple(sanitise(line, LINE_CHARS) for line in problems),
        categories=categories,
        tables=tables,
    )


def _first_words(turns: Sequence[ExplainedTurn]) -> str:
    return next((turn.said.strip() for turn in turns if turn.said.strip()), "")


def _call_columns(calls: Sequence[CallReport]) -> Columns:
    rows = [call.to_json() for call in calls]
    table = {name: [row[name] for row in rows] for name in CallReport().to_json()}
    for name in ("usd", "ideal_usd", "bare_usd", "lost_usd"):
        table[name] = [round(value, USD_DIGITS) for value in table[name]]
    table["hit_share"] = [round(value, 4) for value in table["hit_share"]]
    for name in ("at", "seconds_since", "renewed"):
        table[name] = [at if at is None else round(at, TIME_DIGITS) for at in table[name]]
    table["detail"] = [sanitise(text, LINE_CHARS) for text in table["detail"]]
    return table


def _categories(points: Sequence[ContextPoint]) -> tuple[str, ...]:
    there = dict.fromkeys(name for point in points for name in point.parts)
    return tuple(sorted(there, key=lambda name: STACK.index(name) if name in STACK else len(STACK)))


def _context_columns(points: Sequence[ContextPoint], categories: Sequence[str]) -> Columns:
    table: Columns = {"n": [point.n for point in points]}
    table["tokens"] = [point.tokens for point in points]
    for name in categories:
        table[name] = [round(point.parts.get(name, 0.0)) for point in points]
    return table


def _turn_columns(turns: Sequence[ExplainedTurn], states: dict[int, str]) -> Columns:
    return {
        "n": [turn.n for turn in turns],
        "at": [round(turn.at, TIME_DIGITS) for turn in turns],
        "said": [sanitise(turn.said, LINE_CHARS) for turn in turns],
        "answers": [turn.answers for turn in turns],
        "tool_calls": [turn.calls.total() for turn in turns],
        "errors": [turn.errors for turn in turns],
        "usd": [round(turn.spent.usd, USD_DIGITS) for turn in turns],
        "before": [turn.tokens_before for turn in turns],
        "after": [turn.tokens_after for turn in turns],
        "state": [states.get(turn.n, "") for turn in turns],
    }


def _change_columns(turns: Sequence[ExplainedTurn], history: Sequence[AnyEntry]) -> Columns:
    times = {entry.n: round(entry.at, TIME_DIGITS) for entry in history}
    # Count cache breaks that a change by Longhold explains.
    expected = {entry.n for entry in history if isinstance(entry, CacheBroke) and entry.expected}
    acts = [act for turn in turns for act in turn.acts]
    return {
        "n": [act.n for act in acts],
        "at": [times.get(act.n, 0.0) for act in acts],
        "kind": [act.kind for act in acts],
        "text": [sanitise(act.text, LINE_CHARS) for act in acts],
        "saved": [act.saved_tokens for act in acts],
        "is_expected": [act.n in expected for act in acts],
    }


def _compaction_columns(timeline: Timeline, view: View) -> Columns:
    found = timeline.boundaries
    entries, texts = [one.entry for one in found], [text_of(one.entry.summary) for one in found]
    sizes = [_sizes(one, timeline.points) for one in found]
    plain = ("n", "by", "trigger", "first", "last", "kept")
    return {name: [getattr(entry, name) for entry in entries] for name in plain} | {
        "at": [round(entry.at, TIME_DIGITS) for entry in entries],
        "before": [before for before, _ in sizes],
        "after": [after for _, after in sizes],
        "replaced": [one.replaced for one in found],
        "summary": [sanitise(text, SUMMARY_CHARS) for text in texts],
        "chars": [len(text) for text in texts],
        # The number of exact names in the last messages and tool inputs, and those of them that
        # the view lacks afterwards, each with its kind.
        "names": [len(one.names) for one in found],
        "lost": [
            [(sanitise(name, LINE_CHARS), kind) for name, kind in one.lost[:LOST_NAMES]]
            for one in found
        ],
        # The replaced user messages, and whether the view still has them verbatim.
        "words": [[(n, n in one.kept_words) for n in one.words] for one in found],
        "is_undone": [entry.n in view.in_force.dead for entry in entries],
    }


def _sizes(one: Boundary, points: Sequence[ContextPoint]) -> tuple[int, int]:
    before = [point.tokens for point in points if point.n < one.entry.n]
    after = [point.tokens for point in points if point.n > one.entry.n]
    return (
        one.entry.before_tokens or (before[-1] if before else 0),
        one.entry.after_tokens or (after[0] if after else 0),
    )


@dataclass(slots=True)
class _MessageReader:
    view: View
    catalogue: Catalogue = field(default_factory=Catalogue)
    _left: dict[int, AnyEntry] = field(default_factory=dict)

    def rows(self, history: Sequence[AnyEntry], settings: PageSettings) -> list[MessageRow]:
        for entry in history:
            self.catalogue.take(entry)
            if isinstance(entry, ViewChange) and entry.n not in self.view.in_force.dead:
                for span in self.catalogue.find_covered(entry):
                    self._left.update((n, entry) for n in span)
        read = ((entry, record_of(entry)) for entry in history)
        # A piece of an answer may contain only usage.
        found = [(e, one) for e, one in read if one and (one.text or one.kind != "answer")]
        limit = fair_limit([_size(record.text) for _, record in found], settings.text_bytes)
        row = partial(self._message_row, limit=min(limit, MESSAGE_CHARS))
        return [row(entry, record) for entry, record in found]

    def _message_row(self, entry: AnyEntry, record: Record, limit: int) -> MessageRow:
        left = None if is_shown(self.view, entry.n) else self._left.get(entry.n)
        call = self.catalogue.call_of(entry) or self._first_call(entry)
        size, chars = _size(record.text), len(record.text)
        room = limit if size <= limit else limit * chars // size
        text = sanitise(record.text, room)
        return MessageRow(
            n=entry.n,
            at=round(entry.at, TIME_DIGITS),
            kind=record.kind,
            tool=sanitise(call.use.name, LINE_CHARS) if call else "",
            about=sanitise(call.target, LINE_CHARS) if call else "",
            text=text,
            chars=chars if chars > room else len(text),
            is_error=isinstance(entry, Ran) and entry.is_error,
            state=kind_of(left) if left else "shown",
            by=left.n if left else 0,
        )

    def _first_call(self, entry: AnyEntry) -> RecordedCall | None:
        blocks = entry.content if isinstance(entry, Replied) else ()
        uses = (block.id for block in blocks if isinstance(block, ToolUse))
        return next(map(self.catalogue.calls.get, uses), None)


def _size(text: str) -> int:
    return len(msgspec.json.encode(text)) + 5 * text.count("<")
