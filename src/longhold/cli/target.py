"""Resolves the TARGETS of commands: ids, SESSION/AGENT, logs, transcripts and directories."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from longhold.cli.output import reading
from longhold.core.log import Damage, Header, load
from longhold.core.log.entries import AnyEntry, Imported
from longhold.core.log.results import Results
from longhold.core.log.store import FileStore, Store
from longhold.core.log.stores import default_store
from longhold.core.settings import home
from longhold.core.view import View, fold
from longhold.core.view.gauge import Follower, load_calibration
from longhold.errors import SessionNotFound, TranscriptError
from longhold.insight.session_files import LEAST_ID_CHARS, find_by_id, newest_session
from longhold.insight.session_files import OURS as OURS
from longhold.insight.session_index import NAME as INDEX_NAME
from longhold.insight.session_index import open_index
from longhold.insight.transcripts.formats import is_log, open_transcript

if TYPE_CHECKING:
    from longhold.core.tools.history.history import History

NEWEST = "newest"  # the most recently written session of this project, by any agent


@dataclass(frozen=True, kw_only=True)
class CommandTarget:
    name: str
    format: str
    history: Sequence[AnyEntry]
    header: Header | None = None
    path: Path | None = None
    directory: Path | None = None
    results: Results | None = None
    """The bodies of results that are not in files."""
    worked_in: str = ""
    damage: tuple[Damage, ...] = ()

    @cached_property
    def view(self) -> View:
        return fold(self.history)

    @property
    def imported(self) -> Imported | None:
        last = [entry for entry in self.history[-3:] if isinstance(entry, Imported)]
        return last[-1] if last else None

    def open_history(self) -> "History":
        """Open the history to search in, without creating a directory for its index."""
        from longhold.core.tools.history.history import History, is_shown

        directory = self.directory
        return History(
            lambda: self.history,
            directory=directory if directory is not None and directory.is_dir() else None,
            results=self.results,
            session=self.name,
            shows=lambda n: is_shown(self.view, n),
        )

    def damage_lines(self) -> Iterator[str]:
        for damage in self.damage:
            yield f"damaged: line {damage.line} of the log ({damage.reason})"

    def problem_lines(self) -> Iterator[str]:
        yield from self.damage_lines()
        if self.imported and self.imported.malformed:
            yield f"malformed: {len(self.imported.malformed)} lines of the file were left out"


def calibrate() -> Follower:
    return Follower(partial(load_calibration, default_store().shared(Path.cwd())))


def open_target(name: str) -> CommandTarget:
    store = default_store()
    if not isinstance(store, FileStore) and not Path(name).exists():
        with suppress(SessionNotFound):
            return _from_store(store, name)
    return _from_path(find_path(name))


def find_path(name: str) -> Path:
    """Return an existing path, or the file of a session or of SESSION/AGENT."""
    path = Path(name)
    if path.exists():
        return path
    if name == NEWEST and (newest := newest_session(Path.cwd())):
        return newest
    try:
        store = default_store()
        id = store.find(name, by_prefix=True).id
        return store.files(id).find(id).path
    except SessionNotFound:
        if (found := find_session_file(name)) is not None:
            return found
        if "/" in name or path.suffix:
            raise TranscriptError(path, "does not exist; check the path") from None
        raise


def find_session_file(id: str) -> Path | None:
    found = find_by_id(id) or _find_indexed(id)
    if len(found) > 1:
        names = ", ".join(sorted(path.stem for path in found)[:3])
        raise SessionNotFound(f"{id!r} matches several sessions: {names}; give more characters")
    return found[0] if found else None


def _find_indexed(id: str) -> list[Path]:
    if len(id) < LEAST_ID_CHARS or not (home() / INDEX_NAME).exists():
        return []
    query = "SELECT path FROM sessions WHERE substr(session, 1, ?) = ? AND problem = ''"
    with open_index() as index:
        rows = index.rows(query, (len(id), id))
    return [path for row in rows if (path := Path(row["path"])).exists()]


def _from_path(path: Path) -> CommandTarget:
    if path.is_file() and is_log(path):
        return _from_log(path)
    with reading(path) as progress, open_transcript(path, progress) as transcript:
        entries: list[AnyEntry] = list(transcript.entries)
    return CommandTarget(
        name=path.name,
        path=path,
        format=transcript.format,
        history=entries,
        worked_in=transcript.directory,
    )


def _from_store(store: Store, name: str) -> CommandTarget:
    found = store.find(name, by_prefix=True)
    loaded = store.load(found.id)
    return CommandTarget(
        name=loaded.header.session,
        format=OURS,
        history=loaded.entries,
        header=loaded.header,
        worked_in=loaded.header.directory,
        results=store.results(found.id),
        damage=tuple(loaded.damage),
    )


def _from_log(path: Path) -> CommandTarget:
    if home() / "stores" in path.parents:  # because a copy may lack the files next to it
        with suppress(SessionNotFound):
            default_store().files(path.stem)
    loaded = load(path)
    return CommandTarget(
        name=loaded.header.session,
        format=OURS,
        history=loaded.entries,
        header=loaded.header,
        path=path,
        directory=path.resolve().with_suffix(""),
        worked_in=loaded.header.directory,
        damage=tuple(loaded.damage),
    )
