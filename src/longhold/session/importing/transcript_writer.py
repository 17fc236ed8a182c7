"""Write an importer's entries one by one, with numbers, times and measures."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, TypeVar, Unpack

import msgspec

from longhold.core.log.entries import AnyEntry, Forked, Framed, Imported, Ran, Replied, Said
from longhold.core.messages import Content, Json, Text, ToolResult, ToolUse, Usage, usage_from_wire
from longhold.core.messages.measure import measure_content
from longhold.core.messages.text import clean_line
from longhold.core.messages.usage import has_odd_counts
from longhold.core.view.block_roles import to_answer, to_spoken

NAME_CHARS = 200
"""Maximum length of a model's or tool's name. No provider accepts longer ones."""

_AnyEntry = TypeVar("_AnyEntry", bound=AnyEntry)


@dataclass(slots=True)
class ImportAccount:
    records: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    malformed: list[tuple[int, str]] = field(default_factory=list)
    repaired: Counter[str] = field(default_factory=Counter)

    def count(self) -> None:
        self.records += 1

    def usage(self, raw: Json) -> Usage | None:
        if not isinstance(raw, dict):
            return None
        usage = usage_from_wire(raw)
        if usage.total_tokens:
            return usage
        self.repaired.update(["usage that cannot be read"] * has_odd_counts(raw))
        return None


class OfAnswer(TypedDict, total=False):
    at: float
    model: str
    stop_reason: str
    usage: Usage | None
    thinking: str
    origin: str


class TranscriptWriter:
    """Writes an importer's entries, with calls from other files, such as sub-agents' files."""

    def __init__(self, beside: Sequence[Forked] = ()) -> None:
        self.account = ImportAccount()
        self._n = 0
        self._beside = deque(sorted(beside, key=lambda call: call.at))
        self._known = {call.response_id for call in beside if call.response_id}

    def is_beside(self, response_id: str) -> bool:
        return response_id in self._known

    def beside(self, until: float) -> Iterator[Forked]:
        while self._beside and self._beside[0].at <= until:
            yield self.write(self._beside.popleft())

    @property
    def last(self) -> int:
        return self._n

    def write(self, entry: _AnyEntry, at: float = 0.0) -> _AnyEntry:
        self._n += 1
        return msgspec.structs.replace(entry, n=self._n, at=at or entry.at)

    def write_message(
        self, content: Content, *, at: float = 0.0, origin: str = "", hidden: bool = False
    ) -> Said:
        kept = to_spoken(content)
        entry = Said(content=kept, hidden=hidden, origin=origin, measure=measure_content(kept))
        return self.write(entry, at)

    def write_answer(self, response_id: str, content: Content, **more: Unpack[OfAnswer]) -> Replied:
        """Write an answer. Names of models and tools are printed everywhere, so each is one line."""
        kept = to_answer(
            msgspec.structs.replace(each, name=clean_line(each.name, NAME_CHARS))
            if isinstance(each, ToolUse)
            else each
            for each in content
        )
        more["model"] = clean_line(more.get("model", ""), NAME_CHARS)
        entry = Replied(
            response_id=response_id, content=kept, measure=measure_content(kept), **more
        )
        return self.write(entry)

    def ran(
        self, block: ToolResult, *, at: float = 0.0, origin: str = "", refused: str | None = None
    ) -> Ran:
        content = block.content
        kept = content if isinstance(content, str) else to_spoken(content)
        entry = Ran(
            tool_use_id=block.tool_use_id,
            content=kept,
            is_error=block.is_error,
            refused=refused,
            extra=block.extra,
            measure=measure_content(kept),
            origin=origin,
        )
        return self.write(entry, at)

    def write_frame(self, frame: Framed, at: float = 0.0) -> Framed:
        texts = [section.text for section in frame.sections]
        texts += [msgspec.json.encode(tool).decode() for tool in frame.tools]
        measure = measure_content([Text(text=text) for text in texts])
        return self.write(msgspec.structs.replace(frame, measure=measure), at)

    def write_import(self, format: str, source: str) -> Imported:
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
