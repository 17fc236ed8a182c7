"""What is wrong with a log, reported when a session goes on, each thing once.

A damaged line is not repaired: the log is append-only. It stays out of the view, and an entry says
so, which is also how it is known that it was reported.
"""

from collections.abc import Iterable, Sequence

from holdfast.log import Damage
from holdfast.log.entries import AnyEntry, Failed
from holdfast.messages.usage import fields_of

WHAT = "damage"
SHOWN = 3
"""Lines that are named; the entry has the numbers of all."""


def plan_report(
    damage: Iterable[Damage], misfits: Iterable[tuple[int, str]], history: Sequence[AnyEntry]
) -> Failed | None:
    """Return an entry about damaged lines, and entries that do not fit, which no entry mentions."""
    known_lines, known_entries = _reported(history)
    lines = [found for found in damage if found.line not in known_lines]
    entries = [(n, why) for n, why in misfits if n not in known_entries]
    if not lines and not entries:
        return None
    named = [f"line {found.line}: {found.reason}" for found in lines]
    named += [f"entry {n}: {why}" for n, why in entries]
    more = f"; and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    if all(found.torn for found in lines) and not entries:
        said = "the last line was cut short when the process that wrote it died; it is left out"
    else:
        said = f"the log is damaged, and the model may miss something: {'; '.join(named[:SHOWN])}"
    detail = {"lines": [found.line for found in lines], "entries": [n for n, _ in entries]}
    return Failed(what=WHAT, error=said + more, detail=detail)


def _reported(history: Sequence[AnyEntry]) -> tuple[set[object], set[object]]:
    lines: set[object] = set()
    entries: set[object] = set()
    for entry in history:
        if isinstance(entry, Failed) and entry.what == WHAT:
            detail = fields_of(entry.detail)
            lines.update(detail.get("lines") or ())
            entries.update(detail.get("entries") or ())
    return lines, entries
