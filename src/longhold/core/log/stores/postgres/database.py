"""Database connections with retries, and bodies in object storage."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict

from longhold.core.log.results import DIRECTORY, sha256_of
from longhold.core.settings import StoreSettings
from longhold.errors import ConfigError, StoreError


class ObjectBodies:
    def __init__(self, settings: StoreSettings) -> None:
        self._least_bytes = settings.bodies_least_bytes
        self._objects = _connect(settings.bodies) if settings.bodies else None

    def put(self, key: int, name: str, data: bytes) -> tuple[str, int, bytes]:
        """Return a body's hash, size and row content, empty if it went to object storage."""
        sha256 = sha256_of(data)
        is_large = len(data) >= self._least_bytes and name.startswith(f"{DIRECTORY}/")
        if self._objects is None or not is_large:
            return sha256, len(data), data
        self._objects.put(self._name(key, sha256), data)
        return sha256, len(data), b""

    def body(self, key: int, sha256: str, size: int, data: bytes) -> bytes:
        if data or not size:
            return bytes(data)
        if self._objects is None:
            raise StoreError("a body lies in object storage; set store.bodies to where that is")
        try:
            return bytes(self._objects.get(self._name(key, sha256)).bytes())
        except FileNotFoundError:
            raise StoreError(f"the body {sha256} is gone from object storage") from None

    def remove(self, key: int, sha256: str = "") -> None:
        if self._objects is None:
            return
        listed = [meta["path"] for page in self._objects.list(self._name(key, "")) for meta in page]
        doomed = [path for path in listed if path.endswith(sha256)]
        if doomed:
            self._objects.delete(doomed)

    def _name(self, key: int, sha256: str) -> str:
        return f"{key}/{sha256}"


def _connect(url: str) -> Any:
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise ConfigError(
            f"store.bodies needs obstore: pip install 'longhold[objects]' ({error})"
        ) from error
    try:
        return from_url(url)
    except Exception as error:
        wrong = str(error).partition("\n")[0]  # later lines are debug output
        raise ConfigError(
            f"store.bodies: {wrong}; give s3://…, gs://…, az://…, or "
            "file://… of a directory that is there"
        ) from error


T = TypeVar("T")
LOST = (psycopg.OperationalError, psycopg.InterfaceError)
"""Errors of a lost connection or a stopping server, for which a retry can help."""
CONNECT_SECONDS = 5
"""A slower server is down. The caller's patience limits further attempts."""
RETRY_SECONDS = 0.1


class PostgresDatabase:
    def __init__(self, url: str, patience_seconds: float) -> None:
        self.url = url
        self._patience_seconds = patience_seconds
        self._lock = threading.RLock()
        self._held: Connection[Any] | None = None

    @property
    def place(self) -> str:
        """The database without the password that its URL may contain."""
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
                application_name="longhold",
            )
        except psycopg.ProgrammingError as error:
            raise ConfigError(f"LONGHOLD_STORE: {error}; give postgresql://user@host/db") from error

    def run(self, work: Callable[[Connection[Any]], T], *, retries: bool = True) -> T:
        """Run idempotent work, retrying while the server is down."""
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
