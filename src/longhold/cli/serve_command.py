"""`longhold serve`: live pages about sessions in the browser, on this machine only."""

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.inspect_command import page_data, read_modified
from longhold.cli.output import report
from longhold.cli.report_command import fresh_index
from longhold.cli.target import open_target
from longhold.core.settings import Settings, load_settings
from longhold.insight.pages.followed import FollowedSessions, ListedSession, ReadSession
from longhold.insight.pages.html import SessionRow
from longhold.insight.pages.tables import sanitise
from longhold.insight.report import SessionSummary, summarise
from longhold.insight.session_files import default_roots, find_sessions, index_path
from longhold.insight.transcripts.claude_code.agents import session_name

TITLE_CHARS = 200


@click.command(epilog="Example: longhold serve")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@options.port(default=8790)
@options.as_json
def command(paths: tuple[Path, ...], port: int, as_json: bool) -> None:
    """Show sessions live in the browser, on this machine only.

    PATHS are files or directories of sessions; by default those of Claude Code, Codex, pi and
    Longhold, where they keep them. Files are followed while they grow. The printed address contains
    a key: anyone who has it can read the sessions.
    """
    from longhold.insight.pages.app import serve  # needs an extra

    settings, roots = load_settings(), list(paths) or default_roots()
    sessions = FollowedSessions(
        lambda: list_sessions(list(paths) or default_roots()),
        partial(read_session, settings=settings),
        known=known_sessions(roots),
    )

    def started(address: str) -> None:
        report(as_json, {"address": address}, [f"{address}\nCtrl-C stops it."])

    serve(sessions, port=port, started=started)


def list_sessions(roots: Sequence[Path]) -> Iterator[ListedSession]:
    for file in find_sessions(roots):
        yield ListedSession(
            id=_id(index_path(file.path)),
            name=session_name(file.path.name) or file.path.name,
            path=file.path,
            stamp=file.stamp,
            modified=read_modified(file),
            directory=str(file.path.parent),
        )


def _id(path: str) -> str:
    return blake2b(path.encode(), digest_size=8).hexdigest()


def known_sessions(roots: Sequence[Path]) -> dict[str, SessionRow]:
    with fresh_index(find_sessions(roots)) as index:
        found = summarise(index, roots)
    return {_id(path): _row_of(path, known) for path, known in found.items() if known.calls}


def _row_of(path: str, known: SessionSummary) -> SessionRow:
    return SessionRow(
        id=_id(path),
        name=known.session,
        format=known.agent,
        title=sanitise(known.title, TITLE_CHARS),
        model=known.model,
        directory=known.directory,
        last_at=known.last_at,
        calls=known.calls,
        usd=known.usd,
        lost_usd=known.avoidable_usd,
        hit_share=known.hit_share,
        compactions=known.compactions,
    )


def read_session(one: ListedSession, settings: Settings) -> ReadSession:
    opened = open_target(str(one.path))
    directory = opened.directory
    return ReadSession(
        history=opened.history,
        data=page_data(opened, settings, id=one.id),
        directory=directory if directory is not None and directory.is_dir() else None,
    )
