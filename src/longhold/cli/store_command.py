"""`longhold sessions copy|check|forget|migrate`: copy, check and erase sessions, run migrations."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import ask_yes_no, report, say
from longhold.core.log.entries import Ran, Spilled, Swept
from longhold.core.log.results import sha256_of
from longhold.core.log.store import Store, StoredSession
from longhold.core.log.stores import (
    VARIABLE,
    default_store,
    list_migrations,
    open_store,
    read_store_name,
)
from longhold.core.memory.paths import memory_directory
from longhold.core.memory.store import erase_memories
from longhold.core.messages.text import clean_text, pluralize
from longhold.core.settings import home, load_settings
from longhold.core.view import fold
from longhold.errors import ConfigError, LongholdError, SessionExists


@click.command(epilog="Example: longhold sessions copy default postgresql://localhost/longhold")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("sessions", nargs=-1)
@options.as_json
def copy(source: str, target: str, sessions: tuple[str, ...], as_json: bool) -> None:
    """Copy sessions from one store to another.

    FROM and TO are directories, postgresql://… addresses or `default`. The default is the store
    that LONGHOLD_STORE names, or else this machine's files. Without SESSIONS, all sessions are
    copied. Existing sessions in TO are left unchanged, so you can repeat an interrupted copy.
    """
    if len({read_store_name() if place == "default" else place for place in (source, target)}) == 1:
        raise ConfigError(f"FROM and TO are the same store; `default` is the one in {VARIABLE}")
    copied: list[str] = []
    there: list[str] = []
    with _open_place(source) as taken, _open_place(target) as given:
        for id in [taken.find(id, by_prefix=True).id for id in sessions] or [
            one.id for one in taken.sessions()
        ]:
            (copied if _copy(taken, given, id) else there).append(id)
            for agent in taken.agents(id):
                _copy(taken, given, agent)
    lines = [f"{pluralize(len(copied), 'session')} copied."]
    if there:
        lines.append(f"{pluralize(len(there), 'session')} already existed and were left unchanged.")
    report(as_json, {"copied": copied, "there_already": there}, lines)


def _copy(taken: Store, given: Store, name: str) -> bool:
    loaded, agent = taken.load(name), name if "/" in name else ""
    try:
        given.add(loaded.header, loaded.entries, taken.beside(name), agent=agent)
    except SessionExists:
        return False
    return True


def archive(taken: Store, place: str, doomed: Iterable[StoredSession]) -> Iterator[StoredSession]:
    """Copy sessions with their agents' logs, and yield each session whose copy is complete."""
    with _open_place(place) as given:
        for one in doomed:
            names = [one.id, *taken.agents(one.id)]
            for name in names:
                _copy(taken, given, name)
            if all(_is_same(taken, given, name) for name in names):
                yield one
            else:
                why = f"it is damaged, or {place} has another session of this id"
                say(f"not removed: {one.id}: {why}", err=True)


def _is_same(taken: Store, given: Store, name: str) -> bool:
    one, other = taken.load(name), given.load(name)
    is_whole = not one.damage and (one.header, one.entries) == (other.header, other.entries)
    return is_whole and taken.beside(name) == given.beside(name)


@click.command(epilog="Example: longhold sessions check")
@click.argument("place", metavar="STORE", default="default")
@options.as_json
def check(place: str, as_json: bool) -> None:
    """Read every session and report damage.

    The command reports damaged entries, entries without effect, and bodies of results that are
    missing or changed.
    """
    with _open_place(place) as store:
        found = {one.id: list(_problems(store, one.id)) for one in store.sessions()}
    wrong = {id: problems for id, problems in found.items() if problems}
    lines = [
        f"{id}: {clean_text(problem)}" for id, problems in wrong.items() for problem in problems
    ]
    lines.append(f"{pluralize(len(found), 'session')} read, {len(wrong)} with problems.")
    report(as_json, {"sessions": len(found), "problems": wrong}, lines)
    if wrong:
        raise SystemExit(1)


@click.command(epilog="Example: longhold sessions migrate --show")
@click.argument("url", default="")
@click.option("--show", is_flag=True, help="Only print the statements that would run.")
def migrate(url: str, show: bool) -> None:
    """Create or update the tables of a database. Opening a store does this automatically. Use this
    command to see the statements first, or if your programs may not create tables.
    """
    named = url or read_store_name()
    if "://" not in named:
        raise ConfigError(f"name a database: set {VARIABLE} or give its postgresql:// address")
    pending = list_migrations(named)
    if show:
        for text in pending:
            say(text)
    elif pending:
        open_store(named).close()
    say(f"{pluralize(len(pending), 'migration')} {'pending' if show else 'done'}.", err=show)


@contextmanager
def _open_place(place: str) -> Iterator[Store]:
    """Open a store for one command. The default store stays open for the process."""
    if place == "default":
        yield default_store()
        return
    store = open_store(place)
    try:
        yield store
    finally:
        store.close()


def _problems(store: Store, id: str) -> Iterator[str]:
    try:
        loaded = store.load(id)
        beside = store.beside(id)
    except LongholdError as error:
        yield str(error)
        return
    for damage in loaded.damage:
        yield f"line {damage.line}: {damage.reason}"
    for n, reason in fold(loaded.entries).damage:
        yield f"entry {n} has no effect: {reason}"
    swept = {name for one in loaded.entries if isinstance(one, Swept) for name in one.files}
    for entry in loaded.entries:
        if not isinstance(entry, Ran | Spilled) or not (entry.file and entry.sha256):
            continue
        name = "/".join(entry.file.rsplit("/", 2)[-2:])
        if name in swept:
            continue
        if name not in beside:
            yield f"entry {entry.n}: the body {name} is missing"
        elif sha256_of(beside[name]) != entry.sha256:
            yield f"entry {entry.n}: the body {name} differs from what was written"


@click.command(epilog="Example: longhold sessions forget user-7")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    help="Erase the sessions and memories of this directory.",
)
@click.option("--tenant", metavar="NAME", help="Erase everything of this tenant of the database.")
@click.option(
    "--memory",
    "memories",
    multiple=True,
    metavar="NAME",
    help="Erase a memory of this directory, and the history of all its memories.",
)
@click.option("--words", metavar="TEXT", help="With IDS, erase only this text.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options.as_json
def forget(
    ids: tuple[str, ...],
    directory: Path | None,
    tenant: str | None,
    memories: tuple[str, ...],
    words: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Erase a person's data for good, with branches, indexes and copies on this machine.

    Give complete ids. The command does not erase backups, exports and copies on other machines.
    """
    wanted = [bool(ids), directory is not None, tenant is not None, bool(memories)]
    if sum(wanted) != 1 or (words is not None and not (ids and words)):
        raise click.UsageError("give IDs (with or without --words), or one of the options")
    if not yes:
        ask_yes_no("Erase this permanently? It cannot be restored.", is_required=True, err=True)
    if memories:
        _forget_memories(memories)
        erased = list(memories)
    elif words is not None:
        erased = [id for id in ids if default_store().redact(id, words)]
    elif tenant is not None:
        erased = _forget_tenant(tenant)
    else:
        erased = default_store().erase(*ids, directory=directory)
    report(
        as_json, {"erased": erased}, [f"Erased: {', '.join(map(clean_text, erased)) or 'nothing'}."]
    )


def _forget_tenant(tenant: str) -> list[str]:
    name = read_store_name()
    if not name.startswith("postgres"):
        raise ConfigError("only a database has tenants; for files give IDs or --directory")
    store = open_store(name, replace(load_settings(Path.cwd()).store, tenant=tenant))
    with closing(store):
        return store.erase(everything=True)


def _forget_memories(names: Sequence[str]) -> None:
    limits, here = load_settings(Path.cwd()).memory, Path.cwd()
    if not limits.directory and default_store().shared(here).memory is not None:
        raise ConfigError(
            "in a database one memory cannot be erased; --directory erases all of a directory"
        )
    erase_memories(memory_directory(home(), here, limits.directory), names, limits)
