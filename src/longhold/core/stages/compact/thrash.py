"""Guard against repeated compactions when something keeps refilling the window.

After a streak of quick compactions, Longhold names and clears the largest content. After the second
streak, no model writes summaries for a while. After the third, work stops. Normal work in between
resets the count.
"""

from collections.abc import Mapping, Sequence
from itertools import product

from longhold.core.log.entries import AnyEntry, Cleared, Compacted, Failed, Replied
from longhold.core.messages import text_of
from longhold.core.messages.measure import measure_result
from longhold.core.messages.text import pluralize
from longhold.core.policy.decide import REFILLED, WITHOUT_MODELS
from longhold.core.policy.threshold import Fullness, floor, weigh_parts
from longhold.core.stages.space import drops_thinking
from longhold.core.turn.engine import Engine
from longhold.core.view.items import Round

THRASH_TURNS = 3
"""If the window is full again after this many answers, the compaction counts as quick."""
THRASH_RATIO = 0.1
"""Share of the threshold. If less new content refills the window, the compaction was useless."""
THRASH_TIMES = 3
"""Number of quick compactions in a row that make a streak."""
WHAT = "thrash"
CALM = 6
"""After this many compactions without a streak, earlier streaks are forgotten."""
CLEARED = "This result filled the window again and again, and was cleared."
HEAVY_SHARE = 0.1
"""An item that takes this share of the threshold is large enough to act on."""


def relieve(engine: Engine, *, restores: bool) -> tuple[str, bool]:
    """Find the content that refills the window, clear it if possible, and record it.

    Return a line for the user, and whether compactions still restore files.
    """
    line, done = engine.fullness().window.auto_tokens, list[str]()
    found = weigh_parts(engine.view, engine.make_weigher())
    # Results that the model has not read are not the cause, because it has just requested them.
    heavy = [one for one in found if one.tokens >= HEAVY_SHARE * line and one.kind != "waiting"]
    why = f"{REFILLED}, by {heavy[0] if heavy else 'many small things'}"
    for one in heavy:
        if one.kind == "restored" and restores:
            restores = False
            done.append("files are no longer shown again after a compaction")
        elif one.id and engine.fullness().used_tokens >= line:
            text = f"{CLEARED} It was {one.name}; ask for less of it at a time."
            record_shortened(engine, {one.id: text}, why, "relieve")
            done.append(f"{one.name} was cleared")
    if count_streaks(engine.view.history) + 1 >= WITHOUT_MODELS:
        done.append("no model writes summaries for now, unless you request one")
    said = f"{why}; {', '.join(done) or 'this summary is made from the log, at no cost'}"
    engine.record(Failed(what=WHAT, error=said))
    return said, restores


def record_shortened(engine: Engine, texts: Mapping[str, str], why: str, rule: str) -> None:
    engine.record(
        Cleared(
            ids=tuple(texts),
            texts=tuple(texts.values()),
            measures=tuple(map(measure_result, texts.values())),
            why=why,
            drops_thinking=drops_thinking(engine),
            rule=rule,
        )
    )


def count_streaks(history: Sequence[AnyEntry]) -> int:
    """Count the streaks that were stopped. Enough calm compactions reset the count."""
    stopped = calm = 0
    for entry in history:
        match entry:
            case Failed(what=what) if what == WHAT:
                stopped, calm = stopped + 1, 0
            case Compacted(trigger="auto" | "reactive"):
                calm += 1
                stopped = stopped if calm <= CALM else 0
    return stopped


def is_thrashing(past: Sequence[AnyEntry], dead: frozenset[int], full: Fullness) -> bool:
    """Return whether the threshold was reached again quickly, several times in a row.

    An undone compaction (`dead`) does not count, because the undo restored its history.
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


UNREAD_CHARS = (2_000, 1_000, 500, 200)
"""Lengths to which results that exceed the window are cut. The first that fits is used."""
FITTING_SHARE = 0.95
"""Share of the limit to fill with shortened results, so that a summary still fits."""


def shorten_unread(engine: Engine, limit: int) -> str:
    """Shorten results that the model has not read yet, heaviest first, if they exceed the limit.

    This is the last resort. Return a line for the user, or "".
    """
    weigh, view = engine.make_weigher(), engine.view
    total = sum(weight.tokens for weight in floor(view, weigh))
    if total < limit:
        return ""
    rounds = [item for item in view.items[view.count_compactable() :] if isinstance(item, Round)]
    found = [result for item in rounds for result in item.results if result.cleared is None]
    found.sort(key=lambda result: -weigh(result.seen_measure))
    excess, texts = total - FITTING_SHARE * limit, dict[str, str]()
    for chars, result in product(UNREAD_CHARS, found):
        id, whole = result.tool_use_id, text_of(result.content)
        left = f"{max(0, len(whole) - chars):,} more characters do not fit into the context window"
        text = f"{whole[:chars]}\n[{left}. Ask for less at a time.]"
        now = measure_result(texts[id]) if id in texts else result.seen_measure
        saved = weigh(now) - weigh(measure_result(text))
        if excess > 0 and saved > 0:
            texts[id] = text
            excess -= saved
    if not texts:
        return ""
    why = f"shortened {pluralize(len(texts), 'result')} that alone exceeded the window"
    record_shortened(engine, texts, why, "shorten")
    return why


WAYS = frozenset({"provider", "fork", "direct", "pieces"})
"""Ways of summarising that call a model. Logs of earlier versions also have `pieces`."""
STAGE = "compact: "
FAILURES = 3
"""After this many failures in a row, no model is called automatically for a while."""
RETRY_SECONDS = 1_800.0
"""Delay in seconds before a model is called again. Most outages are over by then."""
RETRY_COMPACTIONS = 5
"""After this many compactions without a model, a model is called again, too."""


def is_broken(history: Sequence[AnyEntry], now: float) -> bool:
    """Return whether only manual compactions may call a model now."""
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
    waited_seconds = abs(now - failed_at)  # a clock that was set back must not block retries
    has_waited = waited_seconds >= RETRY_SECONDS or since >= RETRY_COMPACTIONS
    return in_a_row >= FAILURES and not has_waited
