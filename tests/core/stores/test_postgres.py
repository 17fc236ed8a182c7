"""Sessions in PostgreSQL while processes die, pause and lose their connection."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazy import LazyModule, needs
from longhold import Session
from longhold.core.log.entries import Said
from longhold.core.log.stores import list_migrations, open_store
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.messages.usage import Tally
from longhold.core.models.protocol import BlockFinished, Finished, Reply
from longhold.core.settings import StoreSettings
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome
from longhold.core.turn.round import Toolbox, run_round
from longhold.errors import ConfigError, LeaseLost, LogLocked, SessionNotFound, StoreError

needs("psycopg")
pytestmark = pytest.mark.slow
psycopg = LazyModule("psycopg")

from longhold.core.log.stores.postgres import PostgresStore  # noqa: E402
from longhold.core.log.stores.postgres.schema import MIGRATIONS  # noqa: E402
from postgres_server import QUICK, PostgresServer  # noqa: E402

LEASE_SECONDS = 0.6


def said(text: str) -> Said:
    return Said(content=(Text(text=text),))


def texts(loaded) -> list[str]:
    return [one.content[0].text for one in loaded.entries]


@pytest.fixture
def stores(postgres_url, tenant):
    """Open the tenant's store as often as asked, each as a process of its own would."""
    opened = []

    def open_one(**settings):
        settings = {"tenant": tenant, "lease_seconds": LEASE_SECONDS, **settings}
        opened.append(PostgresStore(postgres_url, StoreSettings(**settings)))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@contextmanager
def writer(url: str, tenant: str, session: str):
    """Run a process that writes a session; whatever became of it, it is gone afterwards."""
    command = [sys.executable, Path(__file__).with_name("writer_process.py")]
    process = subprocess.Popen(
        [*command, url, tenant, session, str(LEASE_SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def write(process, word: str) -> str:
    process.stdin.write(f"{word}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def taken_over(store, session: str) -> tuple[object, float]:
    """Open a session as soon as its writer's lease has ended; return how long that took."""
    began = time.monotonic()
    while True:
        try:
            return store.open(session), time.monotonic() - began
        except LogLocked:
            assert time.monotonic() - began < 20 * LEASE_SECONDS
            time.sleep(0.02)


def test_a_paused_writer_writes_nothing_after_its_lease_was_taken(
    stores, postgres_url, tenant, tmp_path
):
    store = stores()
    store.create(directory=tmp_path, session="s").close()
    with writer(postgres_url, tenant, "s") as process:
        assert write(process, "before") == "kept"
        os.kill(process.pid, signal.SIGSTOP)
        log, _ = taken_over(store, "s")
        log.append(said("taken over"))
        log.flush()
        os.kill(process.pid, signal.SIGCONT)
        assert write(process, "after") == "LeaseLost"
        assert write(process, "and again") == "LeaseLost"
        log.append(said("still ours"))
        log.close()
    assert texts(store.load("s")) == ["before", "taken over", "still ours"]


def test_a_killed_writer_is_replaced_when_its_lease_ends(stores, postgres_url, tenant, tmp_path):
    store = stores()
    store.create(directory=tmp_path, session="s").close()
    with writer(postgres_url, tenant, "s") as process:
        assert [write(process, word) for word in ("one", "two")] == ["kept", "kept"]
        process.kill()
        log, seconds = taken_over(store, "s")
    assert seconds <= LEASE_SECONDS + 1
    assert texts(log) == ["one", "two"]
    log.close()


def test_a_live_writer_is_never_replaced(stores, tmp_path):
    log = stores().create(directory=tmp_path, session="s")
    other, until = stores(), time.monotonic() + 2 * LEASE_SECONDS
    while time.monotonic() < until:
        with pytest.raises(LogLocked):
            other.open("s")
    log.append(said("mine"))
    log.flush()
    log.close()


def test_cut_connections_lose_and_double_nothing(stores, postgres_url, tmp_path):
    store, cuts = stores(), 25

    def cut() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            for _ in range(cuts):
                while not connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'longhold'"
                ).fetchall():
                    pass

    cutting, count = threading.Thread(target=cut), 0
    with store.create(directory=tmp_path, session="s") as log:
        cutting.start()
        while cutting.is_alive() or count < 100:
            log.append(said(str(count)))
            count += 1
            if count % 10 == 0:
                log.flush()
    assert texts(store.load("s")) == [str(number) for number in range(count)]


def test_a_server_that_crashes_keeps_what_it_acknowledged(tmp_path):
    server = PostgresServer(settings=())
    store = PostgresStore(server.url, StoreSettings())
    try:
        with store.create(directory=tmp_path, session="s") as log:
            log.append(said("acknowledged"))
            log.flush()
            server.crash()
            log.append(said("while it is away"))
            server.start()
            log.flush()
            log.append(said("after"))
        assert texts(store.load("s")) == ["acknowledged", "while it is away", "after"]
    finally:
        store.close()
        server.stop()


def test_a_server_that_stays_away_is_an_error_of_ours(tmp_path):
    server = PostgresServer()
    store = PostgresStore(server.url, StoreSettings(patience_seconds=0.2))
    log = store.create(directory=tmp_path, session="s")
    server.stop()
    log.append(said("lost"))
    with pytest.raises(StoreError, match="cannot be reached"):
        log.flush()
    with pytest.raises(StoreError, match="cannot be reached"):
        log.append(said("more"))
    with pytest.raises(StoreError, match="cannot be reached"):
        store.sessions()
    log.close()
    store.close()


PROGRAM = """
import os, sys
from pathlib import Path
from longhold.core.log.entries import Said
from longhold.core.log.stores import open_store
from longhold.core.messages import Text

store = open_store(sys.argv[1])
log = store.create(directory=Path.cwd(), session=sys.argv[2])
log.append(Said(content=(Text(text="parent"),)))
log.flush()
if sys.argv[2] == "forked":
    child = os.fork()
    if not child:
        sys.exit()
    os.waitpid(child, 0)
    log.append(Said(content=(Text(text="after the fork"),)))
    log.flush()
    store.sessions()
"""


@pytest.mark.parametrize("session", ["alone", "forked"])
def test_a_program_that_ends_without_closing_its_store_disconnects(session, tmp_path):
    server = PostgresServer(settings=(*QUICK, "log_min_messages=debug1"))
    try:
        command = [sys.executable, "-c", PROGRAM, server.url, session]
        subprocess.run(command, check=True, cwd=tmp_path)
        assert "unexpected EOF" not in (server.directory / "log").read_text()
        store = PostgresStore(server.url)
        try:
            assert len(store.load(session).entries) == (2 if session == "forked" else 1)
            store.open(session).close()  # the program's lease has ended with it
        finally:
            store.close()
    finally:
        server.stop()


@contextmanager
def commits_held_up(url: str, session: str):
    """Hold a session's row, so that nothing of it can be committed; yield how to wait for a try."""
    with psycopg.connect(url) as holding, psycopg.connect(url, autocommit=True) as looking:
        holding.execute("SELECT 1 FROM longhold.sessions WHERE id = %s FOR UPDATE", (session,))

        def is_waiting() -> bool:
            (count,) = looking.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
            return count > 0

        yield is_waiting


async def test_no_request_is_given_out_before_what_it_rests_on_is_committed(
    stores, postgres_url, tenant, tmp_path
):
    session = Session.open(
        model="claude-sonnet-5-5", directory=tmp_path, store=stores(), id=f"s-{tenant}"
    )
    await session._engine.log.wait_for_commit()
    session.user("hello")
    with commits_held_up(postgres_url, session.id) as is_waiting:
        preparing = asyncio.create_task(session.prepare())
        while not is_waiting():  # noqa: ASYNC110 - what is awaited is the server
            await asyncio.sleep(0)
        done, _ = await asyncio.wait({preparing}, timeout=0.05)
        assert not done
    await preparing
    kept = [type(entry).__name__ for entry in stores().load(session.id).entries]
    assert kept[-2:] == ["Said", "Asked"]
    session.close()


async def test_a_session_whose_lease_was_taken_sends_nothing_more(stores, tmp_path):
    session = Session.open(
        model="claude-sonnet-5-5", directory=tmp_path, store=stores(lease_seconds=0.5), id="s"
    )
    session.user("hello")
    await session.prepare()
    with psycopg.connect(stores()._database.url, autocommit=True) as connection:
        connection.execute(
            "UPDATE longhold.sessions SET fence = fence + 1 WHERE tenant = %s AND id = 's'",
            (stores().tenant,),
        )
    session.user("again")
    with pytest.raises(LeaseLost, match="another process became the writer"):
        await session.prepare()
    session.close()


def test_a_fork_of_a_process_cannot_write(stores, tmp_path):
    log = stores().create(directory=tmp_path, session="s")
    log.flush()
    pid = os.fork()
    if pid == 0:
        try:
            log.append(said("from the fork"))
        except StoreError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    log.close()


odd = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12
) | st.sampled_from(["", "%", "_", "a%", "a_", "'; --", '"', "\\", "A", "a", "ä", "a ", " a", "*"])
ids = st.from_regex(r"\A\w[\w.-]{0,8}\Z")


@settings(max_examples=25)
@given(tenants=st.lists(odd, min_size=2, max_size=2, unique=True), id=ids, other=ids)
def test_tenants_never_see_each_other(postgres_url, tmp_path, tenants, id, other):
    first, second = (
        PostgresStore(postgres_url, StoreSettings(tenant=tenant)) for tenant in tenants
    )
    try:
        for store, tenant in zip((first, second), tenants, strict=True):
            with store.create(directory=tmp_path, session=id) as log:
                log.append(said(tenant))
                log.keep_text("notes.md", tenant)
            shared = store.shared(tmp_path)
            shared.keep("calibration/m.json", tenant.encode())
            known = shared.ledger.today().calls  # of an earlier example
            shared.ledger.add(Tally(calls=1))
            assert shared.ledger.today().calls == known + 1
            number = len(shared.memory.after(0)) + 1
            assert shared.memory.add(number, f"{tenant} {number}".encode())
        for store, tenant in zip((first, second), tenants, strict=True):
            assert [one.id for one in store.sessions()] == [id]
            assert texts(store.load(id)) == [tenant]
            assert store.beside(id) == ({"notes.md": tenant.encode()})
            assert [one.id for one in store.sessions(tmp_path)] == [id]
            shared = store.shared(tmp_path)
            assert shared.read("calibration/m.json") == tenant.encode()
            assert shared.sessions_since(0.0) == [id]
            assert [one.content[0].text for one in shared.read_said(id)] == [tenant]
            commits = shared.memory.after(0)
            assert commits == [(n, f"{tenant} {n}".encode()) for n, _ in commits]
        if other != id:
            first.create(directory=tmp_path, session=other).close()
            with pytest.raises(SessionNotFound):
                second.delete(other)
        first.delete(id)
        assert texts(second.load(id)) == [tenants[1]]
    finally:
        for store in (first, second):
            for one in store.sessions():
                store.delete(one.id)
            store.close()


def test_many_tenants_share_connections_and_threads(stores, postgres_url, tmp_path):
    before = threading.active_count()
    first = stores()
    for n in range(30):
        with first.for_tenant(f"{first.tenant}-{n}").create(directory=tmp_path, session="a") as log:
            log.append(Said(content=(Text(text=f"of {n}"),)))
    for n in range(30):
        [said] = first.for_tenant(f"{first.tenant}-{n}").load("a").entries
        assert said.content == (Text(text=f"of {n}"),)
    assert first.sessions() == []
    assert threading.active_count() - before <= 2
    with psycopg.connect(postgres_url) as connection:
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'longhold'"
        assert connection.execute(count).fetchone()[0] <= 3


def test_a_role_without_grants_is_told_which(stores, postgres_url):
    stores()
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        role = f"visitor_{os.getpid()}"
        owner.execute(f"CREATE ROLE {role} LOGIN")
        url = postgres_url.replace("longhold@", f"{role}@")
        with pytest.raises(StoreError, match="GRANT SELECT, INSERT, UPDATE, DELETE"):
            open_store(url)
        owner.execute(f"GRANT USAGE ON SCHEMA longhold TO {role}")
        granted = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA longhold"
        owner.execute(f"{granted} TO {role}")
        store = open_store(url)
        store.create(directory=Path(), session=f"of-{role}").close()
        store.erase(everything=True)
        store.close()


def test_tables_are_made_once_by_however_many_processes(tmp_path):
    server = PostgresServer()
    try:
        opened: list[PostgresStore] = []
        openers = [
            threading.Thread(target=lambda: opened.append(PostgresStore(server.url)))
            for _ in range(6)
        ]
        for one in openers:
            one.start()
        for one in openers:
            one.join()
        assert len(opened) == 6
        with psycopg.connect(server.url) as connection:
            rows = connection.execute("SELECT version FROM longhold.versions").fetchall()
        assert rows == [(number,) for number in range(1, len(MIGRATIONS) + 1)]
        assert list_migrations(server.url) == []
        for one in opened:
            one.close()
    finally:
        server.stop()


def test_a_database_of_a_newer_version_is_used_as_it_is(stores, postgres_url, tmp_path):
    stores()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("INSERT INTO longhold.versions (version) VALUES (999)")
        stores().create(directory=tmp_path, session="s").close()
        connection.execute("DELETE FROM longhold.versions WHERE version = 999")


@pytest.mark.parametrize("url", ["mysql://x", "redis://"])
def test_a_store_of_an_unknown_kind_is_refused(url):
    with pytest.raises(ConfigError, match="postgresql://"):
        open_store(url)


def test_a_url_that_makes_no_sense_says_so():
    with pytest.raises(ConfigError, match="LONGHOLD_STORE"):
        open_store("postgresql://x?nonsense=1")


async def test_no_tool_runs_before_its_entry_is_committed(stores, postgres_url, tenant, tmp_path):
    ran: list[list[str]] = []

    class Charge:
        name, kind = "charge", "other"

        def is_read_only(self, input):
            return False

        async def run(self, input, context):
            kept = stores().load(session).entries
            ran.append([type(entry).__name__ for entry in kept])
            return Outcome(content="charged")

    async def answer():
        use = ToolUse(id="t1", name="charge", input={})
        yield BlockFinished(index=0, block=use)
        reply = Reply(
            response_id="r1", model="m", content=(use,), stop_reason="tool_use", usage=Usage()
        )
        yield Finished(reply=reply)

    session = f"s-{tenant}"
    with stores().create(directory=tmp_path, session=session) as log:
        context = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)
        toolbox = Toolbox(tools={"charge": Charge()}, tool_context=context)
        with commits_held_up(postgres_url, session) as is_waiting:
            playing = asyncio.create_task(_played(answer(), toolbox, log))
            while not is_waiting():  # noqa: ASYNC110 - what is awaited is the server
                await asyncio.sleep(0)
            await asyncio.wait({playing}, timeout=0.05)
            assert ran == []
        await playing
    assert ran == [["Replied", "Replied", "Began"]]


async def _played(events, toolbox, log) -> None:
    async for _ in run_round(events, toolbox, log.append, log.wait_for_commit):
        pass


def test_a_session_closed_while_the_database_is_away_is_released_later(tmp_path):
    server = PostgresServer(settings=())
    store = PostgresStore(server.url, StoreSettings(patience_seconds=0.2))
    other = None
    try:
        first = store.create(directory=tmp_path, session="first")
        second = store.create(directory=tmp_path, session="second")
        server.crash()
        first.close()
        server.start()
        second.close()
        other = PostgresStore(server.url)
        other.open("first").close()
    finally:
        for one in (store, other):
            if one is not None:
                one.close()
        server.stop()
