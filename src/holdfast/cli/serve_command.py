"""`holdfast serve`: the pages of sessions, live in the browser, on this machine only."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import blake2b
from pathlib import Path

import click

from holdfast.cli import options
from holdfast.cli.inspect_command import page_data, session_files
from holdfast.cli.output import report
from holdfast.cli.target import OURS, open_target
from holdfast.errors import ConfigError
from holdfast.log.store import FileStore
from holdfast.log.titles import title_of
from holdfast.pages.followed import FollowedSessions, ListedSession, ReadSession
from holdfast.settings import Settings, load_settings


@click.command(epilog="Example: holdfast serve")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8790,
    show_default=True,
    help="0 picks a free port.",
)
@options.as_json
def command(paths: tuple[Path, ...], port: int, as_json: bool) -> None:
    """Show sessions live in the browser, on this machine only.

    PATHS are files or directories of sessions; without any, your own sessions are listed. Files
    are followed while they grow. The address that is printed holds a key: who has it can read.
    """
    try:
        from holdfast.pages.app import serve
    except ImportError as error:
        raise ConfigError(f"{error}; install it with: pip install 'holdfast[serve]'") from error
    settings = load_settings()
    sessions = FollowedSessions(
        partial(listed, paths), partial(read_session, settings=settings), settings.page
    )

    def started(address: str) -> None:
        report(as_json, {"address": address}, [f"{address}\nCtrl-C stops it."])

    serve(sessions, port=port, follow_seconds=settings.page.follow_seconds, started=started)


def listed(paths: tuple[Path, ...]) -> Iterator[ListedSession]:
    """List the sessions in some files and directories; without any, the user's own."""
    if not paths:
        for found in FileStore().sessions():
            own = _listed(found.path, found.id)
            title = _title(found.path, own.stamp)
            yield replace(own, format=OURS, title=title, directory=found.header.directory)
        return
    for place in paths:
        for file in session_files(place):
            id = blake2b(bytes(file.resolve()), digest_size=8).hexdigest()
            yield replace(_listed(file, id), directory=str(file.parent))


def _listed(path: Path, id: str) -> ListedSession:
    stat = path.stat()
    return ListedSession(
        id=id,
        name=path.name.split(".jsonl")[0],
        path=path,
        stamp=f"{stat.st_size}:{stat.st_mtime_ns}",
        modified=stat.st_mtime,
    )


@lru_cache(maxsize=10_000)
def _title(path: Path, stamp: str) -> str:
    """Read a title once for each state of a log: the list is made anew every second."""
    return title_of(path)


def read_session(one: ListedSession, settings: Settings) -> ReadSession:
    opened = open_target(str(one.path))
    directory = opened.directory
    return ReadSession(
        history=opened.history,
        data=page_data(opened, settings, id=one.id),
        directory=directory if directory is not None and directory.is_dir() else None,
    )
