"""Stores of both kinds, each test with its own, and a second process's view of the same place."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from longhold.core.log.store import FileStore, Store
from longhold.core.log.stores import default_store
from longhold.core.settings import StoreSettings

KINDS = ("files", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("postgres", "objects")))
"""The last one is a database whose results are all in object storage."""


@pytest.fixture
def tenant() -> str:
    return secrets.token_hex(8)


@pytest.fixture(params=KINDS)
def reopened(
    request: pytest.FixtureRequest, tmp_path, tenant: str
) -> Iterator[Callable[[], Store]]:
    """Open the same place once more, as another process would."""
    opened: list[Store] = []

    def open_again() -> Store:
        if request.param == "files":
            opened.append(FileStore(tmp_path / "home"))
        else:
            from longhold.core.log.stores.postgres import PostgresStore

            url = request.getfixturevalue("postgres_url")
            settings = StoreSettings(tenant=tenant)
            if request.param == "objects":
                pytest.importorskip("obstore", reason="obstore is not installed")
                bucket = tmp_path / "bucket"
                bucket.mkdir(exist_ok=True)
                settings = replace(settings, bodies=bucket.as_uri(), bodies_least_bytes=1)
            opened.append(PostgresStore(url, settings))
        return opened[-1]

    yield open_again
    for one in opened:
        one.close()


@pytest.fixture
def store(reopened: Callable[[], Store]) -> Store:
    return reopened()


@pytest.fixture
def project(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def database(postgres_url, tenant, tmp_path, monkeypatch):
    """A store in a database that every command uses, and the directory they run in."""
    monkeypatch.setenv("LONGHOLD_STORE", postgres_url)
    monkeypatch.setenv("LONGHOLD_STORE_TENANT", tenant)
    monkeypatch.chdir(tmp_path)
    from longhold.core.log.stores.postgres import PostgresStore

    store, shared = PostgresStore(postgres_url, StoreSettings(tenant=tenant)), default_store()
    yield store
    shared.close()
    store.close()


@pytest.fixture
def reopened_database(database, postgres_url, tenant, tmp_path, monkeypatch):
    """Open the database as another machine would: with a home of its own."""
    from longhold.core.log.stores.postgres import PostgresStore

    opened = []

    def open_elsewhere():
        monkeypatch.setenv("LONGHOLD_HOME", str(tmp_path / f"home-{len(opened)}"))
        opened.append(PostgresStore(postgres_url, StoreSettings(tenant=tenant)))
        return opened[-1]

    yield open_elsewhere
    for one in opened:
        one.close()
