"""`longhold serve`: live pages about sessions in the browser, on this machine only."""

from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.inspect_command import page_data
from longhold.cli.output import report
from longhold.cli.report_command import fresh_index
from longhold.cli.target import open_target
from longhold.core.settings import Settings, load_settings
from longhold.insight.pages.followed import FollowedSessions, ListedSession, ReadSession
from longhold.insight.pages.html import SessionRow
from longhold.insight.pages.tables import sanitise
from longhold.insight.report import SessionSummary, summarise
from longhold.insight.session_files import SessionFile, default_roots, find_sessions, index_path
from longhold.insight.session_index import open_index
from longhold.insight.transcripts.claude_code.agents import session_name

TITLE_CHARS = 200


@click.command(epilog="Example: longhold serve")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@options.port(default=8790)
@options.as_json
def command(paths: tuple[Path, ...], port: int, as_json: bool) -> None:
    """Show sessions live in the browser, on this machine only.

    PATHS are files or directories of sessions. The default is the directories of Claude Code,
    Codex, pi and Longhold. Pages are updated while files grow. The printed address contains a key.
    Anyone who has the key can read the sessions.
    """
    from longhold.insight.pages.app import serve  # needs an extra

    settings, roots = load_settings(), list(paths) or default_roots()
    with fresh_index(find_sessions(roots)):  # prints its progress
        sessions = FollowedSessions(
            lambda: list_sessions(list(paths) or default_roots()),
            partial(read_session, settings=settings),
        )

    def announce(address: str) -> None:
        report(as_json, {"address": address}, [f"{address}\nCtrl-C stops it."])

    serve(sessions, port=port, started=announce)


def list_sessions(roots: Sequence[Path]) -> list[ListedSession]:
    files = sorted(find_sessions(roots), key=lambda file: file.modified, reverse=True)
    with open_index() as index:
        index.refresh(files)
        known = summarise(index, roots)
    return [
        ListedSession(
            row=_row_of(file, known.get(index_path(file.path), SessionSummary())),
            path=file.path,
            stamp=file.stamp,
        )
        for file in files
    ]


def _row_of(file: SessionFile, known: SessionSummary) -> SessionRow:
    return SessionRow(
        id=blake2b(index_path(file.path).encode(), digest_size=8).hexdigest(),
        name=known.session or session_name(file.path.name),
        format=known.agent,
        title=sanitise(known.title, TITLE_CHARS),
        model=known.model,
        directory=known.directory,
        last_at=known.last_at or file.modified,
        calls=known.calls,
        usd=known.usd,
        lost_usd=known.avoidable_usd,
        hit_share=known.hit_share,
        compactions=known.compactions,
    )


def read_session(one: ListedSession, settings: Settings) -> ReadSession:
    opened = open_target(str(one.path))
    data = page_data(opened, settings, id=one.row.id)
    return ReadSession(data=data, records=opened.open_history())
