"""The guard against compacting over and over: something refills the window, and it has a name.

A window that is full again after a few answers, several times in a row, is not helped by one
more summary. The log knows what came in since the last one: the heaviest of it is named, and
acted on, before anything else is tried.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from holdfast.digest.words import cut, one_line
from holdfast.entries import AnyEntry, Compacted, Failed, Replied
from holdfast.items import Item, Result, Round, Spoken
from holdfast.measure import Measure
from holdfast.settings import CompactSettings
from holdfast.view import View

WHAT = "thrash"
"""What the entry that ends a streak goes by."""
ABOUT_CHARS = 80
"""Of a call's input: enough to know which file or command it was."""
HEAVY_SHARE = 0.1
"""Of the line: a single thing this heavy is worth acting on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """What refilled the window."""

    said: str
    """In words for the user."""
    tokens: int
    ids: tuple[str, ...] = ()
    """Results that can be cleared."""
    is_restored: bool = False
    """It is what was brought back after the last compaction."""


def is_thrashing(history: Sequence[AnyEntry], settings: CompactSettings) -> bool:
    """Say whether the window was refilled within a few answers, several times in a row."""
    streak, answers = 0, None
    for entry in history:
        match entry:
            case Replied(usage=usage) if usage is not None and answers is not None:
                answers += 1
            case Compacted(trigger="auto" | "reactive"):
                is_quick = answers is not None and answers <= settings.thrash_turns
                streak, answers = streak + 1 if is_quick else 0, 0
            case Failed(what="thrash"):
                streak, answers = 0, None
    is_quick = answers is not None and answers <= settings.thrash_turns
    return is_quick and streak + 1 >= settings.thrash_times


def find_culprit(view: View, weigh: Callable[[Measure], float], line: int) -> Culprit | None:
    """Name the heaviest thing that came in since the last compaction, if one is heavy."""
    found = max(_came(view.items, weigh), key=lambda culprit: culprit.tokens, default=None)
    return found if found and found.tokens >= HEAVY_SHARE * line else None


def _came(items: Iterable[Item], weigh: Callable[[Measure], float]) -> Iterable[Culprit]:
    for item in items:
        match item:
            case Spoken(kind="restored"):
                said = "what is brought back after each compaction"
                yield Culprit(said=said, tokens=round(weigh(item.measure)), is_restored=True)
            case Spoken(kind="said"):
                yield Culprit(said=f"message #{item.id}", tokens=round(weigh(item.measure)))
            case Round():
                for result in item.results:
                    yield Culprit(
                        said=f"the result of {_called(item, result)}",
                        tokens=round(weigh(result.seen_measure)),
                        ids=(result.tool_use_id,) if result.cleared is None else (),
                    )


def _called(item: Round, result: Result) -> str:
    """Say which call a result is of: the tool and what it was about."""
    use = next((use for use in item.tool_uses() if use.id == result.tool_use_id), None)
    if use is None:
        return result.tool_use_id
    about = next((value for value in use.input.values() if isinstance(value, str) and value), "")
    return f"{use.name} {cut(one_line(about), ABOUT_CHARS)}".strip()
