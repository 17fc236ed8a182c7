"""Sessions in PostgreSQL. Any machine can resume any session, but only one writes at a time."""

from longhold.core.log.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
