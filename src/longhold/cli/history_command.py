"""`longhold history`: search sessions, and open what the model no longer sees."""

import dataclasses
import shlex
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import json_out, print_marked, progress_bar, report, say, text_out
from longhold.cli.target import NEWEST, find_path, open_target
from longhold.core.log.cursor import clamp_time
from longhold.core.log.entries import ViewChange
from longhold.core.log.stores import default_store
from longhold.core.messages import block_to_wire
from longhold.core.messages.text import clean_document, clean_text, pluralize
from longhold.core.tools.history.pages import find_matches
from longhold.core.tools.history.question import parse_question
from longhold.core.tools.history.records import FoundRecords, OpenedRecord
from longhold.errors import LongholdError
from longhold.insight.session_files import agent_roots, default_roots, find_by_id, find_sessions
from longhold.insight.session_search import FoundSessions, SessionWords, search_sessions


@click.command(epilog='Example: longhold history "login bug" --in claude-code')
@click.argument("words", nargs=-1, metavar="[TARGET]... [QUERY]")
@click.option(
    "--id", help="Open a step or message (123 or '#123'), a range (41-57) or a tool use by its id."
)
@click.option(
    "--in",
    "agent",
    type=click.Choice(list(agent_roots())),
    help="Search only sessions of this agent.",
)
@click.option("--lines", default="", help="With --id, show only these lines, such as 40-80.")
@click.option("--skip", default=0, help="Skip this many results.")
@options.as_json
def command(
    words: tuple[str, ...], id: str | None, agent: str | None, lines: str, skip: int, as_json: bool
) -> None:
    """Search all sessions, or the whole history of one, or open a part of it.

    With a QUERY alone, or with directories or several files as TARGETS, the command finds sessions
    of Claude Code, Codex, pi and Longhold, each with its best match. With one TARGET (a session's
    id, `newest`, or a file), it finds records of that session. QUERY is a question in plain words.
    A phrase in double quotes must occur in each result. file:PATH and kind:KIND (user, answer,
    error, edit, command, read, …) narrow the search. The search covers messages, answers, tool
    results and summaries, even if they were cleared, collapsed or compacted. --id prints a record
    in its original form. For an answer, --id also prints the results of its calls.
    """
    targets, query = _split_words(words, is_opening=id is not None)
    if id is None and not query.strip():
        raise click.UsageError("give words to search for, or --id; try --help")
    if id is None and lines:
        raise click.UsageError("--lines needs --id")
    if id is None and (len(targets) != 1 or agent or Path(targets[0]).is_dir()):
        _search_all(targets, query, agent=agent or "", skip=skip, as_json=as_json)
        return
    opened = open_target(targets[0] if targets else NEWEST)
    history = opened.open_history()
    try:
        if id is not None:
            _show(history.open(id, lines=lines), as_json)
        else:
            has_left = any(isinstance(entry, ViewChange) for entry in opened.history)
            _list(history.search(query, skip=skip), as_json, has_left=has_left)
    finally:
        history.close()


def _split_words(words: tuple[str, ...], *, is_opening: bool) -> tuple[tuple[str, ...], str]:
    if is_opening and len(words) > 1:
        raise click.UsageError("--id opens one record, and words search; give only one of them")
    if is_opening or (len(words) == 1 and _is_target(words[0])):
        return words, ""
    return words[:-1], words[-1] if words else ""


def _is_target(word: str) -> bool:
    if word == NEWEST:
        return True
    with suppress(OSError):  # because words can be longer than a file name
        if Path(word).exists():
            return True
    with suppress(LongholdError):
        return default_store().find(word).id == word
    return len(find_by_id(word)) == 1


def _search_all(
    targets: tuple[str, ...], query: str, *, agent: str, skip: int, as_json: bool
) -> None:
    roots = [find_path(name) for name in targets] or default_roots(agent)
    files = find_sessions(roots)
    with closing(SessionWords()) as words:
        changed = words.stale(files)
        if changed:
            label = f"Reading {pluralize(len(changed), 'session')}"
            with progress_bar(sum(file.bytes for file in changed), label) as advance:
                words.refresh(files, advance or (lambda _: None))
        found = search_sessions(words, files, query, agent=agent, skip=skip)
    if as_json:
        json_out(found)
        return
    _print_sessions(found, query)
    if not found.total:
        say(f"Nothing matches in {pluralize(len(files), 'session')}.", err=True)
    elif found.reached < found.total:
        say(f"\n{found.total - found.reached} more sessions: add --skip {found.reached}")


def _print_sessions(found: FoundSessions, query: str) -> None:
    question = parse_question(query)
    for place, session in enumerate(found.hits):
        when = f"{datetime.fromtimestamp(clamp_time(session.at)):%Y-%m-%d %H:%M}"
        names = f"{when}  {session.agent}  {session.directory}  {session.title}"
        if place:
            say()
        say(clean_text(names).rstrip())
        if session.hit:
            say(f"  #{session.n} {session.hit.kind}: ", nl=False)
            print_marked(session.hit.snippet, find_matches(session.hit.snippet, question))
        more = f"{pluralize(session.records, 'record')}: " if session.records > 1 else ""
        say(f"  {more}longhold history {shlex.quote(session.path)} {shlex.quote(query)}")


def _show(opened: OpenedRecord, as_json: bool) -> None:
    if as_json:
        found = dataclasses.asdict(dataclasses.replace(opened, media=()))
        json_out(found | {"media": [block_to_wire(block) for block in opened.media]})
        return
    if opened.trouble:
        say(f"incomplete: {clean_text(opened.trouble)}", err=True)
    text = opened.page.text
    text_out(text)


def _list(found: FoundRecords, as_json: bool, *, has_left: bool) -> None:
    lines = (
        part
        for hit in found.hits
        for part in (hit.describe(marks_view=has_left), hit.quote_passage())
    )
    report(as_json, found, map(clean_document, lines))
    if as_json:
        return
    if not found.total:
        say("Nothing matches.", err=True)
    elif found.reached < found.total:
        say(f"{found.total - found.reached} more with --skip {found.reached}", err=True)
