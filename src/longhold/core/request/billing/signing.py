"""Signatures for what the server writes and the client must send back unchanged.

A signature contains a small record, which is readable only if no byte was altered. Clients see
an opaque string, as with a provider.
"""

import base64
import binascii
import hmac

import msgspec

MAC_BYTES = 16  # too many to guess


class ThinkingSeal(msgspec.Struct, frozen=True, tag="thinking"):
    """What a thinking block is bound to."""

    model: str
    workspace: str
    prefix: bytes
    """The chain of everything before the answer it stands in."""
    previous: bytes
    """The seal of the thinking before it, empty for the first."""
    text: bytes
    """The digest of its own text."""


class CompactionSeal(msgspec.Struct, frozen=True, tag="compaction"):
    """What a signed compaction stands for."""

    model: str
    frame: bytes
    """The chain of tools and system it was made under."""
    prefix: bytes
    """The chain of everything it summarises."""
    previous: bytes
    """The seal of the last thinking it summarises."""
    text: bytes
    tool_changes: bytes
    binds_thinking: bool
    last_role: str


Seal = ThinkingSeal | CompactionSeal


class Signer:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Seal)

    def sign(self, seal: Seal) -> str:
        payload = self._encoder.encode(seal)
        return base64.b64encode(self._mac(payload) + payload).decode()

    def read(self, signature: object) -> Seal | None:
        """Return the record in a signature; None if it is not ours."""
        if not isinstance(signature, str):
            return None
        try:
            raw = base64.b64decode(signature, validate=True)
            mac, payload = raw[:MAC_BYTES], raw[MAC_BYTES:]
            if not hmac.compare_digest(mac, self._mac(payload)):
                return None
            seal: Seal = self._decoder.decode(payload)
            return seal
        except (binascii.Error, ValueError, msgspec.DecodeError):
            return None

    def _mac(self, payload: bytes) -> bytes:
        return hmac.digest(self._secret, payload, "sha256")[:MAC_BYTES]
