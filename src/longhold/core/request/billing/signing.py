"""Signatures for blocks that the client must send back unchanged.

A signature contains a record that is readable only if no byte was altered.
"""

import base64
import binascii
import hmac

import msgspec

MAC_BYTES = 16  # too many to guess


class ThinkingSeal(msgspec.Struct, frozen=True, tag="thinking"):
    model: str
    workspace: str
    prefix: bytes
    """The chain of everything before its answer."""
    previous: bytes
    """The seal of the previous thinking; empty for the first."""
    text: bytes


class CompactionSeal(msgspec.Struct, frozen=True, tag="compaction"):
    model: str
    frame: bytes
    """The chain of the tools and system in effect."""
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
        """Return the record in a signature; None if this server did not sign it."""
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
