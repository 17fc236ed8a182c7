"""Reading files again after a compaction, each within its budget and all within theirs.

Files are read by the Read tool: all the lines that were looked at if those fit, else the ones looked
at last, cut to whole lines. Files that cannot or may not be read, or do not fit, are skipped and the
next one is tried.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.log.entries import SpokenContent
from holdfast.messages import JsonObject, Text, text_of
from holdfast.messages.cut import lines_within
from holdfast.messages.measure import measure_content
from holdfast.tools.context import ToolContext
from holdfast.tools.files import Files, SeenFile
from holdfast.tools.protocol import Outcome
from holdfast.tools.read import MAX_LINES, READ
from holdfast.tools.recovered import restored_head
from holdfast.view.tokens import CLAUDE, weigh

ROUNDS = 4
"""How often more files are tried in place of unreadable ones."""
END = "[End of {path}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    path: Path
    first: int = 1
    limit: int = 0
    span: tuple[int, int] = (1, 0)
    """First and limit of all the lines that were looked at; tried first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RereadRoom:
    files: int
    each_tokens: int
    all_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """A file as it is now, ready to be shown."""

    path: Path
    content: SpokenContent
    tokens: int
    seen: SeenFile


async def read_again(
    wanted: Sequence[Wanted],
    tool_context: ToolContext,
    room: RereadRoom,
    may_read: Callable[[Path], bool],
) -> list[Again]:
    """Read the first files that are readable and fit, concurrently, in the given order."""
    chosen: list[Again] = []
    spent, rest = 0, list(wanted)
    for _ in range(ROUNDS):
        missing = room.files - len(chosen)
        if missing <= 0 or not rest:
            break
        batch, rest = rest[:missing], rest[missing:]
        tasks = (_read(each, tool_context, room, may_read) for each in batch)
        for again in await asyncio.gather(*tasks):
            if again is not None and spent + again.tokens <= room.all_tokens:
                spent += again.tokens
                chosen.append(again)
    return chosen


async def _read(
    wanted: Wanted, tool_context: ToolContext, room: RereadRoom, may_read: Callable[[Path], bool]
) -> Again | None:
    if not may_read(wanted.path):
        return None
    if wanted.span != (wanted.first, wanted.limit):
        first, limit = wanted.span
        whole = await _attempt(replace(wanted, first=first, limit=limit), tool_context)
        if whole is not None and whole.tokens <= room.each_tokens:
            return whole
    again = await _attempt(wanted, tool_context)
    if again is None and wanted.first > 1:  # it has become shorter
        again = await _attempt(Wanted(path=wanted.path), tool_context)
    if again is None or again.tokens <= room.each_tokens:
        return again
    lines = _fitting(again, room.each_tokens)
    if not lines:
        return None
    shorter = await _attempt(replace(wanted, limit=lines), tool_context)
    return shorter if shorter and shorter.tokens <= room.each_tokens else None


async def _attempt(wanted: Wanted, tool_context: ToolContext) -> Again | None:
    place = replace(tool_context, files=Files(), is_fork=True)
    given: JsonObject = {
        "file_path": str(wanted.path),
        "offset": wanted.first,
        "limit": min(wanted.limit or MAX_LINES, MAX_LINES),
    }
    outcome = await READ.run(given, place)
    seen = next(iter(place.files.newest_first()), None)
    if outcome.is_error or seen is None:
        return None
    if wanted.first > 1 and not any(len(lines) for lines in seen.ranges):
        return None
    content = _shown(wanted.path, outcome)
    return Again(path=wanted.path, content=content, tokens=tokens_of(content), seen=seen)


def _shown(path: Path, outcome: Outcome) -> SpokenContent:
    text = text_of(outcome.content)
    head = f"{restored_head(path)}: {len(text):,} characters]"
    framed = Text(text=f"{head}\n{text}\n{END.format(path=path)}")
    if isinstance(outcome.content, str):
        return (framed,)
    return (framed, *(block for block in outcome.content if not isinstance(block, Text)))


def _fitting(again: Again, each_tokens: int) -> int:
    lines = text_of(again.content).split("\n")[1:-1]
    around = tokens_of(again.content) - tokens_of((Text(text="\n".join(lines)),))
    ending = lines[-1] if lines else ""  # the last may say how to go on

    def size(head: str) -> int:
        return tokens_of((Text(text=f"{head}\n{ending}"),)) + around

    return lines_within(lines, each_tokens, size)


def tokens_of(content: SpokenContent) -> int:
    """Estimate the tokens of content, with the weights that count most."""
    return round(weigh(measure_content(content), CLAUDE)) + 1
