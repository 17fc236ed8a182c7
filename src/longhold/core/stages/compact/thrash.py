"""The guard against compacting over and over because something refills the window.

If the window is full again after a few answers, several times in a row, the heaviest things that
arrived or are always sent are named and acted on. The second time no model is asked for summaries
for a while; the third time work stops with the reason. Work in between makes it forget.
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
"""Stands for every answer: only how many there were matters."""
THRASH_TURNS = 3
"""Answers: a window that is full again after so few was refilled by something."""
THRASH_RATIO = 0.1
"""Of the line: if it is reached again after so little, the compaction was of no use."""
THRASH_TIMES = 3
"""How often in a row before the cause is looked for."""


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
"""From this many streaks on no summaries are paid for."""
CALM = 6
"""Compactions after which a stopped streak is forgotten: one more than a streak has, and some."""
ENOUGH = 3
"""From this many on a person has to act."""
ADVICE = "Ask for less at a time, begin a new session, or use a model with a larger window"
CLEARED = "This result filled the window again and again, and was cleared."
ABOUT_CHARS = 80
HEAVY_SHARE = 0.1
"""Of the line: a single thing this heavy is worth acting on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    said: str
    tokens: int
    ids: tuple[str, ...] = ()
    is_restored: bool = False
    """It is what was restored after the last compaction."""

    @property
    def described(self) -> str:
        return f"{self.said} ({self.tokens:,} tokens)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrashStopped:
    said: str
    has_room: bool
    """The window is under the line now."""


class Guard:
    """Notices that the window keeps refilling, and acts on what refills it."""

    def __init__(self, past: CompactionOutcomes) -> None:
        self._past = past
        self.restores = True
        """Whether files and plans are restored after a compaction."""

    def stop(self, engine: Engine) -> ThrashStopped:
        """Find what refills the window, act on it and describe that; raise if nothing helps."""
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
    """Count the streaks that were stopped; enough compactions without one, and they are forgotten."""
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
    """True if the line was reached again at once, several times in a row.

    At once: after a few answers, or after so little work that the compaction was of no use. One
    that was undone (`dead`) does not count: its history came back with it.
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
    """Itemise what the window holds: by tool, by speaker, and by kind of what is always sent."""
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
"""The ways that ask a model while somebody waits."""
STAGE = "compact: "
FAILURES = 3
"""After this many in a row no model is asked automatically for a while."""
RETRY_SECONDS = 1_800.0
"""Until one is asked again: most outages are over by then."""
RETRY_COMPACTIONS = 5
"""Or after this many compactions made from the log: a summary is worth another try."""


def is_broken(history: Sequence[AnyEntry], now: float) -> bool:
    """True if no model is asked now unless a person wants it."""
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
    waited_seconds = abs(now - failed_at)  # a clock that was set back must not keep it open
    has_waited = waited_seconds >= RETRY_SECONDS or since >= RETRY_COMPACTIONS
    return is_open and not has_waited
