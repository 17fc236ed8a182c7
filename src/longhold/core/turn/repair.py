"""Results for tool calls that a dead process left open. No call is ever run again."""

import re
from collections.abc import Iterable, Iterator, Sequence

from longhold.core.log import Damage
from longhold.core.log.entries import AnyEntry, Began, Failed, Imported, Ran
from longhold.core.messages import text_of
from longhold.core.messages.usage import fields_of
from longhold.core.view import View

ENDED = "the session ended"
NOT_RUN = f"The tool was not run: {ENDED} before it began."
MAY_HAVE_RUN = (
    f"No result was recorded: {ENDED}. The tool may have run, fully or in part; "
    "check what it did before calling it again."
)
INTERRUPTED = (
    f"No result was recorded: {ENDED} while the tool ran. It may have done all of its work, "
    "or part of it; check that before calling it again."
)
_INTERRUPTED_BEFORE = f"The tool was interrupted: {ENDED} while it ran. It was not run again."
"""Logs of version 0.1.0 contain this text."""
_REPAIR = re.compile(
    "|".join(
        re.escape(text).replace(re.escape(ENDED), ".+")
        for text in (NOT_RUN, MAY_HAVE_RUN, INTERRUPTED, _INTERRUPTED_BEFORE)
    )
)


def is_repair(ran: Ran) -> bool:
    return ran.is_error and _REPAIR.fullmatch(text_of(ran.content)) is not None


def plan_repair(view: View, reason: str = ENDED) -> Iterator[Ran]:
    last = view.open_round()
    if last is None:
        return
    began = {use.id for use in view.list_interrupted()}
    unknown = NOT_RUN if _records_beginnings(view) else MAY_HAVE_RUN
    for use in last.missing():
        text = INTERRUPTED if use.id in began else unknown
        yield Ran(tool_use_id=use.id, content=text.replace(ENDED, reason), is_error=True)


def _records_beginnings(view: View) -> bool:
    begun, ran, is_ours = set[str](), set[str](), view.configured is None
    for entry in view.history:
        match entry:
            case Began(tool_use_id=id):
                begun.add(id)
            case Ran(tool_use_id=id) if not is_repair(entry):
                ran.add(id)
            case Imported():
                is_ours = False
    return ran <= begun and (is_ours or bool(begun))


WHAT = "damage"
SHOWN = 3  # Number of lines named. The entry has all line numbers.


def plan_report(
    damage: Iterable[Damage], misfits: Iterable[tuple[int, str]], history: Sequence[AnyEntry]
) -> Failed | None:
    known_lines, known_entries = _list_reported(history)
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
        said = f"the log is damaged, and the model may lack messages: {'; '.join(named[:SHOWN])}"
    detail = {"lines": [found.line for found in lines], "entries": [n for n, _ in entries]}
    return Failed(what=WHAT, error=said + more, detail=detail)


def _list_reported(history: Sequence[AnyEntry]) -> tuple[set[object], set[object]]:
    lines: set[object] = set()
    entries: set[object] = set()
    for entry in history:
        if isinstance(entry, Failed) and entry.what == WHAT:
            detail = fields_of(entry.detail)
            lines.update(detail.get("lines") or ())
            entries.update(detail.get("entries") or ())
    return lines, entries
