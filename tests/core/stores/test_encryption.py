"""Sessions with content that the database cannot read."""

import base64
import secrets

import pytest

from lazy import LazyModule, needs
from longhold import Session
from longhold.core.log.entries import Failed, Said
from longhold.core.log.stores import open_store
from longhold.core.messages import Text
from longhold.core.settings import StoreSettings
from longhold.errors import ConfigError, StoreError

needs("psycopg", "cryptography")
psycopg = LazyModule("psycopg")
MODEL = "claude-sonnet-4-6"
NEEDLE = "4111-1111-NEEDLE"


@pytest.fixture
def key_file(tmp_path):
    file = tmp_path / "key"
    file.write_bytes(base64.b64encode(secrets.token_bytes(64)))
    return str(file)


@pytest.fixture
def opened(postgres_url, tenant):
    stores = []

    def open_one(**settings):
        stores.append(open_store(postgres_url, StoreSettings(tenant=tenant, **settings)))
        return stores[-1]

    yield open_one
    for one in stores:
        one.close()


def find_rows(url, words):
    """Count the rows of all tables that have these words anywhere."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = 'longhold' AND data_type = 'bytea'"
        ).fetchall()
        return sum(
            connection.execute(
                f"SELECT count(*) FROM longhold.{table} WHERE position(%s::bytea IN {column}) > 0",
                (words.encode(),),
            ).fetchone()[0]
            for table, column in tables
        )


async def talk(store, place):
    """Say it, answer with it, have a long result with it, and keep it for the project."""
    async with await Session.aopen(MODEL, id="s", store=store, directory=place) as session:
        session.user(f"My card is {NEEDLE}.")
        await session.prepare()
        use = {"type": "tool_use", "id": "t1", "name": "look", "input": {"card": NEEDLE}}
        usage = {"input_tokens": 90, "output_tokens": 5}
        reply = {"id": "r1", "role": "assistant", "model": MODEL, "content": [use]}
        await session.record(reply | {"stop_reason": "tool_use", "usage": usage})
        session.tool_result("t1", f"{NEEDLE} is paid\n" * 9_000)
        await session.prepare()
        log = session._engine.log
        log.keep_text("notes.md", f"# Notes on {NEEDLE}")
        log.leave(Failed(what="notes", error=f"later: {NEEDLE}"))
        log.mail.send("s", "m1", NEEDLE.encode())
        assert log.shared.memory.add(1, NEEDLE.encode()) and log.shared.memory.add(
            1, NEEDLE.encode()
        )


async def test_the_database_holds_nothing_legible_and_the_store_all_of_it(
    opened, key_file, postgres_url, tmp_path
):
    before = find_rows(postgres_url, NEEDLE)
    await talk(opened(key_file=key_file), tmp_path)
    assert find_rows(postgres_url, NEEDLE) == before == 0
    again = opened(key_file=key_file)
    assert NEEDLE in again.title(again.find("s"))
    assert NEEDLE in str(again.load("s").entries)
    assert NEEDLE.encode() in b"".join(again.beside("s").values())
    with again.open("s") as log:
        assert NEEDLE in log.text("notes.md")
        assert log.mail.after({})[0][1] == NEEDLE.encode()
        assert [NEEDLE in str(one) for one in log.shared.read_said("s")] == [True]
        assert log.shared.memory.after(0) == [(1, NEEDLE.encode())]
    async with await Session.aresume("s", store=again) as session:
        assert f"later: {NEEDLE}" in str(list(session.view.history))
    assert again.redact("s", NEEDLE) > 3
    assert NEEDLE not in str(again.load("s").entries)
    again.erase("s")


async def test_without_the_sealing_the_same_words_are_found(opened, postgres_url, tmp_path):
    store = opened()
    await talk(store, tmp_path)
    assert find_rows(postgres_url, NEEDLE) > 5
    store.erase(everything=True)


async def test_a_store_is_sealed_from_now_on_and_other_keys_are_refused(opened, key_file, tmp_path):
    with opened().create(directory=tmp_path, session="old") as log:
        log.append(Said(content=(Text(text="in the clear"),)))
    sealed = opened(key_file=key_file)
    assert "in the clear" in str(sealed.load("old").entries)
    sealed.create(directory=tmp_path, session="new").close()
    other = tmp_path / "other"
    other.write_bytes(base64.b64encode(secrets.token_bytes(64)))
    with pytest.raises(StoreError, match="another key"):
        opened(key_file=str(other)).load("new")
    other.write_bytes(base64.b64encode(b"short"))
    with pytest.raises(ConfigError, match="openssl rand"):
        opened(key_file=str(other))
