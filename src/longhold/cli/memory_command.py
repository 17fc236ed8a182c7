"""`longhold memory`: show, search, edit, undo and export memories, and answer proposals."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from longhold.agent.subagents.memory_scopes import (
    SCOPES,
    Scope,
    agents_with_memories,
    open_store,
    scopes_of,
)
from longhold.cli import options
from longhold.cli.output import report, say
from longhold.core.log.stores import default_store
from longhold.core.memory.backlog import Backlog, MemoryBudget, learning_directory
from longhold.core.memory.commits import Commit, MemoryChange
from longhold.core.memory.dream import dream
from longhold.core.memory.dreaming import DreamLock
from longhold.core.memory.inbox import Inbox
from longhold.core.memory.memory import Memory, MemoryConflict, MemoryRefused, NoSuchMemory, parse
from longhold.core.memory.paths import (
    INDEX,
    agents_home,
    check_memory_name,
    find_memories,
    team_directory,
)
from longhold.core.memory.store import SHARED, MemoryStore
from longhold.core.memory.team import PREFIX, TeamMemories
from longhold.core.messages.text import ago, clean_text, list_some
from longhold.core.settings import home, load_settings

SHOWN_COMMITS = 20
FOUND = 10

NUMBER_DIGITS = 18  # fits a database's integer, and no store has that many commits
MOST = 10**NUMBER_DIGITS - 1


@contextmanager
def memory_store(*, creates: bool = False) -> Iterator[MemoryStore]:
    """Open the memories. With `creates`, create their directory if there is none."""
    with ExitStack() as stack:
        store = stack.enter_context(_open_store(*_chosen_agent(), stack, creates=creates))
        store.adopt()
        for file, problem in store.problems.items():
            say(f"{clean_text(file)} was left out: {clean_text(problem)}", err=True)
        yield store


def _chosen_agent() -> tuple[str, Scope | None]:
    above = click.get_current_context().parent
    given = above.params if above is not None and above.command is command else {}
    return given.get("agent", ""), given.get("scope")


def _open_store(agent: str, scope: Scope | None, stack: ExitStack, *, creates: bool) -> MemoryStore:
    here, settings = Path.cwd(), load_settings(Path.cwd())
    if not agent:
        commits, place = find_memories(default_store().shared(here), home(), here, settings)
        if not creates and not place.exists():
            place = Path(stack.enter_context(TemporaryDirectory()))
        return MemoryStore(place, settings.memory, commits=commits)
    above = agents_home(default_store().shared(here).memory, home())
    scopes = scopes_of(agent, here, above)
    if scope is None and len(scopes) > 1:
        raise click.UsageError(f"{agent} has memories in several scopes; choose --scope")
    if scope is not None and scope not in scopes:
        raise NoSuchMemory(f"agents named {agent!r} have no memories in the scope {scope}")
    return open_store(agent, scope or scopes[0], here, above, settings.memory)


@click.group(epilog="Example: longhold memory log")
@click.option("--agent", default="", metavar="NAME", help="Use the memories of this kind of agent.")
@click.option("--scope", type=click.Choice(SCOPES), help="The scope, if the agent has several.")
def command(agent: str, scope: Scope | None) -> None:
    """Show, search, edit, tidy, undo and export memories.

    The commands use the current project's memories, or an agent's memories with --agent. Each
    command prints JSON with --json.
    """


@command.command(epilog="Example: longhold memory status")
@options.as_json
def status(as_json: bool) -> None:
    """Show the number and cost of memories, and the pending messages and proposals."""
    with memory_store() as store:
        learning = learning_directory(home(), store.root)
        spending = MemoryBudget(
            directory=learning / "spent", share=store.limits.share, clock=time.time
        )
        waiting, proposed = Backlog(learning / "waiting").list(), Inbox(store).waiting()
        last = DreamLock(store.root).look().last
        known = len(store.versions())
        lines = [
            f"{known} memories; {len(proposed)} proposals wait for you (longhold memory inbox)",
            spending.line,
            f"last dream: {ago(last) if last else 'none yet'}",
            *(one.line for one in waiting),
        ]
        document = {
            "memories": known,
            "proposals": len(proposed),
            "spent_usd": spending.spent_usd(),
            "allowed_usd": spending.allowed_usd(),
            "last_dream": last,
            "waiting": waiting,
        }
        report(as_json, document, lines)


@command.command(epilog="Example: longhold memory log deploys.md")
@click.argument("file", default="")
@click.option(
    "-n", "count", type=click.IntRange(min=1, max=MOST), default=SHOWN_COMMITS, show_default=True
)
@click.option("--gone", is_flag=True, help="List removed memories that can be restored.")
@options.as_json
def log(file: str, count: int, gone: bool, as_json: bool) -> None:
    """Show the changes of FILE, or of all memories, with author and reason, newest first."""
    with memory_store() as store:
        if gone:
            stones = store.history.tombstones()
            lines = []
            for stone in stones:
                basis = f" (based on {', '.join(stone.evidence)})" if stone.evidence else ""
                lines.append(f"{stone.file}  {stone.by}, {ago(stone.at)}: {stone.reason}{basis}")
            report(as_json, stones, lines or ["Nothing was removed."])
            return
        commits = store.history.log(count, file=file)
        report(as_json, commits, list(map(_commit_line, commits)) or ["No commits yet."])


@command.command(epilog="Example: longhold memory diff 12")
@click.argument("commit", type=click.IntRange(min=1, max=MOST), required=False)
@options.as_json
def diff(commit: int | None, as_json: bool) -> None:
    """Show what COMMIT changed, line by line. The default is the last commit."""
    with memory_store() as store:
        found = store.history.commit(commit or store.history.head)
        text = store.history.diff(found.changes)
        report(as_json, {"commit": found, "diff": text}, [_commit_line(found), text.rstrip()])


@command.command(epilog="Example: longhold memory undo")
@click.argument("what", default="")
@options.as_json
def undo(what: str, as_json: bool) -> None:
    """Undo commit WHAT (by default the last), or restore the removed memory WHAT."""
    with memory_store() as store:
        number = _number(what or "0")
        done = store.bring_back(what) if number is None else store.undo(number)
        report(as_json, done, [_commit_line(done)])


@command.command(epilog="Example: longhold memory show deploys.md")
@click.argument("file", default="")
@options.as_json
def show(file: str, as_json: bool) -> None:
    """Show FILE, or the index of all memories, including the team's."""
    with memory_store() as store:
        team = TeamMemories(team_directory(Path.cwd()))
        if file:
            found = _find(store, team, file)
            report(as_json, found, [found.text.rstrip()])
            return
        index, shared = store.index(), team.index()
        lines = [index.rstrip() or "No memories for this project."]
        lines += ["", "team", shared.rstrip()] if shared else []
        report(as_json, {"memories": store.list_lines(), "team": team.memories()}, lines)


@command.command(epilog="Example: longhold memory search staging database")
@click.argument("words", nargs=-1, required=True)
@options.as_json
def search(words: tuple[str, ...], as_json: bool) -> None:
    """Find memories by WORDS. The best match comes first, and superseded memories come last."""
    with memory_store() as store:
        hits = store.search(" ".join(words), FOUND)
        lines = [f"{hit.file}: {clean_text(hit.description)}" for hit in hits]
        report(as_json, hits, lines or ["No memory matches."])


@command.command(epilog="Example: longhold memory edit deploys.md")
@click.argument("file")
@click.option(
    "--text", help="The new text, or - to read it from stdin. Without this option, an editor opens."
)
@click.option("--why", default="edited", help="The reason to record in the log.")
@options.as_json
def edit(file: str, text: str | None, why: str, as_json: bool) -> None:
    """Edit FILE in $EDITOR, or create it."""
    name = check_memory_name(file)
    with memory_store(creates=True) as store:
        expected = store.version(name)
        new = Memory(file=name, name=Path(name).stem, description="one line that describes it")
        before = store.read(name) if expected else new.text
        after = sys.stdin.read() if text == "-" else text
        if text is None:
            after = click.edit(before, extension=".md", require_save=True)
        done = None
        if after is not None and after != before:
            memory = replace(parse(name, after, at=time.time()), modified=time.time())
            change = MemoryChange(file=name, text=memory.text, expected=expected)
            done = store.commit([change], by="person", why=why)
        report(as_json, done, [_commit_line(done) if done else "Nothing was changed."])


@command.command(epilog='Example: longhold memory forget old-plan.md --why "it was dropped"')
@click.argument("files", nargs=-1, required=True)
@click.option("--why", default="no longer wanted", show_default=True, help="Reason to record.")
@options.as_json
def forget(files: tuple[str, ...], why: str, as_json: bool) -> None:
    """Remove FILES. `longhold memory undo NAME` restores a file."""
    files = tuple(dict.fromkeys(files))
    with memory_store() as store:
        for file in files:
            store.read(file)  # because a missing file must be reported before any is removed
        changes = [
            MemoryChange(file=file, text=None, expected=store.version(file), reason=why)
            for file in files
        ]
        done = store.commit(changes, by="person", why=f"forgotten: {why}")
        assert done is not None
        report(as_json, done, [_commit_line(done)])


@command.command(epilog="Example: longhold memory share deploys.md")
@click.argument("file")
@click.option(
    "--convention", is_flag=True, help="Share feedback as a convention for everyone here."
)
@options.as_json
def share(file: str, convention: bool, as_json: bool) -> None:
    """Move FILE to the team's memories in the repository.

    Sessions never share memories themselves. Memories about a person cannot be shared.
    """
    with memory_store() as store:
        if store.limits.team == "off":
            raise click.UsageError(
                "memory.team is 'off', so no session would use the memory; set it to 'read'"
            )
        memory, team = store.memory(file), TeamMemories(team_directory(Path.cwd()))
        if any(one.file == file for one in team.memories()):
            raise MemoryRefused(f"the team already has a memory {file!r}; edit that file")
        written = team.write(replace(memory, evidence=()), is_convention=convention)
        reason = f"{SHARED} as {written.relative_to(team.root.parent.parent)}"
        gone = MemoryChange(file=file, text=None, expected=store.version(file), reason=reason)
        done = store.commit([gone], by="person", why=f"{file} shared")
        report(as_json, done, [f"{written} is now a team memory; commit it with the repository."])


@command.command(epilog="Example: longhold memory inbox --accept 3")
@click.option("--accept", metavar="N", help="Accept proposal N, or `all`.")
@click.option("--decline", metavar="N", help="Decline proposal N, or `all`.")
@options.as_json
def inbox(accept: str | None, decline: str | None, as_json: bool) -> None:
    """List proposed memories, or accept or decline them."""
    with memory_store() as store:
        box = Inbox(store)
        if accept and decline:
            raise click.UsageError("--accept and --decline exclude each other; choose one")
        which = accept or decline
        if not which:
            lines = []
            for one in box.waiting():
                source = ", after untrusted input" if one.is_outside else ""
                lines.append(f"{one.id:>5}  {ago(one.at)}  {one.by}{source}: {clean_text(one.why)}")
                lines.append(box.diff(one).rstrip())
            report(as_json, box.waiting(), lines or ["No proposals."])
            if not as_json and not _chosen_agent()[0]:
                report(False, None, _list_waiting_elsewhere())
            return
        if which != "all" and _number(which) is None:
            raise click.UsageError(f"{which!r} is not a number; give one from the inbox, or all")
        word, decide = ("accepted", box.accept) if accept else ("declined", box.decline)
        done, conflicts = list[int](), dict[int, str]()
        for proposal in box.waiting() if which == "all" else [box.find(int(which))]:
            try:
                decide(proposal.id)
                done.append(proposal.id)
            except (MemoryConflict, MemoryRefused) as error:
                conflicts[proposal.id] = str(error)
        named = "; ".join(f"{id}: {clean_text(why)}" for id, why in conflicts.items())
        beside = f", {len(conflicts)} conflicts ({named})" if conflicts else ""
        report(as_json, {word: done, "conflicts": conflicts}, [f"{len(done)} {word}{beside}."])
        if conflicts:
            raise SystemExit(1)


def _list_waiting_elsewhere() -> Iterator[str]:
    here, limits = Path.cwd(), load_settings(Path.cwd()).memory
    above = agents_home(default_store().shared(here).memory, home())
    for name, scope in agents_with_memories(here, above):
        with open_store(name, scope, here, above, limits) as store:
            if count := len(Inbox(store).waiting()):
                how = f"longhold memory --agent {name} --scope {scope} inbox"
                yield f"{count} more wait in the {scope} memories of {name}: {how}"


def _commit_line(commit: Commit) -> str:
    files = [one.file for one in commit.changes if one.file != INDEX] or [INDEX]
    return f"{commit.id:>5}  {ago(commit.at):>14}  {commit.by:<10}  {clean_text(commit.why)}  ({list_some(files, 4)})"


def _find(store: MemoryStore, team: TeamMemories, file: str) -> Memory:
    if not file.startswith(PREFIX):
        return store.memory(file)
    found = [memory for memory in team.memories() if f"{PREFIX}{memory.file}" == file]
    if not found:
        raise NoSuchMemory(f"no team memory {file!r}; `longhold memory show` lists them")
    return found[0]


def _number(text: str) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) <= NUMBER_DIGITS
    return int(text) if is_number else None


@command.command("dream", epilog="Example: longhold memory dream --dry-run")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@options.as_json
def dream_now(dry_run: bool, as_json: bool) -> None:
    """Tidy the project's memories in one commit.

    The command merges duplicates, marks memories that a newer memory contradicts, repairs links,
    lists sources that changed, and sorts the index. `/dream` in a chat also lets the model review
    the sessions since the last dream. `longhold memory undo` undoes the commit.
    """
    limits, repository = load_settings(Path.cwd()).dream, team_directory(Path.cwd()).parent.parent
    with memory_store() as store, ExitStack() as stack:
        if not dry_run:
            lock = DreamLock(store.root)
            if dead := lock.release_dead():
                say(f"A dream in process {dead.pid} was killed and changed nothing.", err=True)
            stack.enter_context(lock.hold())
        done = dream(store, limits, repository=repository, is_trial=dry_run)
    left = "".join(f"\nLeft out: {clean_text(file)}, {why}." for file, why in done.dropped.items())
    undo = f" To undo it: longhold memory undo {done.commit.id}" if done.commit else ""
    said = f"Would do: {done.line}." if dry_run else f"{done.line.capitalize()}.{undo}"
    report(as_json, done, [f"{done.diff}{said}{left}"])
