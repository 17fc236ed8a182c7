"""The searchable texts of one session, with their positions in its file.

A record's position is a pair of offsets. The second is the line at which the reader yielded the
record's entry, and the first is that line for the previous entry. Reading from the first to the
second yields the record again, even if the reader delays a round.
"""

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import msgspec
from msgspec import Struct

from longhold.core.log import load
from longhold.core.log.entries import AnyEntry
from longhold.core.tools.history.history import History
from longhold.errors import LongholdError
from longhold.insight.read_session import title_of_history
from longhold.insight.session_files import OURS
from longhold.insight.session_search import SearchedRecord, TextJob
from longhold.insight.transcripts.formats import is_log, open_transcript

_PACKED = b"\x1f\x8b"


class SessionTexts(Struct, frozen=True, kw_only=True, array_like=True):
    agent: str = ""
    session: str = ""
    directory: str = ""
    title: str = ""
    records: tuple[SearchedRecord, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    """The text of each record, and names by which it can be found."""


decode = msgspec.msgpack.Decoder(SessionTexts).decode


def read_encoded(job: TextJob) -> bytes:
    return msgspec.msgpack.encode(read_texts(job.file.path, job.last_n))


def read_texts(path: Path, after: int = 0) -> SessionTexts:
    try:
        return _read_log(path, after) if is_log(path) else _read_transcript(path, after)
    except (LongholdError, OSError):
        return SessionTexts()


def _read_log(path: Path, after: int) -> SessionTexts:
    loaded = load(path)
    directory = path.with_suffix("")
    history = History(lambda: loaded.entries, directory=directory if directory.is_dir() else None)
    return _texts(
        history,
        loaded.entries,
        SessionTexts(agent=OURS, session=path.stem, directory=loaded.header.directory),
        after=after,
    )


def _read_transcript(path: Path, after: int) -> SessionTexts:
    reading = last = before = 0
    places: dict[int, tuple[int, int]] = {}
    entries: list[AnyEntry] = []

    def move_to(position: int) -> None:
        nonlocal reading
        reading = position

    with open_transcript(path, move_to) as transcript:
        for entry in transcript.entries:
            if reading != last:
                before, last = last, reading
            entries.append(entry)
            places[entry.n] = before, last
    head = SessionTexts(
        agent=transcript.format,
        session=transcript.session or path.stem,
        directory=transcript.directory,
    )
    known = {} if _is_packed(path) else places
    return _texts(History(lambda: entries), entries, head, after=after, places=known)


def _texts(
    history: History,
    entries: Sequence[AnyEntry],
    head: SessionTexts,
    *,
    after: int,
    places: dict[int, tuple[int, int]] | None = None,
) -> SessionTexts:
    found = [each for each in history.list_searched() if each[0] > after]
    return msgspec.structs.replace(
        head,
        title=title_of_history(entries),
        records=tuple(
            SearchedRecord(
                n, tuple(sorted(kinds)), *(places or {}).get(n, (0, 0)), crc32(text.encode())
            )
            for n, text, _, kinds in found
        ),
        texts=tuple((text, names) for _, text, names, _ in found),
    )


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_PACKED)) == _PACKED
