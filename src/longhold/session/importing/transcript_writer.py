"""Writes an importer's entries one by one, with numbers, times and measures."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, TypeVar, Unpack

import msgspec

from longhold.core.log.entries import (
    AnyEntry,
    Compacted,
    Forked,
    Framed,
    Imported,
    Ran,
    Replied,
    Said,
    SpokenContent,
)
from longhold.core.messages import (
    Block,
    Content,
    Json,
    Text,
    ToolResult,
    ToolUse,
    Usage,
    is_blank,
    usage_from_wire,
)
from longhold.core.messages.measure import measure_content
from longhold.core.messages.rules import resolve_block
from longhold.core.messages.text import clean_line
from longhold.core.messages.usage import has_odd_counts
from longhold.core.view.block_roles import to_answer, to_spoken
from longhold.core.wire.messages import split_results

NAME_CHARS = 200  # maximum length of a model's or tool's name. No provider accepts longer ones.

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


class Dialogue:
    """Pairs calls and results of a file, even a damaged one. The account counts repairs. An answer
    in several pieces becomes one round. A duplicate id is renamed together with its result.
    """

    def __init__(self, writer: TranscriptWriter) -> None:
        self._writer = writer
        self._repaired = writer.account.repaired
        self._answer = ""
        """The answer that another piece would continue, or "" once anything else followed it."""
        self._last_answer = ""
        self._waiting: dict[str, list[str]] = {}
        """Tool uses of the last answer without a result, as Longhold's ids by the file's id."""
        self._ours: dict[str, str] = {}
        self._taken: set[str] = {""}
        self._copies: Counter[str] = Counter()
        self._answered: set[str] = set()
        self._first = 0

    def write_message(
        self, content: Content, *, at: float = 0.0, origin: str = "", hidden: bool = False
    ) -> Iterator[AnyEntry]:
        results, rest = split_results(map(resolve_block, content))
        yield from (self.ran(block, at=at, origin=origin) for block in results)
        if self._is_empty(rest, is_all=not results):
            return
        self._answer = ""
        self._first = self._first or self._writer.last + 1
        yield self._writer.write_message(tuple(rest), at=at, origin=origin, hidden=hidden)

    def write_answer(
        self, content: Content, *, answer: str = "", **more: Unpack[OfAnswer]
    ) -> Iterator[AnyEntry]:
        """Write an answer. Without an id, it continues an answer directly before it."""
        if more.get("usage") is None and self._is_empty(content):
            return
        self._first = self._first or self._writer.last + 1
        name = self._begin(answer)
        yield self._writer.write_answer(
            name, tuple(self._claim_id(block) for block in content), **more
        )

    def ran(self, block: ToolResult, *, at: float = 0.0, origin: str = "") -> Ran:
        ours = self._find_asker(block.tool_use_id)
        self._answered.add(ours)
        self._answer = ""
        block = msgspec.structs.replace(block, tool_use_id=ours)
        return self._writer.ran(block, at=at, origin=origin)

    def write_summary(
        self,
        summary: SpokenContent,
        *,
        last: int | None = None,
        before_tokens: int = 0,
        at: float = 0.0,
        origin: str = "",
    ) -> Iterator[AnyEntry]:
        """Write that everything up to entry `last`, or up to here, is replaced by a summary."""
        end = self._writer.last if last is None else last
        if not self._first or end < self._first:
            self._repaired["summary of nothing"] += 1
            yield from self.write_message(summary, at=at, origin=origin, hidden=True)
            return
        self._answer = ""
        entry = Compacted(
            first=self._first,
            last=end,
            summary=summary,
            by="import",
            kept=(end + 1, self._writer.last) if end < self._writer.last else None,
            before_tokens=before_tokens,
            measure=measure_content(summary),
            origin=origin,
        )
        yield self._writer.write(entry, at)

    def waiting(self) -> list[str]:
        return [theirs for theirs, ours in self._waiting.items() for _ in ours]

    def _is_empty(self, content: Sequence[Block], *, is_all: bool = True) -> bool:
        if not all(is_blank(block) for block in content):
            return False
        if is_all:
            self._repaired["empty message"] += 1
        return True

    def _begin(self, answer: str) -> str:
        name = answer or self._answer or f"answer-{self._writer.last + 1}"
        if name == self._answer:
            return name
        if name == self._last_answer:
            name = f"{name}-{self._writer.last + 1}"
        missing = len(self.waiting())
        if missing:
            self._repaired["missing result"] += missing
        self._waiting.clear()
        self._answer = self._last_answer = name
        return name

    def _claim_id(self, block: Block) -> Block:
        block = resolve_block(block)
        if not isinstance(block, ToolUse):
            return block
        ours = block.id
        while ours in self._taken:
            self._copies[block.id] += 1
            ours = f"{block.id or 'call'}-{self._copies[block.id] + 1}"
        self._taken.add(ours)
        self._ours[block.id] = ours
        self._waiting.setdefault(block.id, []).append(ours)
        if ours == block.id:
            return block
        self._repaired["repeated tool use id"] += 1
        return msgspec.structs.replace(block, id=ours)

    def _find_asker(self, theirs: str) -> str:
        waiting = self._waiting.get(theirs)
        if waiting:
            return waiting.pop(0)
        ours = self._ours.get(theirs)
        if ours is None:
            self._repaired["orphaned result"] += 1
            return theirs
        self._repaired["second result" if ours in self._answered else "late result"] += 1
        return ours
