"""A session's rows: entries read back as a log, and a whole session written at once."""

from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Any

import msgspec
from psycopg import Connection

from holdfast.log import Header, Loaded
from holdfast.log.entries import AnyEntry
from holdfast.log.reading import decode_chunk
from holdfast.log.results import DIRECTORY, StoredBody
from holdfast.log.store import StoredSession
from holdfast.stores.postgres.database import select
from holdfast.stores.postgres.objects import ObjectBodies

ROWS = 500
"""Entries in one statement while a whole session is written."""


def loaded_from(connection: Connection[Any], key: int, header: bytes, *, after: int) -> Loaded:
    loaded = Loaded(header=msgspec.json.decode(header, type=Header))
    rows = select(
        connection,
        "SELECT body FROM holdfast.entries WHERE session = %s AND n > %s ORDER BY n",
        (key, after),
    )
    if rows:
        decode_chunk(b"\n".join(chain.from_iterable(rows)) + b"\n", after + 1, loaded)
    return loaded


def stored_in(connection: Connection[Any], key: int) -> list[StoredBody]:
    rows = select(
        connection,
        "SELECT name, bytes, extract(epoch FROM modified)::float8 FROM holdfast.bodies "
        "WHERE session = %s AND starts_with(name, %s)",
        (key, f"{DIRECTORY}/"),
    )
    return [
        StoredBody(name=name.rpartition("/")[2], bytes=size, modified=modified)
        for name, size, modified in rows
    ]


def stored_session(id: str, modified: float, size: int, header: bytes) -> StoredSession:
    decoded = msgspec.json.decode(header, type=Header)
    return StoredSession(id=id, modified=modified, bytes=size, header=decoded)


def fill(
    connection: Connection[Any],
    key: int,
    entries: Iterable[AnyEntry],
    beside: Mapping[str, bytes],
    objects: ObjectBodies,
) -> None:
    """Write all of a new session, within a transaction."""
    last, size, rest = 0, 0, iter(entries)
    while some := list(islice(rest, ROWS)):
        numbers, lines = [one.n for one in some], [msgspec.json.encode(one) for one in some]
        connection.execute(
            "INSERT INTO holdfast.entries (session, n, body) "
            "SELECT %b, e.n, e.body FROM unnest(%b::bigint[], %b::bytea[]) AS e (n, body)",
            (key, numbers, lines),
        )
        last, size = numbers[-1], size + sum(map(len, lines))
    connection.execute(
        "UPDATE holdfast.sessions SET last_n = %s, bytes = %s WHERE key = %s", (last, size, key)
    )
    for name, data in beside.items():
        connection.execute(
            "INSERT INTO holdfast.bodies (session, name, sha256, bytes, body) "
            "VALUES (%b, %b, %b, %b, %b)",
            (key, name, *objects.put(key, name, data)),
        )
