"""With a pooler before the database, connections hold no state, so any may be reused."""

import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from longhold.core.log.entries import Said
from longhold.core.messages import Text
from longhold.core.messages.usage import Tally
from longhold.core.settings import StoreSettings
from longhold.errors import LogLocked
from programs import find

PGBOUNCER = os.environ.get("LONGHOLD_TEST_PGBOUNCER") or find("pgbouncer")
SESSIONS, TURNS = 6, 15


@pytest.fixture
def pooled_url(postgres_url):
    """Start PgBouncer with transaction pooling and two connections for everybody."""
    if PGBOUNCER is None:
        pytest.skip("PgBouncer is not installed: the store is not tested behind it")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = postgres_url.partition("host=")[2]
    place = Path("/tmp") / f"longhold-pool-{os.getpid()}-{port}"
    place.mkdir(mode=0o755)
    (place / "users").write_text('"longhold" ""\n')
    (place / "ini").write_text(
        f"[databases]\npostgres = host={server} dbname=postgres user=longhold\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = any\nauth_file = {place / 'users'}\n"
        "pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\n"
    )
    user = "postgres" if os.geteuid() == 0 else None
    process = subprocess.Popen(
        [PGBOUNCER, str(place / "ini")],
        user=user,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield f"postgresql://longhold@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.communicate()
        shutil.rmtree(place)


def test_sessions_are_written_through_a_pooler_of_transactions(pooled_url, tenant, tmp_path):
    from longhold.core.log.stores.postgres import PostgresStore

    settings = StoreSettings(tenant=tenant, patience_seconds=20)
    first, second = (PostgresStore(pooled_url, settings) for _ in range(2))
    try:
        stores = [(first, second)[number % 2] for number in range(SESSIONS)]
        logs = [
            store.create(directory=tmp_path, session=f"s{number}")
            for number, store in enumerate(stores)
        ]
        with pytest.raises(LogLocked):
            second.open("s0")

        def write(log):
            for turn in range(TURNS):
                log.append(Said(content=(Text(text=f"{turn}"),)))
                log.flush()
                log.keep_text("notes.md", f"turn {turn}")
            log.close()

        threads = [threading.Thread(target=write, args=(log,)) for log in logs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(SESSIONS):
            said = [one.content[0].text for one in second.load(f"s{number}").entries]
            assert said == [str(turn) for turn in range(TURNS)]
            assert second.beside(f"s{number}") == {"notes.md": b"turn %d" % (TURNS - 1)}
        first.shared(tmp_path).ledger.add(Tally(usd=1.0, calls=1))
        assert second.shared(tmp_path).ledger.today().calls == 1
        with second.open("s0") as taken:
            assert taken.append(Said(content=(Text(text="on"),))).n == TURNS + 1
    finally:
        first.close()
        second.close()
