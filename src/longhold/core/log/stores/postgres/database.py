"""Database connections with retries."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict

from longhold.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from longhold.core.log.stores.postgres.encryption import Codec

T = TypeVar("T")
LOST = (psycopg.OperationalError, psycopg.InterfaceError)
"""Errors that mean a lost connection or a stopping server, for which a retry can help."""
CONNECT_SECONDS = 5
"""A server that needs longer counts as down. The caller limits further attempts."""
RETRY_SECONDS = 0.1
GRANTS = """the owner of the tables grants what is missing: GRANT USAGE ON SCHEMA longhold TO role;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA longhold TO role"""


class PostgresDatabase:
    def __init__(self, url: str, patience_seconds: float, codec: "Codec | None" = None) -> None:
        self.url = url
        self.codec = codec
        self._patience_seconds = patience_seconds
        self._lock = threading.RLock()
        self._held: Connection[Any] | None = None

    @property
    def place(self) -> str:
        """The database's URL without the password."""
        with suppress(psycopg.ProgrammingError):
            given = conninfo_to_dict(self.url)
            return "/".join(str(given.get(part) or "") for part in ("host", "port", "dbname"))
        return self.url

    def connect(self) -> Connection[Any]:
        try:
            made = psycopg.connect(
                self.url,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=CONNECT_SECONDS,
                tcp_user_timeout=1_000 * CONNECT_SECONDS,
                application_name="longhold",
            )
        except psycopg.ProgrammingError as error:
            raise ConfigError(f"LONGHOLD_STORE: {error}; give postgresql://user@host/db") from error
        if self.codec is not None:
            # This is imported here because most stores are not encrypted.
            from longhold.core.log.stores.postgres.encryption import seal_connection

            seal_connection(made, self.codec)
        return made

    def run(self, work: Callable[[Connection[Any]], T], *, retries: bool = True) -> T:
        """Run idempotent work, retrying while the server is down."""
        until = time.monotonic() + self._patience_seconds
        with self._lock:
            while True:
                try:
                    if self._held is None:
                        self._held = self.connect()
                    return work(self._held)
                except psycopg.errors.InsufficientPrivilege as error:
                    said = error.diag.message_primary
                    raise StoreError(f"the database refused: {said}; {GRANTS}") from error
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
