"""Tables and migrations, in the schema `longhold`.

Each migration is one transaction. It only makes changes that older versions tolerate, so that two
versions can run side by side during an upgrade.
"""

from typing import Any

from psycopg import Connection, errors

from longhold.errors import StoreError

MIGRATIONS = (
    """
CREATE TABLE longhold.holders (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    until timestamptz NOT NULL
);
COMMENT ON TABLE longhold.holders IS 'one row for each process that writes, renewed while it lives';
CREATE TABLE longhold.sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    id text NOT NULL,
    project text NOT NULL,
    header bytea NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    modified timestamptz NOT NULL DEFAULT now(),
    last_n bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    fence bigint NOT NULL DEFAULT 0,
    holder uuid,
    UNIQUE (tenant, id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN longhold.sessions.fence IS 'grows with every writer; only the newest may append';
CREATE INDEX sessions_by_project ON longhold.sessions (tenant, project, modified DESC);
CREATE TABLE longhold.entries (
    session bigint NOT NULL,
    n bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (session, n)
);
CREATE TABLE longhold.bodies (
    session bigint NOT NULL,
    name text NOT NULL,
    sha256 text NOT NULL,
    bytes bigint NOT NULL,
    modified timestamptz NOT NULL DEFAULT now(),
    body bytea NOT NULL,
    PRIMARY KEY (session, name)
);
CREATE TABLE longhold.reports (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session bigint NOT NULL,
    body bytea NOT NULL
);
CREATE INDEX reports_by_session ON longhold.reports (session, key);
CREATE TABLE longhold.boxes (
    session bigint PRIMARY KEY,
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    last bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE longhold.boxes IS 'mail is numbered under its row: a late commit is not skipped';
CREATE TABLE longhold.mail (
    session bigint NOT NULL,
    seq bigint NOT NULL,
    key text NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (session, seq),
    UNIQUE (session, key)
);
""",
    """
CREATE TABLE longhold.shared (
    tenant text NOT NULL,
    name text NOT NULL,
    body bytea NOT NULL,
    modified timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, name)
);
COMMENT ON TABLE longhold.shared IS 'what all sessions of a tenant use, such as calibrations';
CREATE TABLE longhold.spending (
    tenant text NOT NULL,
    day date NOT NULL,
    holder uuid NOT NULL,
    usd double precision NOT NULL,
    input_tokens bigint NOT NULL,
    cache_read_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    answers bigint NOT NULL,
    PRIMARY KEY (tenant, day, holder)
);
CREATE TABLE longhold.commits (
    tenant text NOT NULL,
    project text NOT NULL,
    n bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (tenant, project, n)
);
COMMENT ON TABLE longhold.commits IS 'of the memories of a project; nodes add them up';
COMMENT ON TABLE longhold.spending IS 'a row for each process and day, so that none waits';
""",
    """
CREATE INDEX sessions_by_prefix ON longhold.sessions (tenant, id text_pattern_ops);
COMMENT ON INDEX longhold.sessions_by_prefix IS 'a gateway finds the conversations of a client';
""",
    """
CREATE TABLE longhold.wanted (
    session bigint PRIMARY KEY,
    fence bigint NOT NULL
);
COMMENT ON TABLE longhold.wanted IS 'another process waits for the writer with this fence';
""",
)
"""Version n results from the first n migrations. A released migration never changes."""

_VERSIONS = """\
CREATE SCHEMA IF NOT EXISTS longhold;
CREATE TABLE IF NOT EXISTS longhold.versions (
    version int PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now()
);"""
_LOCK = 0x686F6C64


def version(connection: Connection[Any]) -> int:
    try:
        row = connection.execute("SELECT max(version) FROM longhold.versions").fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return 0
    return int(row[0] or 0) if row else 0


def list_pending(connection: Connection[Any]) -> list[str]:
    """Return the statements that this version would run on a database, one text per migration."""
    done = version(connection)
    texts = [
        f"{text.strip()}\nINSERT INTO longhold.versions (version) VALUES ({number});"
        for number, text in enumerate(MIGRATIONS[done:], done + 1)
    ]
    return texts if done else [f"{_VERSIONS}\n{texts[0]}", *texts[1:]]


def migrate(connection: Connection[Any]) -> int:
    """Run missing migrations and return their number. A newer database is used unchanged."""
    if version(connection) >= len(MIGRATIONS):
        return 0
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        try:
            connection.execute(_VERSIONS)
            texts = list_pending(connection)
            for text in texts:
                connection.execute(text)
        except errors.InsufficientPrivilege as error:
            raise StoreError(
                f"the tables cannot be created: {error.diag.message_primary}; let their owner run "
                "`longhold sessions migrate`"
            ) from error
    return len(texts)
