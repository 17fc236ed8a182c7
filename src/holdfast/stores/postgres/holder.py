"""A process among those that write: one row in the database, renewed while the process lives.

A process that is killed, paused or cut off for longer than its lease stops renewing it, and any
other may take its sessions over. Time is the database's clock; the id is new at every start.
"""

import os
import socket
import threading
import uuid
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import Connection

from holdfast.stores.postgres.writer import Connect

RENEWALS = 3
"""In the time of one lease, so that one that is late or lost costs nothing."""
_RENEW = """
INSERT INTO holdfast.holders (id, name, until)
VALUES (%s, %s, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (id) DO UPDATE SET until = excluded.until
"""
_FORGET = "DELETE FROM holdfast.holders WHERE until < clock_timestamp() - interval '1 day'"
"""Rows of processes that died; nobody is kept out by them."""


class Holder:
    def __init__(self, connect: Connect, lease_seconds: float) -> None:
        self.id = uuid.uuid4()
        self.name = f"process {os.getpid()} on {socket.gethostname()}"
        self._connect = connect
        self._lease_seconds = lease_seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, connection: Connection[Any]) -> None:
        """Become known before the first session is taken."""
        if self._thread is None:
            self._renew(connection)
            connection.execute(_FORGET)
            self._thread = threading.Thread(target=self._run, name="holdfast-lease", daemon=True)
            self._thread.start()

    def close(self, connection: Connection[Any]) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            with suppress(psycopg.Error):
                connection.execute("DELETE FROM holdfast.holders WHERE id = %s", (self.id,))

    def _run(self) -> None:
        connection: Connection[Any] | None = None
        while not self._stop.wait(self._lease_seconds / RENEWALS):
            try:
                connection = connection or self._connect()
                self._renew(connection)
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _renew(self, connection: Connection[Any]) -> None:
        connection.execute(_RENEW, (self.id, self.name, self._lease_seconds))
