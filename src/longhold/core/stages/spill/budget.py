"""Choose the new tool results that are too long to send. A sent result never changes."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from longhold.core.log.entries import Asked, Ran
from longhold.core.messages import text_of
from longhold.core.settings import SpillSettings
from longhold.core.tools.describe import MCP_CHARS, description_of
from longhold.core.tools.protocol import unwrap_call
from longhold.core.view import View
from longhold.core.view.items import Round, last_round
from longhold.core.view.window import scale_tokens

LOOKED_AT_CHARS = 200  # agents print the exit status in the first or the last line

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


def find_arrived(view: View, ran: Ran) -> Arrived | None:
    owner = view.round_of(ran.tool_use_id)
    if owner is None:
        return None
    text, tool = text_of(ran.content), _tool_of(view, ran.tool_use_id)
    is_command = description_of(tool).kind == "shell"
    status = ran.exit_status
    if status is None and is_command:
        status = exit_status_in(text)
    return Arrived(ran=ran, tool=tool, text=text, is_command=is_command, exit_status=status)


def _tool_of(view: View, tool_use_id: str) -> str:
    use = view.use_of(tool_use_id)
    return unwrap_call(use).name if use is not None else ""


def find_unsent(view: View, owner: Round) -> dict[str, Arrived]:
    """Return the newest answer's unsent results by id, except those whose spill the user undid."""
    shown = {
        result.id for result in owner.results if result.spilled is None and result.cleared is None
    }
    found: dict[str, Arrived] = {}
    for entry in reversed(view.history):
        if entry.n <= owner.order or (isinstance(entry, Asked) and entry.source == "main"):
            break
        if not isinstance(entry, Ran) or entry.n not in shown:
            continue
        if entry.tool_use_id not in view.in_force.vetoes and (arrived := find_arrived(view, entry)):
            found[entry.tool_use_id] = arrived
    return found


def exit_status_in(text: str) -> int | None:
    head, tail = text[:LOOKED_AT_CHARS], text[-LOOKED_AT_CHARS:]
    found = _FIRST.match(head) or _LAST.search(tail)
    if found is None and text.startswith('{"output"'):
        found = _METADATA.search(tail)
    if found is None and "\nOutput:\n" in head:
        found = _HEADER.search(head)
    return int(found[1]) if found else None


FAILED_CHARS = 10_000  # for a failed command, whose ends matter more than its middle
CEILING_CHARS = 400_000  # half of a 200K window, which no setting or tool can exceed
PREVIEW_BYTES = 2_000
FAILED_PREVIEW_BYTES = 6_000  # larger than usual, because models examine failures closely
ERROR_BYTES = 2_000  # limit for error lines of a command's output, in addition to the preview
SMALLEST_LIMIT_CHARS = 1_000  # shorter results are no longer than their previews
SMALLEST_PREVIEW_BYTES = 300  # a smaller preview does not show the kind of the result
MCP = "mcp__"


class PreviewRoom(NamedTuple):
    preview_bytes: int
    error_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    settings: SpillSettings
    window_tokens: int
    declared: Mapping[str, int | None]

    def limit_chars(self, tool: str) -> int | None:
        wanted = self._choose_limit(tool)
        return None if wanted is None else self._scale(wanted, SMALLEST_LIMIT_CHARS)

    def limit_of(self, arrived: Arrived) -> int | None:
        """Return the size limit, or None for the user's words. Failed commands get a lower one."""
        if arrived.ran.refused:
            return None
        limit = self.limit_chars(arrived.tool)
        if limit is None or not arrived.has_failed:
            return limit
        return min(limit, self._scale(FAILED_CHARS, SMALLEST_LIMIT_CHARS))

    @property
    def message_chars(self) -> int:
        return self._scale(self.settings.message_chars, SMALLEST_LIMIT_CHARS)

    def room(self, *, has_failed: bool) -> PreviewRoom:
        wanted = FAILED_PREVIEW_BYTES if has_failed else PREVIEW_BYTES
        return PreviewRoom(
            preview_bytes=self._scale(wanted, SMALLEST_PREVIEW_BYTES),
            error_bytes=self._scale(ERROR_BYTES, SMALLEST_PREVIEW_BYTES),
        )

    def _scale(self, constant: int, least: int) -> int:
        return max(least, scale_tokens(constant, self.window_tokens))

    def _choose_limit(self, tool: str) -> int | None:
        """Choose a tool's limit by its declaration, the setting or its name.

        A read tool known only by name may be unable to show parts of a file, so it gets the
        ceiling.
        """
        settings = self.settings
        is_declared = tool in self.declared
        own = self.declared[tool] if is_declared else description_of(tool).limit_chars
        if own is None:
            return None if is_declared else CEILING_CHARS
        for pattern, chars in overrides(settings.tools):
            if fnmatchcase(tool, pattern):
                return min(chars, CEILING_CHARS)
        if tool.startswith(MCP):
            return min(own if is_declared else MCP_CHARS, CEILING_CHARS)
        return min(own, settings.result_chars)


def is_short(view: View) -> bool:
    owner = last_round(view.items)
    results = owner.results if owner else ()
    return sum(len(text_of(result.content)) for result in results) <= SMALLEST_LIMIT_CHARS


def plan_alone(view: View, budgets: Budgets) -> list[tuple[Arrived, str]]:
    owner = last_round(view.items)
    waiting = find_unsent(view, owner) if owner else {}
    limits = [(arrived, budgets.limit_of(arrived)) for arrived in waiting.values()]
    return [
        (arrived, f"over its {limit:,} characters")
        for arrived, limit in limits
        if limit is not None and len(arrived.text) > limit
    ]


def plan_together(view: View, budgets: Budgets) -> list[tuple[Arrived, str]]:
    owner = last_round(view.items)
    if owner is None:
        return []
    chars = {
        result.tool_use_id: len(text_of(result.block("sent").content))
        for result in owner.results
        if not result.refused
        and budgets.limit_chars(_tool_of(view, result.tool_use_id)) is not None
    }
    limit, total = budgets.message_chars, sum(chars.values())
    if total <= limit:
        return []
    waiting = find_unsent(view, owner)
    why = f"and one message's results came to {total:,} characters, over {limit:,}"
    return [(waiting[id], why) for id in plan_message(chars, waiting, limit)]


def plan_message(
    chars: Mapping[str, int], unsent: Collection[str], limit_chars: int
) -> tuple[str, ...]:
    """Choose results to spill, longest first. Sent results stay, even over the limit."""
    total, chosen = sum(chars.values()), []
    for id in sorted((id for id in chars if id in unsent), key=lambda id: -chars[id]):
        if total <= limit_chars:
            break
        chosen.append(id)
        total -= chars[id]
    return tuple(chosen)


@lru_cache(maxsize=8)
def overrides(text: str) -> tuple[tuple[str, int], ...]:
    """Parse limits by tool from `spill.tools`. The first matching pattern wins."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair.strip())
    return tuple((name.strip(), int(chars)) for name, _, chars in pairs)
