"""Copies of a database's sessions as files of this machine, for what reads files: it may be lost.

A copy carries the time at which its session was last written, so that only what is new is read.
"""

import os
from contextlib import suppress

from holdfast.errors import LogLocked, SessionExists, SessionNotFound
from holdfast.log.cursor import last_n
from holdfast.log.store import FileStore, Store, StoredSession, checked_name
from holdfast.settings.files import write_private

CLOCK_SECONDS = 1e-5
"""Times of files and of a database differ by less."""


def copy_all(store: Store, copies: FileStore) -> FileStore:
    """Copy every log that grew, and remove those of sessions that are gone."""
    known = {one.id: one.modified for one in copies.sessions()}
    for one in store.sessions():
        if abs(known.pop(one.id, 0.0) - one.modified) > CLOCK_SECONDS:
            _copy(store, copies, one)
    for gone in known:
        with suppress(LogLocked):
            copies.delete(gone)
    return copies


def copy_one(store: Store, copies: FileStore, session: str) -> FileStore:
    """Copy one session with what lies beside its log."""
    found = store.find(session)
    _copy(store, copies, found)
    directory = copies.find(found.id).directory
    for name, data in store.beside(found.id).items():
        write_private(directory / checked_name(name), data, is_synced=False)
    return copies


def _copy(store: Store, copies: FileStore, one: StoredSession) -> None:
    with suppress(LogLocked, SessionExists):  # another process copies it just now
        try:
            with copies.open(one.id) as log:
                for entry in store.load(one.id, after=last_n(log.entries)).entries:
                    log.append(entry)
        except SessionNotFound:
            loaded = store.load(one.id)
            copies.add(loaded.header, loaded.entries)
        os.utime(copies.find(one.id).path, (one.modified, one.modified))
