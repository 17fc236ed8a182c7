"""Guard against repeated compactions because something keeps refilling the window.

After a streak of quick compactions, the heaviest contents are named and acted on. After the second
streak no model is called for summaries for a while; after the third, work stops. Normal work in
between resets the count.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from msgspec import structs

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Cleared, Compacted, Failed, Replied, Said
from longhold.core.messages import Usage
from longhold.core.messages.measure import Measure
from longhold.core.messages.text import cut, one_line
from longhold.core.stages.compact.floor import LISTED, floor
from longhold.core.stages.prefix_lock import drops_thinking
from longhold.core.turn.engine import Engine, Fullness
from longhold.core.view import View
from longhold.core.view.items import Result, Round, Spoken
from longhold.errors import ContextOverflow

ANSWERED = Replied(response_id="", content=(), usage=Usage())
THRASH_TURNS = 3
"""If the window is full again after this many answers, something refilled it."""
THRASH_RATIO = 0.1
"""Share of the threshold. If less work than this refills it, the compaction was useless."""
THRASH_TIMES = 3
"""Quick compactions in a row before the cause is searched for."""


class CompactionOutcomes:
    def __init__(self) -> None:
        self._cursor = LogCursor()
        self._entries: list[AnyEntry] = []

    def follow(self, history: Sequence[AnyEntry]) -> Sequence[AnyEntry]:
        if self._cursor.is_past(history):
            self._entries.clear()
        for entry in self._cursor.advance(history):
            match entry:
                case Compacted():
                    self._entries.append(structs.replace(entry, summary=()))
                case Failed():
                    self._entries.append(entry)
                case Replied(usage=Usage()):
                    self._entries.append(ANSWERED)
        return self._entries


WHAT = "thrash"
WITHOUT_MODELS = 2
"""After this many streaks, no model is called for summaries."""
CALM = 6
"""Compactions after which a stopped streak is forgotten. More than a streak has."""
ENOUGH = 3
"""After this many streaks, a person has to act."""
ADVICE = "Ask for less at a time, begin a new session, or use a model with a larger window"
CLEARED = "This result filled the window again and again, and was cleared."
ABOUT_CHARS = 80
HEAVY_SHARE = 0.1
"""Share of the threshold: a single item this heavy is worth acting on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    said: str
    tokens: int
    ids: tuple[str, ...] = ()
    is_restored: bool = False

    @property
    def described(self) -> str:
        return f"{self.said} ({self.tokens:,} tokens)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrashStopped:
    said: str
    has_room: bool


class Guard:
    def __init__(self, past: CompactionOutcomes) -> None:
        self._past = past
        self.restores = True

    def stop(self, engine: Engine) -> ThrashStopped:
        """Find and act on what refills the window, and describe it. Raise if nothing helps."""
        line = engine.fullness().window.auto_tokens
        culprits = _find_culprits(engine.view, engine.make_weigher(), line)
        by = culprits[0].described if culprits else "many small things"
        why = f"the window was refilled again and again, by {by}"
        times = _times_stopped(self._past.follow(engine.view.history)) + 1
        done = [*self._act(engine, culprits, line, why)]
        has_room = engine.fullness().used_tokens < line
        if times >= ENOUGH and not has_room:
            engine.record(Failed(what=WHAT, error=f"{why}; nothing more can be done about it"))
            raise ContextOverflow(
                f"{why}, and compacting does not help. In the window: "
                f"{_itemise_window(engine.view, engine.make_weigher())}. {ADVICE}"
            )
        if times >= WITHOUT_MODELS:
            done.append("no model is asked for a summary for now unless you ask for one")
        said = f"{why}; {', '.join(done) or 'this summary is made from the log, at no cost'}"
        engine.record(Failed(what=WHAT, error=said))
        return ThrashStopped(said=said, has_room=has_room)

    def _act(self, engine: Engine, culprits: list[Culprit], line: int, why: str) -> Iterator[str]:
        for culprit in culprits:
            if culprit.is_restored and self.restores:
                self.restores = False
                yield "files are no longer shown again after a compaction"
            elif culprit.ids and engine.fullness().used_tokens >= line:
                text = f"{CLEARED} It was {culprit.said}; ask for less of it at a time."
                drops = drops_thinking(engine)
                cleared = Cleared(ids=culprit.ids, texts=(text,), why=why, drops_thinking=drops)
                engine.record(cleared)
                yield f"{culprit.said} was cleared"


def _times_stopped(history: Sequence[AnyEntry]) -> int:
    """Count the streaks that were stopped. Enough compactions without a streak reset the count."""
    stopped = calm = 0
    for entry in history:
        match entry:
            case Failed(what=what) if what == WHAT:
                stopped, calm = stopped + 1, 0
            case Compacted(trigger="auto" | "reactive"):
                calm += 1
                stopped = stopped if calm <= CALM else 0
    return stopped


def may_ask_models(history: Sequence[AnyEntry]) -> bool:
    return _times_stopped(history) < WITHOUT_MODELS


def is_thrashing(past: Sequence[AnyEntry], dead: frozenset[int], full: Fullness) -> bool:
    """True if the threshold was reached again quickly, several times in a row.

    An undone compaction (`dead`) does not count, because undoing it brought its history back.
    """
    little = THRASH_RATIO * full.window.auto_tokens
    streak, answers, left = 0, None, 0

    def is_quick(now_tokens: int) -> bool:
        if answers is None:
            return False
        return answers <= THRASH_TURNS or 0 < now_tokens - left < little

    for entry in past:
        match entry:
            case Replied(usage=usage) if usage is not None and answers is not None:
                answers += 1
            case Compacted(trigger="auto" | "reactive") if entry.n not in dead:
                streak = streak + 1 if is_quick(entry.before_tokens) else 0
                answers, left = 0, entry.after_tokens
            case Failed(what=what) if what == WHAT:
                streak, answers = 0, None
    return is_quick(full.used_tokens) and streak + 1 >= THRASH_TIMES


def _find_culprits(view: View, weigh: Callable[[Measure], float], line: int) -> list[Culprit]:
    found = sorted(
        (*_find_arrived(view, weigh), *_find_constant(view, weigh)), key=lambda each: -each.tokens
    )
    return [each for each in found if each.tokens >= HEAVY_SHARE * line]


def _itemise_window(view: View, weigh: Callable[[Measure], float]) -> str:
    sizes: Counter[str] = Counter()
    for weight in floor(view, weigh):
        if weight.kind in ("instructions", "tools", "system"):
            sizes[weight.kind] += weight.tokens
    for item in view.items:
        if isinstance(item, Spoken):
            name = {"said": "messages", "restored": "restored files"}.get(item.kind, "summaries")
            sizes[name] += round(weigh(item.measure))
            continue
        tools = {use.id: use.name for use in item.tool_uses()}
        results = 0
        for result in item.results:
            tokens = round(weigh(result.seen_measure))
            sizes[f"results of {tools.get(result.tool_use_id, 'tools')}"] += tokens
            results += tokens
        sizes["answers"] += max(0, round(weigh(item.measure)) - results)
    return ", ".join(f"{name} {tokens:,}" for name, tokens in sizes.most_common(LISTED))


def _find_constant(view: View, weigh: Callable[[Measure], float]) -> Iterator[Culprit]:
    weights = floor(view, weigh)
    names = {"instructions": "the instructions", "tools": "the tools", "system": "the prompt"}
    for kind, name in names.items():
        tokens = sum(weight.tokens for weight in weights if weight.kind == kind)
        yield Culprit(said=f"{name} in every request", tokens=tokens)


def _find_arrived(view: View, weigh: Callable[[Measure], float]) -> Iterator[Culprit]:
    rules = {e.n: e.sources for e in view.history if isinstance(e, Said) and e.sources}
    for item in view.items:
        match item:
            case Spoken(kind="restored"):
                said = "what is brought back after each compaction"
                yield Culprit(said=said, tokens=round(weigh(item.measure)), is_restored=True)
            case Spoken(kind="said"):
                files = ", ".join(source.file for source in rules.get(item.id, ()))
                said = f"the rules of {files}" if files else f"message #{item.id}"
                yield Culprit(said=said, tokens=round(weigh(item.measure)))
            case Round():
                for result in item.results:
                    yield Culprit(
                        said=f"the result of {_name_call(item, result)}",
                        tokens=round(weigh(result.seen_measure)),
                        ids=(result.tool_use_id,) if result.cleared is None else (),
                    )


def _name_call(item: Round, result: Result) -> str:
    use = next((use for use in item.tool_uses() if use.id == result.tool_use_id), None)
    if use is None:
        return result.tool_use_id
    about = next((value for value in use.input.values() if isinstance(value, str) and value), "")
    return f"{use.name} {cut(one_line(about), ABOUT_CHARS)}".strip()


WAYS = frozenset({"provider", "fork", "direct", "pieces"})
STAGE = "compact: "
FAILURES = 3
"""After this many failures in a row, no model is called automatically for a while."""
RETRY_SECONDS = 1_800.0
"""When a model is called again. Most outages are over by then."""
RETRY_COMPACTIONS = 5
"""A model is also called again after this many compactions from the log."""


def is_broken(history: Sequence[AnyEntry], now: float) -> bool:
    """True if only manual compactions may call a model now."""
    in_a_row, since, failed_at, has_failed = 0, 0, 0.0, False
    for entry in history:
        match entry:
            case Failed(what=what, at=at) if what.removeprefix(STAGE) in WAYS:
                has_failed, failed_at = True, at
            case Compacted(by="model" | "provider"):
                in_a_row, since, has_failed = 0, 0, False
            case Compacted(by="digest") if has_failed:
                in_a_row, since, has_failed = in_a_row + 1, 0, False
            case Compacted(by="digest"):
                since += 1
    is_open = in_a_row >= FAILURES
    waited_seconds = abs(now - failed_at)  # a clock that was set back must not block retries
    has_waited = waited_seconds >= RETRY_SECONDS or since >= RETRY_COMPACTIONS
    return is_open and not has_waited
