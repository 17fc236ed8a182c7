"""The scribe: what every importer writes with.

An importer walks a foreign transcript and tells the scribe what it finds; the scribe makes
entries of it, numbered, dated and measured, and keeps the account of what was skipped,
malformed or mended. Entries leave one by one, so that a file of any size can be imported.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from holdfast.entries import AnyEntry, Imported, Ran, Replied, Said, SpokenContent
from holdfast.measure import measure_content
from holdfast.messages import (
    Block,
    Content,
    Document,
    Image,
    Json,
    JsonObject,
    Opaque,
    RedactedThinking,
    ResultContent,
    Text,
    Thinking,
    ToolUse,
    Usage,
    block_to_wire,
    usage_from_wire,
)

MODELS_OWN = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
"""Blocks that an API refuses on the user's side, where a broken record may put them."""

_AnyEntry = TypeVar("_AnyEntry", bound=AnyEntry)


@dataclass(slots=True)
class Account:
    """What an import met that has no place in a view, and what it mended."""

    records: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    malformed: list[tuple[int, str]] = field(default_factory=list)
    repaired: Counter[str] = field(default_factory=Counter)

    def usage(self, raw: Json) -> Usage | None:
        """Read what an answer cost; a report that cannot be read is counted, not kept."""
        if not isinstance(raw, dict):
            return None
        try:
            usage = usage_from_wire(raw)
        except (TypeError, ValueError, AttributeError):
            self.repaired["usage that cannot be read"] += 1
            return None
        return usage if usage.total_tokens else None


def speakable(content: Iterable[Block]) -> SpokenContent:
    """Make content for the user's side; what only a model may say is written out as text."""
    return tuple(map(_speakable, content))


def _speakable(block: Block) -> Text | Image | Document | Opaque:
    if isinstance(block, Opaque):
        is_models = str(block.raw.get("type")) in MODELS_OWN
        return _written_out(block.raw) if is_models else block
    if isinstance(block, Text | Image | Document):
        return block
    return _written_out(block_to_wire(block))


def _written_out(wire: JsonObject) -> Text:
    return Text(text=msgspec.json.encode(wire).decode())


class Scribe:
    """Makes numbered entries and keeps the account."""

    def __init__(self) -> None:
        self.account = Account()
        self._n = 0

    @property
    def last(self) -> int:
        """The number of the entry written last."""
        return self._n

    def write(self, entry: _AnyEntry, at: float = 0.0) -> _AnyEntry:
        """Number an entry and date it."""
        self._n += 1
        return msgspec.structs.replace(entry, n=self._n, at=at or entry.at)

    def said(
        self, content: Content, *, at: float = 0.0, origin: str = "", hidden: bool = False
    ) -> Said:
        """Write what came in on the user's side."""
        kept = speakable(content)
        entry = Said(content=kept, hidden=hidden, origin=origin, measure=measure_content(kept))
        return self.write(entry, at)

    def replied(
        self,
        response_id: str,
        content: Content,
        *,
        at: float = 0.0,
        model: str = "",
        stop_reason: str = "",
        usage: Usage | None = None,
        origin: str = "",
    ) -> Replied:
        """Write an answer of the model, or a piece of one."""
        kept = tuple(
            block
            if isinstance(block, Text | Thinking | RedactedThinking | ToolUse | Opaque)
            else Opaque(raw=block_to_wire(block))
            for block in content
        )
        entry = Replied(
            response_id=response_id,
            content=kept,
            model=model,
            stop_reason=stop_reason,
            usage=usage,
            origin=origin,
            measure=measure_content(kept),
        )
        return self.write(entry, at)

    def ran(
        self,
        tool_use_id: str,
        content: ResultContent,
        *,
        at: float = 0.0,
        is_error: bool = False,
        extra: JsonObject | None = None,
        origin: str = "",
    ) -> Ran:
        """Write a tool's result."""
        entry = Ran(
            tool_use_id=tool_use_id,
            content=content,
            is_error=is_error,
            extra=extra,
            origin=origin,
            measure=measure_content(content),
        )
        return self.write(entry, at)

    def imported(self, format: str, source: str) -> Imported:
        """Close the account: the last entry of every import."""
        account = self.account
        return self.write(
            Imported(
                format=format,
                source=source,
                records=account.records,
                skipped=dict(account.skipped),
                malformed=tuple(account.malformed),
                repaired=dict(account.repaired),
            )
        )
