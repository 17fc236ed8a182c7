"""Check whether exact names in use survive a compaction, and index the missing ones.

Names only in tool results are counted separately: running the tool again shows them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from longhold.core.messages import Json, Text, ToolUse, text_of
from longhold.core.stages.compact.digest.context import LIMITS, DigestLimits
from longhold.core.stages.compact.digest.pieces import Count
from longhold.core.stages.facts.names import NameKind, find_names
from longhold.core.view.items import Item, Round, Spoken
from longhold.core.view.tokens import estimate_tokens

HEADING = "Names in use lately that are not above:"

_ORDER: tuple[NameKind, ...] = ("path", "id", "address", "flag", "name", "number")
"""Names that cannot be guessed come first, bare numbers last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names by use: in messages before only in tool inputs, then the most used first."""

    said: dict[str, NameKind]
    seen: dict[str, NameKind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    names: int
    missing: int
    index: str
    listed: int

    @property
    def share(self) -> float:
        return 1 - (self.missing - self.listed) / self.names if self.names else 1.0


def recent_names(
    items: Sequence[Item], directives: Iterable[str] = (), limits: DigestLimits = LIMITS
) -> Names:
    rounds = [item for item in items if isinstance(item, Round)][-limits.current_rounds :]
    asked = [item for item in items if isinstance(item, Spoken) and item.is_asked()]
    texts = [text_of(item.content) for item in asked[-limits.current_messages :]]
    blocks = [block for each in rounds for block in each.content]
    answers = (block.text for block in blocks if isinstance(block, Text))
    spoken = _count_names((*texts, *directives, *answers))
    inputs = (block.input for block in blocks if isinstance(block, ToolUse))
    given = _count_names(text for given in inputs for text in _strings(given))
    said = spoken | {name: kind for name, kind in given.items() if name not in spoken}
    seen: dict[str, NameKind] = {}
    for result in (result for r in rounds for result in r.results):
        seen.update(find_names(text_of(result.content)))
    return Names(said=said, seen={n: kind for n, kind in seen.items() if n not in said})


def check_survival(
    text: str, names: Names, budget_tokens: int, count: Count = estimate_tokens
) -> Survival:
    missing = {name: kind for name, kind in names.said.items() if name not in text}
    index, listed = _index(_order(missing, text), budget_tokens, count)
    return Survival(names=len(names.said), missing=len(missing), index=index, listed=listed)


def _count_names(texts: Iterable[str]) -> dict[str, NameKind]:
    times: Counter[str] = Counter()
    kinds: dict[str, NameKind] = {}
    for text in texts:
        found = find_names(text)
        times.update(found.keys())
        kinds.update(found)
    return {name: kinds[name] for name, _ in times.most_common()}


def _strings(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _strings(inner)
        case list():
            for inner in value:
                yield from _strings(inner)
        case int() | float() if not isinstance(value, bool):
            yield str(value)


def _order(missing: dict[str, NameKind], text: str) -> list[tuple[str, NameKind]]:
    """Sort names that cannot be guessed first. Paths whose file the text names follow all names."""
    paths = [name for name, kind in missing.items() if kind == "path"]
    known = {
        path
        for path in paths
        if path.rstrip("/").rpartition("/")[2] in text or not _FILE.search(path)
    }
    return [
        *((name, k) for kind in _ORDER[:-1] for name, k in missing.items() if k == kind and name not in known),
        *((name, k) for name, k in missing.items() if name in known),
        *((name, k) for name, k in missing.items() if k == _ORDER[-1]),
    ]  # fmt: skip


_FILE = re.compile(r"\.\w+$|^[/~.]")
"""Distinguishes a path from two words joined by a slash: it has an extension or a root."""


def _index(
    missing: list[tuple[str, NameKind]], budget_tokens: int, count: Count
) -> tuple[str, int]:
    """List names by kind while they fit. A name that is part of a listed name is skipped."""
    chosen: dict[NameKind, list[str]] = {}
    spent = count(HEADING)
    listed = 0
    for name, kind in missing:
        if any(name in other for others in chosen.values() for other in others):
            listed += 1
            continue
        price = count(name) + 1
        if spent + price > budget_tokens:
            continue
        spent += price
        listed += 1
        chosen.setdefault(kind, []).append(name)
    lines = [
        f"- {kind}{'es' if kind == 'address' else 's'}: {', '.join(chosen[kind])}"
        for kind in _ORDER
        if kind in chosen
    ]
    return ("\n".join([HEADING, *lines]) if lines else ""), listed
