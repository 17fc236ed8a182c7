"""Choose a session store: files, or a database shared by many machines."""

import atexit
import os
from functools import lru_cache
from pathlib import Path
from typing import cast

from longhold.core.log.store import FileStore, Store
from longhold.core.settings import StoreSettings, load_settings
from longhold.core.settings.installation import explain_missing, load_plugins
from longhold.errors import ConfigError

VARIABLE = "LONGHOLD_STORE"


def read_store_name() -> str:
    return os.environ.get(VARIABLE, "")


def default_store() -> Store:
    """Return the store named by `LONGHOLD_STORE`, or the file store. The process shares it."""
    url = read_store_name()
    return _open_shared(url, load_settings().store, os.getpid()) if url else FileStore()


@lru_cache
def _open_shared(url: str, settings: StoreSettings, process: int) -> Store:
    store = open_store(url, settings)
    atexit.register(store.close)
    return store


def open_store(named: str, settings: StoreSettings | None = None) -> Store:
    """Open the store at a URL or directory. The caller closes it."""
    scheme, separator, rest = named.partition("://")
    if not separator or scheme == "file":
        return FileStore(Path(rest if separator else named))
    if scheme not in ("postgresql", "postgres"):
        if opener := load_plugins("stores", scheme).get(scheme):
            return cast(Store, opener(named, settings or load_settings().store))
        raise ConfigError(
            f"{VARIABLE}: there is no store for {scheme!r}; give postgresql://… or a directory, or "
            "install the package that provides it"
        )
    with explain_missing("postgres", "a store in PostgreSQL"):
        from longhold.core.log.stores.postgres import PostgresStore
    return PostgresStore(named, settings or load_settings().store)


def list_migrations(url: str) -> list[str]:
    with explain_missing("postgres", "a store in PostgreSQL"):
        from longhold.core.log.stores.postgres.database import PostgresDatabase
        from longhold.core.log.stores.postgres.schema import list_pending
    database = PostgresDatabase(url, load_settings().store.patience_seconds)
    try:
        return database.run(list_pending)
    finally:
        database.close()
