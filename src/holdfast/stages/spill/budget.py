"""How long a result may be, and which results of a message are spilled if it is too long. Pure.

Limits depend on the tool, the settings and the model's window; they are for 200K tokens and shrink
with smaller windows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from holdfast.messages import text_of
from holdfast.settings import SpillSettings
from holdfast.stages.spill.pending_results import Arrived, last_round, tool_of, unsent
from holdfast.stages.spill.preview import PreviewRoom
from holdfast.tools.describe import MCP_CHARS, description_of
from holdfast.view import View
from holdfast.view.window import scaled

SMALLEST_LIMIT_CHARS = 1_000
"""Shorter results are no longer than their previews."""
SMALLEST_PREVIEW_BYTES = 300
"""Less does not show what a result is."""
MCP = "mcp__"
"""Tools of MCP servers have a limit of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A result of one message: its length as shown, and whether it may still be spilled."""

    tool_use_id: str
    chars: int
    is_free: bool
    """It was never sent or spilled, and its tool has a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    settings: SpillSettings
    window_tokens: int
    declared: Mapping[str, int | None]
    """The limits that tools declare, by name."""

    def limit_chars(self, tool: str) -> int | None:
        """Return how long a tool's result may be; None means no limit."""
        wanted = self._wanted(tool)
        return None if wanted is None else self._scaled(wanted, SMALLEST_LIMIT_CHARS)

    def limit_of(self, arrived: Arrived) -> int | None:
        """Return how long this result may be: less for a failed command."""
        limit = self.limit_chars(arrived.tool)
        if limit is None or not arrived.has_failed:
            return limit
        return min(limit, self._scaled(self.settings.failed_chars, SMALLEST_LIMIT_CHARS))

    @property
    def message_chars(self) -> int:
        """How long all results of one message may be together."""
        return self._scaled(self.settings.message_chars, SMALLEST_LIMIT_CHARS)

    def room(self, *, has_failed: bool) -> PreviewRoom:
        wanted = self.settings.failed_preview_bytes if has_failed else self.settings.preview_bytes
        errors = self.settings.error_bytes
        return PreviewRoom(
            preview_bytes=self._scaled(wanted, SMALLEST_PREVIEW_BYTES),
            error_bytes=self._scaled(errors, min(errors, SMALLEST_PREVIEW_BYTES)),
        )

    def _scaled(self, constant: int, least: int) -> int:
        return max(least, scaled(constant, self.window_tokens))

    def _wanted(self, tool: str) -> int | None:
        """Choose a tool's limit: its own "never", the user's setting, its declaration, its name.

        A tool known only by name to read files has just the ceiling: unlike ours it may be unable to
        show a file in parts.
        """
        settings = self.settings
        is_declared = tool in self.declared
        own = self.declared[tool] if is_declared else description_of(tool).limit_chars
        if own is None:
            return None if is_declared else settings.ceiling_chars
        for pattern, chars in overrides(settings.tools):
            if fnmatchcase(tool, pattern):
                return min(chars, settings.ceiling_chars)
        if tool.startswith(MCP):
            return min(own if is_declared else MCP_CHARS, settings.ceiling_chars)
        return min(own, settings.result_chars)


def plan_alone(view: View, budgets: Budgets) -> list[tuple[Arrived, str]]:
    """Choose unsent results over their own limit, each with the reason."""
    owner = last_round(view)
    waiting = unsent(view, owner) if owner else {}
    limits = [(arrived, budgets.limit_of(arrived)) for arrived in waiting.values()]
    return [
        (arrived, f"over its {limit:,} characters")
        for arrived, limit in limits
        if limit is not None and len(arrived.text) > limit
    ]


def plan_together(view: View, budgets: Budgets) -> list[tuple[Arrived, str]]:
    """Choose unsent results of a message that is too long as a whole, each with the reason."""
    owner = last_round(view)
    waiting = unsent(view, owner) if owner else {}
    if owner is None or not waiting:
        return []
    weighed = [
        Weighed(
            tool_use_id=result.tool_use_id,
            chars=len(text_of(result.block("sent").content)),
            is_free=result.tool_use_id in waiting,
        )
        for result in owner.results
        if budgets.limit_chars(tool_of(owner, result.tool_use_id)) is not None
    ]
    limit = budgets.message_chars
    total = sum(one.chars for one in weighed)
    why = f"and one message's results came to {total:,} characters, over {limit:,}"
    return [(waiting[id], why) for id in plan_message(weighed, limit)]


def plan_message(results: Sequence[Weighed], limit_chars: int) -> tuple[str, ...]:
    """Choose results to spill, the longest first, until the rest is within the limit.

    What was sent stays as it was sent, even if that alone is over the limit.
    """
    total = sum(result.chars for result in results)
    chosen = []
    free = [result for result in results if result.is_free]
    for result in sorted(free, key=lambda result: -result.chars):
        if total <= limit_chars:
            break
        chosen.append(result.tool_use_id)
        total -= result.chars
    return tuple(chosen)


@lru_cache(maxsize=8)
def overrides(text: str) -> tuple[tuple[str, int], ...]:
    """Parse limits by tool from `spill.tools`; the first matching pattern counts."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair.strip())
    return tuple((name.strip(), int(chars)) for name, _, chars in pairs)
