"""The active branch of a pi session: from the root to the last entry.

Newer sessions are trees, and which branch is active is known only at the end of the file. So lines
are held as bytes, two ids read from each, and only those on the branch are decoded.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from holdfast.messages import JsonObject
from holdfast.transcripts.records import Numbered, UnreadableRecord, checked, decoded
from holdfast.transcripts.writer import ImportAccount

OFF_BRANCH = "entry of another branch"
OffBranch: TypeAlias = Callable[[tuple[int, JsonObject]], None]
_USAGE = b'"usage"'


class _Head(Struct):
    id: str
    parentId: str | None = None
    type: str = ""


class _Record(NamedTuple):
    number: int
    parent: str | None
    line: bytes


_decoder = msgspec.json.Decoder(_Head)


def active_branch(
    lines: Iterable[tuple[int, bytes]], account: ImportAccount, off_branch: OffBranch
) -> Numbered:
    """Yield the entries from the root to the last one, each with its line's number.

    `off_branch` is given the answers of other branches, which were paid for all the same.
    """
    held: dict[str, _Record] = {}
    last: str | None = None
    for number, line in lines:
        account.count()
        head = _head(line)
        if isinstance(head, UnreadableRecord):
            account.malformed.append((number, head.reason))
        elif head.type == "session":
            account.skipped["session"] += 1
        else:
            account.repaired.update(["repeated entry id"] if head.id in held else [])
            held[head.id] = _Record(number, head.parentId, line)
            last = head.id
    path = _path(held, last, account)
    for left in held.values():
        record = decoded(left.line) if _USAGE in left.line else None
        if isinstance(record, dict):
            off_branch((left.number, record))
    for entry in path:
        yield from checked(entry.number, decoded(entry.line, account), account)


def _head(line: bytes) -> _Head | UnreadableRecord:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = decoded(line)  # slower, but it mends what can be mended
    try:
        return value if isinstance(value, UnreadableRecord) else msgspec.convert(value, _Head)
    except msgspec.ValidationError as error:
        return UnreadableRecord(f"not an entry of a session: {error}")


def _path(held: dict[str, _Record], last: str | None, account: ImportAccount) -> Iterable[_Record]:
    path = []
    while last is not None and last in held:
        entry = held.pop(last)  # taken out, so that a circle ends
        path.append(entry)
        last = entry.parent
    if last is not None:
        account.repaired["parent that is not there"] += 1
    if held:
        account.skipped[OFF_BRANCH] += len(held)
    return reversed(path)
