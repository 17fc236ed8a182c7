"""Sessions in PostgreSQL: any node can go on with any of them, one at a time."""

from holdfast.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
