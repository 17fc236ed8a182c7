"""Encryption at rest: all content is encrypted ("sealed") before it is sent to the database.

The content is entries, headers, bodies, reports, mail, memories and shared records. Ids, sizes,
times and SHA-256 hashes of bodies stay readable. Rows written before encryption was enabled remain
readable.
"""

import base64
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from psycopg import Connection
from psycopg.types.string import ByteaBinaryLoader, ByteaLoader, BytesBinaryDumper

from longhold.core.settings.installation import explain_missing
from longhold.errors import ConfigError, StoreError

MARK = b"\x00sealed1"
"""The prefix of a sealed row. No JSON text begins with these bytes."""
KEY_BYTES = 64


class Codec(Protocol):
    """Encrypts the content of a database. Equal data must give equal bytes."""

    def seal(self, data: bytes) -> bytes: ...
    def open(self, data: bytes) -> bytes:
        """Return the decrypted data. Raises if it was sealed with another key or was changed."""


class AesSiv:
    """AES-256-SIV. It is authenticated and deterministic, so equal rows have equal bytes."""

    def __init__(self, key: bytes) -> None:
        with explain_missing("encryption", "sealed sessions"):
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV
        self._cipher = AESSIV(key)

    @classmethod
    def read(cls, file: str) -> "AesSiv":
        """Read a base64-encoded key of 64 bytes from a file."""
        try:
            key = base64.b64decode(Path(file).expanduser().read_bytes().strip(), validate=True)
        except (OSError, ValueError) as error:
            raise ConfigError(f"store.key_file: {file} cannot be read: {error}") from None
        if len(key) != KEY_BYTES:
            raise ConfigError(
                f"store.key_file: {file} has {len(key)} bytes, not {KEY_BYTES}; "
                "make a key with `openssl rand -base64 -A 64`"
            )
        return cls(key)

    def seal(self, data: bytes) -> bytes:
        return self._cipher.encrypt(data, [MARK]) if data else b""

    def open(self, data: bytes) -> bytes:
        return self._cipher.decrypt(data, [MARK]) if data else b""


def _open(codec: Codec, data: bytes) -> bytes:
    if not data.startswith(MARK):
        return data
    try:
        return codec.open(data.removeprefix(MARK))
    except Exception as error:
        raise StoreError(
            "a row was sealed with another key, or changed; check store.key_file"
        ) from error


def seal_connection(connection: Connection[Any], codec: Codec) -> None:
    """Encrypt all bytes that a connection sends, and decrypt all bytes that it receives."""
    unseal = partial(_open, codec)

    class Dumper(BytesBinaryDumper):
        def dump(self, obj: Any) -> Any:
            return super().dump(MARK + codec.seal(bytes(obj)))

    class TextLoader(ByteaLoader):
        def load(self, data: Any) -> bytes:
            return unseal(bytes(super().load(bytes(data))))

    class BinaryLoader(ByteaBinaryLoader):
        def load(self, data: Any) -> bytes:
            return unseal(bytes(super().load(bytes(data))))

    connection.adapters.register_dumper(bytes, Dumper)
    for loader in (TextLoader, BinaryLoader):
        connection.adapters.register_loader("bytea", loader)
