"""The entries of a view. Recent entries are objects, and older entries are compressed."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias, overload

import msgspec

from longhold.core.log.entries import AnyEntry

BLOCK = 256  # compresses well, and is decoded in a few milliseconds
RECENT = 2_048  # number of entries kept as objects, more than an ordinary window shows
LEVEL = 6  # takes a few milliseconds every thirty turns and saves a quarter of memory

Block: TypeAlias = bytes | tuple[AnyEntry, ...]  # compressed, or whole if not encodable

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(tuple[AnyEntry, ...])


class _Parts(NamedTuple):
    blocks: tuple[Block, ...]
    recent: list[AnyEntry]


class EntryList(Sequence[AnyEntry]):
    """A sequence of entries. One thread may append, and any thread may read."""

    def __init__(self, entries: Iterable[AnyEntry] = (), packed: tuple[Block, ...] = ()) -> None:
        self._parts = _Parts(packed, list(entries))
        self._unpacked: tuple[Block, tuple[AnyEntry, ...]] = ((), ())

    def append(self, entry: AnyEntry) -> None:
        blocks, recent = self._parts
        recent.append(entry)
        if len(recent) >= RECENT + BLOCK:
            self._parts = _Parts((*blocks, _pack(recent[:BLOCK])), recent[BLOCK:])

    def copy(self) -> "EntryList":
        """Return a snapshot for another thread. Compressed blocks are shared."""
        blocks, recent = self._parts
        return EntryList(recent, blocks)

    def __len__(self) -> int:
        blocks, recent = self._parts
        return len(blocks) * BLOCK + len(recent)

    @overload
    def __getitem__(self, index: int) -> AnyEntry: ...
    @overload
    def __getitem__(self, index: slice) -> list[AnyEntry]: ...
    def __getitem__(self, index: int | slice) -> AnyEntry | list[AnyEntry]:
        blocks, recent = self._parts
        packed = len(blocks) * BLOCK
        if isinstance(index, slice):
            places = range(*index.indices(packed + len(recent)))
            if places.step == 1 and places.start >= packed:
                return recent[places.start - packed : places.stop - packed]
            return [self._at(i, blocks, recent) for i in places]
        place = index + packed + len(recent) if index < 0 else index
        if place < 0:
            raise IndexError("entry list index out of range")
        return self._at(place, blocks, recent)

    def __iter__(self) -> Iterator[AnyEntry]:
        blocks, recent = self._parts
        for block in blocks:
            yield from _unpack(block)
        yield from recent

    def __reversed__(self) -> Iterator[AnyEntry]:
        blocks, recent = self._parts
        yield from reversed(recent)
        for block in reversed(blocks):
            yield from reversed(_unpack(block))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _at(self, place: int, blocks: tuple[Block, ...], recent: list[AnyEntry]) -> AnyEntry:
        number, within = divmod(place, BLOCK)
        if number >= len(blocks):
            return recent[place - len(blocks) * BLOCK]
        block, entries = self._unpacked
        if block is not blocks[number]:
            entries = _unpack(blocks[number])
            self._unpacked = (blocks[number], entries)
        return entries[within]


def _pack(entries: Sequence[AnyEntry]) -> Block:
    try:
        return zlib.compress(_encoder.encode(entries), LEVEL)
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return tuple(entries)


def _unpack(block: Block) -> tuple[AnyEntry, ...]:
    return _decoder.decode(zlib.decompress(block)) if isinstance(block, bytes) else block
