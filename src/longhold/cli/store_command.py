"""`longhold store`: copy sessions between stores, check them, and show or run migrations."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from longhold.cli import options
from longhold.cli.output import report, say
from longhold.core.log.entries import Ran, Spilled, Swept
from longhold.core.log.results import sha256_of
from longhold.core.log.store import Store
from longhold.core.log.stores import (
    VARIABLE,
    default_store,
    list_migrations,
    open_store,
    read_store_name,
)
from longhold.core.messages.text import clean_text, pluralize
from longhold.core.view import fold
from longhold.errors import ConfigError, LongholdError, SessionExists


@click.group(epilog="Example: longhold store check --json")
def command() -> None:
    """Move, check and migrate where sessions are kept.

    LONGHOLD_STORE names the store that every other command uses; without it, sessions are files.
    """


@command.command(epilog="Example: longhold store copy default postgresql://localhost/longhold")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.argument("sessions", nargs=-1)
@options.as_json
def copy(source: str, target: str, sessions: tuple[str, ...], as_json: bool) -> None:
    """Copy sessions from one store to another.

    FROM and TO are directories, postgresql://… or `default`: what LONGHOLD_STORE names, else
    this machine's files. Without SESSIONS all are copied. One that is there already is left as
    it is, so a copy that was cut short can be run again.
    """
    if len({read_store_name() if place == "default" else place for place in (source, target)}) == 1:
        raise ConfigError(f"FROM and TO are the same store; `default` is the one {VARIABLE} names")
    copied: list[str] = []
    there: list[str] = []
    with _open_place(source) as taken, _open_place(target) as given:
        for id in [taken.find(id).id for id in sessions] or [one.id for one in taken.sessions()]:
            (copied if _copy(taken, given, id) else there).append(id)
            for agent in taken.agents(id):
                _copy(taken, given, agent)
    lines = [f"{pluralize(len(copied), 'session')} copied."]
    if there:
        lines.append(f"{pluralize(len(there), 'session')} there already, left as they are.")
    report(as_json, {"copied": copied, "there_already": there}, lines)


def _copy(taken: Store, given: Store, name: str) -> bool:
    loaded, agent = taken.load(name), name if "/" in name else ""
    try:
        given.add(loaded.header, loaded.entries, taken.beside(name), agent=agent)
    except SessionExists:
        return False
    return True


@command.command(epilog="Example: longhold store check")
@click.argument("place", metavar="STORE", default="default")
@options.as_json
def check(place: str, as_json: bool) -> None:
    """Read every session and say what is wrong with it.

    Damaged entries, entries that have no effect, and bodies of results that are missing or are
    not what was written.
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


@command.command(epilog="Example: longhold store migrate --show")
@click.argument("url", default="")
@click.option("--show", is_flag=True, help="Only print the statements that would run.")
def migrate(url: str, show: bool) -> None:
    """Make or update the tables of a database.

    Whatever opens a store does that by itself; this is for those who look first, or whose
    programs may not make tables.
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
            yield f"entry {entry.n}: the body {name} is not what was written"
