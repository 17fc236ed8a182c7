"""A dump of the database, restored elsewhere: every session is complete and continues."""

import subprocess

import pytest

from longhold.core.log.entries import Said
from longhold.core.log.stores.postgres import PostgresStore
from longhold.core.messages import Text
from longhold.core.settings import StoreSettings
from postgres_server import PostgresServer, programs

pytestmark = pytest.mark.slow

SESSIONS, ENTRIES = 20, 30


def texts(loaded):
    return [one.content[0].text for one in loaded.entries if isinstance(one, Said)]


def test_a_restored_dump_has_every_session_and_continues(postgres_url, tenant, tmp_path):
    settings = StoreSettings(tenant=tenant)
    store = PostgresStore(postgres_url, settings)
    for number in range(SESSIONS):
        with store.create(directory=tmp_path, session=f"s{number}") as log:
            for n in range(ENTRIES):
                log.append(Said(content=(Text(text=f"{number}.{n}"),)))
            body = log.results.body("call", "the whole result", cap_bytes=1_000)
            log.results.keep(body, is_only_copy=True)
    before = {one.id: texts(store.load(one.id)) for one in store.sessions()}
    # A session that was open during the backup has a holder which exists nowhere else.
    held = store.open("s0")
    dump = tmp_path / "dump.sql"
    words = ["-n", "longhold", "-f", str(dump), "-d", postgres_url]
    subprocess.run([programs() / "pg_dump", *words], check=True, timeout=60)
    held.close()
    store.close()

    other = PostgresServer()
    try:
        restore = [programs() / "psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(dump), other.url]
        subprocess.run(restore, check=True, timeout=60, stdout=subprocess.DEVNULL)
        restored = PostgresStore(other.url, settings)
        try:
            assert {one.id: texts(restored.load(one.id)) for one in restored.sessions()} == before
            assert restored.results("s3").read("call.txt") == "the whole result"
            with restored.open("s3") as log:
                log.append(Said(content=(Text(text="after the restore"),)))
            assert texts(restored.load("s3"))[-1] == "after the restore"
            assert restored.erase("s4") == ["s4"]
        finally:
            restored.close()
    finally:
        other.stop()
