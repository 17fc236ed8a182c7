"""`holdfast memory`: look at what is remembered, change it, take it back, and give consent."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from holdfast.cli.show import ago, harmless, json_out, plain
from holdfast.memory.commits import Commit, MemoryChange
from holdfast.memory.errors import MemoryConflict, MemoryRefused, NoSuchMemory
from holdfast.memory.inbox import Inbox, Proposal
from holdfast.memory.memory import Memory, parse
from holdfast.memory.paths import INDEX, checked_name, memory_directory, team_directory
from holdfast.memory.store import MemoryStore
from holdfast.memory.team import PREFIX, TeamMemories
from holdfast.settings import home, load_settings
from holdfast.settings.files import write_private

SHOWN_COMMITS = 20
"""A screen of the log; -n asks for more."""
FOUND = 10
"""A search on a terminal may list more than recall shows a model."""

NUMBER_DIGITS = 18
"""What surely fits a database's number; no store ever has so many commits."""
MOST = 10**NUMBER_DIGITS - 1

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


@contextmanager
def memory_store() -> Iterator[MemoryStore]:
    """Open the memories of the project around the current directory, hand edits taken in."""
    limits = load_settings(Path.cwd()).memory
    place = memory_directory(home(), Path.cwd(), limits.directory)
    with MemoryStore(place, limits) as store:
        store.adopt()
        for file, problem in store.problems.items():
            click.echo(f"{plain(file)} was left out: {plain(problem)}", err=True)
        yield store


@click.group(epilog="Example: holdfast memory log")
def command() -> None:
    """Look at what is remembered for this project, change it, take it back.

    Each command prints JSON for machines with --json.
    """


@command.command(epilog="Example: holdfast memory log deploys.md")
@click.argument("file", default="")
@click.option(
    "-n", "count", type=click.IntRange(min=1, max=MOST), default=SHOWN_COMMITS, show_default=True
)
@click.option("--gone", is_flag=True, help="List what was removed and can be brought back.")
@as_json_option
def log(file: str, count: int, gone: bool, as_json: bool) -> None:
    """Show who changed what and why, the newest first; of FILE, or of all."""
    with memory_store() as store:
        if gone:
            stones = store.history.tombstones()
            lines = [f"{s.file}  {s.by}, {ago(s.at)}: {s.reason}" for s in stones]
            _tell(stones, lines or ["Nothing was removed."], as_json)
            return
        commits = store.history.log(count, file=file)
        _tell(commits, [_told(commit) for commit in commits] or ["No commits yet."], as_json)


@command.command(epilog="Example: holdfast memory diff 12")
@click.argument("commit", type=click.IntRange(min=1, max=MOST), required=False)
@as_json_option
def diff(commit: int | None, as_json: bool) -> None:
    """Show what COMMIT changed, line by line; the last one by default."""
    with memory_store() as store:
        found = store.history.commit(commit or store.history.head)
        text = store.history.diff(found.changes)
        _tell({"commit": found, "diff": text}, [_told(found), text.rstrip()], as_json)


@command.command(epilog="Example: holdfast memory undo")
@click.argument("what", default="")
@as_json_option
def undo(what: str, as_json: bool) -> None:
    """Take back WHAT: a commit's number, the name of a removed memory, or nothing for the last."""
    with memory_store() as store:
        number = _number(what or "0")
        done = store.bring_back(what) if number is None else store.undo(number)
        _tell(done, [_told(done)], as_json)


@command.command(epilog="Example: holdfast memory show deploys.md")
@click.argument("file", default="")
@as_json_option
def show(file: str, as_json: bool) -> None:
    """Show FILE, or the index of all memories, the team's included."""
    with memory_store() as store:
        team = TeamMemories(team_directory(Path.cwd()), store.limits)
        if file:
            found = _find(store, team, file)
            _tell(found, [harmless(found.text).rstrip()], as_json)
            return
        index, shared = store.index(), team.index()
        lines = [index.rstrip() or "Nothing is remembered for this project."]
        lines += ["", "team", shared.rstrip()] if shared else []
        _tell({"memories": store.listed(), "team": team.memories()}, lines, as_json)


@command.command(epilog="Example: holdfast memory search staging database")
@click.argument("words", nargs=-1, required=True)
@as_json_option
def search(words: tuple[str, ...], as_json: bool) -> None:
    """Find memories by WORDS, the best first, superseded ones last."""
    with memory_store() as store:
        hits = store.search(" ".join(words), FOUND)
        lines = [f"{hit.file}: {plain(hit.description)}" for hit in hits]
        _tell(hits, lines or ["No memory has these words."], as_json)


@command.command(epilog="Example: holdfast memory edit deploys.md")
@click.argument("file")
@click.option("--text", help="Write this instead of opening an editor; - reads it from stdin.")
@click.option("--why", default="edited", help="What the log says about it.")
@as_json_option
def edit(file: str, text: str | None, why: str, as_json: bool) -> None:
    """Change FILE, or write a new one, in your editor."""
    name = checked_name(file)
    with memory_store() as store:
        expected = store.version(name)
        before = store.read(name) if expected else _template(name)
        after = _entered(before, text)
        if after is None or after == before:
            _tell(None, ["Nothing was changed."], as_json)
            return
        memory = replace(parse(name, after, at=time.time()), modified=time.time())
        change = MemoryChange(file=name, text=memory.text, expected=expected)
        done = store.commit([change], by="person", why=why)
        _tell(done, [_told(done) if done else "Nothing was changed."], as_json)


@command.command(epilog='Example: holdfast memory forget old-plan.md --why "it was dropped"')
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--why", default="no longer wanted", show_default=True, help="Kept with what is gone."
)
@as_json_option
def forget(files: tuple[str, ...], why: str, as_json: bool) -> None:
    """Remove FILES; `holdfast memory undo NAME` brings one back."""
    files = tuple(dict.fromkeys(files))
    with memory_store() as store:
        for file in files:
            store.read(file)  # says which one is not there, before any is removed
        changes = [
            MemoryChange(file=file, text=None, expected=store.version(file), reason=why)
            for file in files
        ]
        done = store.commit(changes, by="person", why=f"forgotten: {why}")
        assert done is not None
        _tell(done, [_told(done)], as_json)


@command.command(epilog="Example: holdfast memory export ~/memories")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), required=False)
@as_json_option
def export(directory: Path | None, as_json: bool) -> None:
    """Write all memories and the index into DIRECTORY, or print them as JSON."""
    with memory_store() as store:
        memories = store.memories()
        if directory is None:
            json_out(memories)
            return
        files = {memory.file: store.read(memory.file) for memory in memories}
        files[INDEX] = store.index()
        replaced = sorted(file for file in files if (directory / file).exists())
        for file, text in files.items():
            write_private(directory / file, text.encode())
        over = f" Written over: {', '.join(replaced)}." if replaced else ""
        said = f"{len(memories)} memories written to {directory}.{over}"
        told = {"written": sorted(files), "replaced": replaced, "directory": str(directory)}
        _tell(told, [said], as_json)


@command.command(epilog="Example: holdfast memory inbox --accept 3")
@click.option("--accept", metavar="N", help="Write proposal N, or all of them.")
@click.option("--decline", metavar="N", help="Turn down proposal N, or all of them.")
@as_json_option
def inbox(accept: str | None, decline: str | None, as_json: bool) -> None:
    """Show what waits for your consent; accept or decline it."""
    with memory_store() as store:
        box = Inbox(store)
        if accept and decline:
            raise click.UsageError("--accept and --decline do not go together")
        chosen = _chosen(box, accept or decline or "")
        if not accept and not decline:
            lines = [line for one in box.waiting() for line in _proposal_lines(box, one)]
            _tell(box.waiting(), lines or ["Nothing waits."], as_json)
            return
        word, settle = ("accepted", box.accept) if accept else ("declined", box.decline)
        done, conflicts = _settled(settle, chosen)
        named = "; ".join(f"{id}: {plain(why)}" for id, why in conflicts.items())
        beside = f", {len(conflicts)} conflicts ({named})" if conflicts else ""
        _tell({word: done, "conflicts": conflicts}, [f"{len(done)} {word}{beside}."], as_json)
        if conflicts:
            raise SystemExit(1)


def _tell(value: object, lines: list[str], as_json: bool) -> None:
    if as_json:
        json_out(value)
    else:
        click.echo("\n".join(harmless(line) for line in lines))


def _told(commit: Commit) -> str:
    files = [one.file for one in commit.changes if one.file != INDEX] or [INDEX]
    named = ", ".join(files[:4]) + (f" and {len(files) - 4} more" if len(files) > 4 else "")
    return f"{commit.id:>5}  {ago(commit.at):>14}  {commit.by:<10}  {plain(commit.why)}  ({named})"


def _find(store: MemoryStore, team: TeamMemories, file: str) -> Memory:
    if not file.startswith(PREFIX):
        return store.memory(file)
    found = [memory for memory in team.memories() if f"{PREFIX}{memory.file}" == file]
    if not found:
        raise NoSuchMemory(f"there is no team memory {file!r}; `holdfast memory show` lists them")
    return found[0]


def _template(name: str) -> str:
    return Memory(file=name, name=Path(name).stem, description="one line to find it by").text


def _entered(before: str, text: str | None) -> str | None:
    if text is None:
        return click.edit(before, extension=".md", require_save=True)
    return sys.stdin.read() if text == "-" else text


def _chosen(box: Inbox, which: str) -> list[Proposal]:
    if which == "all":
        return box.waiting()
    if not which:
        return []
    if (id := _number(which)) is None:
        raise click.UsageError(f"{which!r} is no number; give one of the inbox, or all")
    return [box.find(id)]


def _number(text: str) -> int | None:
    """Read a number that a database can hold; None is none."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= NUMBER_DIGITS
    return int(text) if is_number else None


def _settled(
    settle: Callable[[int], object], chosen: Sequence[Proposal]
) -> tuple[list[int], dict[int, str]]:
    """Settle proposals one by one; one that cannot be does not keep the others waiting."""
    done: list[int] = []
    conflicts: dict[int, str] = {}
    for proposal in chosen:
        try:
            settle(proposal.id)
            done.append(proposal.id)
        except (MemoryConflict, MemoryRefused) as error:
            conflicts[proposal.id] = str(error)
    return done, conflicts


def _proposal_lines(box: Inbox, one: Proposal) -> list[str]:
    outside = ", after text from outside" if one.is_outside else ""
    head = f"{one.id:>5}  {ago(one.at)}  {one.by}{outside}: {plain(one.why)}"
    return [head, box.diff(one).rstrip()]
