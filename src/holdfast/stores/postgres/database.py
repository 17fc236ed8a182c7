"""A database that may be away for a moment: connections, and work that is tried again."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict

from holdfast.errors import ConfigError, StoreError

T = TypeVar("T")
LOST = (psycopg.OperationalError, psycopg.InterfaceError)
"""What a connection raises that is gone, or a server that is stopping: trying again can help."""
CONNECT_SECONDS = 5
"""A server that does not answer by then is away; the caller's patience decides about more tries."""
RETRY_SECONDS = 0.1


class PostgresDatabase:
    def __init__(self, url: str, patience_seconds: float) -> None:
        self.url = url
        self._patience_seconds = patience_seconds
        self._lock = threading.RLock()
        self._held: Connection[Any] | None = None

    @property
    def place(self) -> str:
        """Names the database without the password that its URL may hold."""
        with suppress(psycopg.ProgrammingError):
            given = conninfo_to_dict(self.url)
            return "/".join(str(given.get(part) or "") for part in ("host", "port", "dbname"))
        return self.url

    def connect(self) -> Connection[Any]:
        try:
            return psycopg.connect(
                self.url,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=CONNECT_SECONDS,
                tcp_user_timeout=1_000 * CONNECT_SECONDS,
                application_name="holdfast",
            )
        except psycopg.ProgrammingError as error:
            raise ConfigError(f"HOLDFAST_STORE: {error}; give postgresql://user@host/db") from error

    def run(self, work: Callable[[Connection[Any]], T], *, retries: bool = True) -> T:
        """Do something that may be done twice; while the server is away, try again."""
        until = time.monotonic() + self._patience_seconds
        with self._lock:
            while True:
                try:
                    if self._held is None:
                        self._held = self.connect()
                    return work(self._held)
                except LOST as error:
                    self._disconnect()
                    if not retries or time.monotonic() > until:
                        raise StoreError(f"the store cannot be reached: {error}") from error
                    time.sleep(RETRY_SECONDS)

    def rows(self, query: str, given: Any) -> list[Any]:
        return self.run(lambda connection: select(connection, query, given))

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def select(connection: Connection[Any], query: str, given: Any) -> list[Any]:
    return connection.execute(query, given, binary=True).fetchall()
