"""Sessions in PostgreSQL: any node can go on with any of them, one at a time."""

from longhold.core.log.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
