"""Results that have arrived and were not sent yet.

A result counts as sent once a request was made or an answer came after it; from then on it stays as
it was sent.
"""

import re
from dataclasses import dataclass

from holdfast.log.entries import Asked, Ran
from holdfast.messages import text_of
from holdfast.tools.describe import description_of
from holdfast.view import View
from holdfast.view.items import Round

LOOKED_AT_CHARS = 200
"""Agents print it in the first line or the last."""

_FIRST = re.compile(r"\s*(?:exit code|exit status)[: ]\s*(-?\d{1,3})\b", re.IGNORECASE)
_HEADER = re.compile(r"^(?:exit code: |process exited with code )(\d{1,3})$", re.IGNORECASE | re.M)
_LAST = re.compile(
    r"(?:^|\n)\W*(?:command |process )?(?:exited with (?:code|status)|exit (?:code|status))"
    r":? (-?\d{1,3})\W*$",
    re.IGNORECASE,
)
_METADATA = re.compile(r'"exit_code"\s*:\s*(-?\d{1,3})\s*[,}]')


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    ran: Ran
    tool: str
    text: str
    is_command: bool
    exit_status: int | None

    @property
    def id(self) -> str:
        return self.ran.tool_use_id

    @property
    def has_failed(self) -> bool:
        return self.is_command and (self.ran.is_error or bool(self.exit_status))


def arrived_in(view: View, ran: Ran) -> Arrived | None:
    """Look up the call of a result; None if no call asked for it."""
    owner = view.round_of(ran.tool_use_id)
    if owner is None:
        return None
    text, tool = text_of(ran.content), tool_of(owner, ran.tool_use_id)
    is_command = description_of(tool).kind == "shell"
    status = ran.exit_status
    if status is None and is_command:
        status = exit_status_in(text)
    return Arrived(ran=ran, tool=tool, text=text, is_command=is_command, exit_status=status)


def tool_of(owner: Round, tool_use_id: str) -> str:
    return next((use.name for use in owner.tool_uses() if use.id == tool_use_id), "")


def last_round(view: View) -> Round | None:
    """Return the newest answer; only its results can still be unsent."""
    return next((item for item in reversed(view.items) if isinstance(item, Round)), None)


def unsent(view: View, owner: Round) -> dict[str, Arrived]:
    """Return the newest answer's unsent results that are shown whole, by id.

    Takes time proportional to what arrived since the last request. Skips what the user undid.
    """
    shown = {
        result.id for result in owner.results if result.spilled is None and result.cleared is None
    }
    found: dict[str, Arrived] = {}
    for entry in reversed(view.history):
        if entry.n <= owner.order or (isinstance(entry, Asked) and entry.source == "main"):
            break
        if (
            isinstance(entry, Ran)
            and entry.n in shown
            and entry.tool_use_id not in view.in_force.vetoes
        ):
            arrived = arrived_in(view, entry)
            if arrived is not None:
                found[entry.tool_use_id] = arrived
    return found


def exit_status_in(text: str) -> int | None:
    """Find the exit status in a command's output, if it plainly states one."""
    head, tail = text[:LOOKED_AT_CHARS], text[-LOOKED_AT_CHARS:]
    found = _FIRST.match(head) or _LAST.search(tail)
    if found is None and text.startswith('{"output"'):
        found = _METADATA.search(tail)
    if found is None and "\nOutput:\n" in head:
        found = _HEADER.search(head)
    return int(found[1]) if found else None
