"""Stores of both kinds for each test, and a second process's view of the same store."""

import secrets
from collections.abc import Callable, Iterator

import pytest

from longhold.core.log.store import FileStore, Store
from longhold.core.log.stores import default_store, open_store
from longhold.core.settings import StoreSettings

KINDS = ("files", pytest.param("postgres", marks=pytest.mark.slow))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "reopened" in metafunc.fixturenames:
        metafunc.parametrize("reopened", KINDS, indirect=True)


@pytest.fixture
def tenant() -> str:
    return secrets.token_hex(8)


@pytest.fixture
def reopened(
    request: pytest.FixtureRequest, tmp_path, tenant: str
) -> Iterator[Callable[[], Store]]:
    """Open the same place once more, as another process would."""
    opened: list[Store] = []

    def open_again() -> Store:
        if request.param == "files":
            opened.append(FileStore(tmp_path / "home"))
        else:
            url = request.getfixturevalue("postgres_url")
            opened.append(open_store(url, StoreSettings(tenant=tenant)))
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
