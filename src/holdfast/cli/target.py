"""What commands are pointed at: a session's id, a log, or a transcript of another agent.

A sub-agent of a session is named SESSION/AGENT.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from holdfast.cli.show import reading
from holdfast.errors import SessionNotFound, TranscriptError
from holdfast.log import Damage, Header, load
from holdfast.log.entries import AnyEntry, Imported
from holdfast.log.store import FileStore
from holdfast.transcripts.formats import open_transcript
from holdfast.view import View, fold


@dataclass(frozen=True, kw_only=True)
class CommandTarget:
    """Something with a view, wherever it came from."""

    name: str
    format: str
    history: list[AnyEntry]
    header: Header | None = None
    directory: Path | None = None
    """What belongs to a session beside its log."""
    damage: tuple[Damage, ...] = ()

    @cached_property
    def view(self) -> View:
        """What the model sees of it."""
        return fold(self.history)

    @property
    def imported(self) -> Imported | None:
        """The account of the import, if it was one."""
        last = [entry for entry in self.history[-3:] if isinstance(entry, Imported)]
        return last[-1] if last else None


def open_target(name: str) -> CommandTarget:
    """Find what a name means and read it: a path if there is one, a session, or SESSION/AGENT."""
    path = Path(name)
    if path.exists():
        return _from_path(path)
    session, _, agent = name.partition("/")
    try:
        found = FileStore().find(session)
        return _from_log(found.directory / "agents" / f"{agent}.jsonl" if agent else found.path)
    except SessionNotFound:
        if "/" in name or path.suffix:
            raise TranscriptError(path, "does not exist; check the path") from None
        raise


def _from_path(path: Path) -> CommandTarget:
    if path.is_file() and _is_log(path):
        return _from_log(path)
    with reading(path) as progress, open_transcript(path, progress) as transcript:
        entries: list[AnyEntry] = list(transcript.entries)
    return CommandTarget(name=path.name, format=transcript.format, history=entries)


def _is_log(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(12).startswith(b'{"holdfast":')
    except PermissionError:
        return False  # opening it for real says so


def _from_log(path: Path) -> CommandTarget:
    loaded = load(path)
    return CommandTarget(
        name=loaded.header.session,
        format="holdfast",
        history=loaded.entries,
        header=loaded.header,
        directory=path.resolve().with_suffix(""),
        damage=tuple(loaded.damage),
    )
