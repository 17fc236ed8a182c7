"""Check the thinking blocks that clients send back, and keep, drop or refuse them.

A block's signature (its "seal") covers its model, its workspace and the hash chain before it. On
models that bind thinking, an edited history causes a 400 error or drops later thinking.
"""

import base64
import hmac
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from longhold.core.models.capabilities import Capabilities
from longhold.core.request.billing.api_request import (
    ApiRequest,
    Caller,
    JsonObject,
    invalid_request,
)
from longhold.core.request.billing.pieces import DIGEST_BYTES, PromptPiece
from longhold.core.request.billing.tokens import BillingSettings

MAC_BYTES = 16  # enough bytes to make guessing hopeless
SECRET = b"longhold simulator"  # fixed, so that signatures stay valid after a restart


class ThinkingSeal(msgspec.Struct, frozen=True, tag="thinking"):
    model: str
    workspace: str
    prefix: bytes  # the chain of everything before the answer that contains the block
    previous: bytes  # the seal of the previous thinking, or b"" for the first
    text: bytes


class CompactionSeal(msgspec.Struct, frozen=True, tag="compaction"):
    model: str
    frame: bytes  # the chain of the tools and system in effect
    prefix: bytes  # the chain of everything it summarises
    previous: bytes  # the seal of the last thinking it summarises
    text: bytes
    tool_changes: bytes
    binds_thinking: bool
    last_role: str


Seal = ThinkingSeal | CompactionSeal


class Signer:
    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Seal)

    def sign(self, seal: Seal) -> str:
        payload = self._encoder.encode(seal)
        return base64.b64encode(self._mac(payload) + payload).decode()

    def read(self, signature: object) -> Seal | None:
        """Return the record in a signature, or None if this server did not sign it."""
        try:
            raw = base64.b64decode(signature, validate=True) if isinstance(signature, str) else b""
        except ValueError:
            return None
        mac, payload = raw[:MAC_BYTES], raw[MAC_BYTES:]
        return self._decoder.decode(payload) if mac == self._mac(payload) else None

    def _mac(self, payload: bytes) -> bytes:
        return hmac.digest(SECRET, payload, "sha256")[:MAC_BYTES]


BINDING_BETA = "thinking-binding-controls-2026-08-01"
PREFIX_MISMATCH = "prefix_binding_mismatch"
THINKING = ("thinking", "redacted_thinking")
ACCOUNT_BOUND_MODELS = frozenset({"claude-sonnet-5-5", "claude-haiku-5-5"})
WIDELY_READ_MODELS = frozenset({"claude-haiku-5-5"})  # models whose thinking other models may read


class Links(NamedTuple):
    """The conversation's hash chain at each piece. Thinking and breakpoints are not hashed."""

    frame: bytes
    end: bytes  # the chain at the end, to which the answer's thinking is bound
    last_seal: bytes
    starts: dict[tuple[int, int], frozenset[bytes]]  # chains at the start of the message and turn
    previous: dict[tuple[int, int], bytes]


def is_thinking(piece: PromptPiece) -> bool:
    return piece.type in THINKING


def link_conversation(pieces: Iterable[PromptPiece], signer: Signer) -> Links:
    """Chain the pieces as sent. A signed compaction continues the chain that it summarises."""
    link = frame = run_start = message_start = b""
    seal = b""
    place, role, barred_role = (-1, -1), "", ""
    starts: dict[tuple[int, int], frozenset[bytes]] = {}
    previous: dict[tuple[int, int], bytes] = {}
    for piece in pieces:
        if piece.tier != "messages":
            link = frame = digest(link + piece.digest)
            continue
        if piece.place[0] != place[0] or role == "":
            if barred_role and piece.role in (barred_role, "system"):
                link = digest(link + b"kept turns do not follow the summary")
            barred_role, message_start = "", link
            if piece.role != role:
                run_start = link
            place, role = piece.place, piece.role
        if is_thinking(piece):
            starts[piece.place] = frozenset((message_start, run_start))
            previous[piece.place] = seal
            seal = digest(str(piece.block.get("signature") or piece.block.get("data")).encode())
        elif (resumed := _resume(piece, frame, signer)) is not None:
            link, seal, barred_role = resumed.prefix, resumed.previous, resumed.last_role
        else:
            link = digest(link + piece.digest)
    return Links(frame=frame, end=link, last_seal=seal, starts=starts, previous=previous)


def check_thinking(
    pieces: Sequence[PromptPiece],
    request: ApiRequest,
    caller: Caller,
    able: Capabilities,
    settings: BillingSettings,
    signer: Signer,
) -> tuple[list[PromptPiece], list[JsonObject]]:
    if not any(map(is_thinking, pieces)):
        return list(pieces), []
    links = link_conversation(pieces, signer)
    latest = max((p.place[0] for p in pieces if p.role == "assistant"), default=-1)
    behaviour = _mismatch_behaviour(request, settings)
    kept: list[PromptPiece] = []
    transformations: list[JsonObject] = []
    dropped_messages: set[int] = set()
    for piece in pieces:
        reason = None
        if piece.type == "thinking":
            seal = _verify_seal(piece, latest, settings, signer)
            reason = _mismatch(seal, piece, links, caller, able)
            if reason is None and piece.place[0] in dropped_messages:
                reason = PREFIX_MISMATCH
        is_prefix = reason == PREFIX_MISMATCH
        if is_prefix and behaviour == "error":
            raise invalid_request(f"{piece.path}: The block is bound to a different conversation")
        is_allowed = is_prefix and behaviour == "allow"
        if reason is None or is_allowed:
            kept.append(piece)
        elif is_prefix:
            dropped_messages.add(piece.place[0])
        if reason is not None:
            kind = "thinking_mismatch_allowed" if is_allowed else "thinking_dropped"
            transformations.append({"type": kind, "path": piece.path, "reason": reason})
    return kept, transformations


def strip_earlier_thinking(pieces: Sequence[PromptPiece], able: Capabilities) -> list[PromptPiece]:
    """Drop the thinking before the last user text, for models that do not keep it."""
    if able.keeps_thinking or not any(map(is_thinking, pieces)):
        return list(pieces)
    turns = turn_numbers(pieces)
    return [
        piece
        for piece, turn in zip(pieces, turns, strict=True)
        if not (is_thinking(piece) and turn < turns[-1])
    ]


def turn_numbers(pieces: Sequence[PromptPiece]) -> list[int]:
    """Number each piece's turn. A user message with more than tool results begins a turn."""
    opening = {
        piece.place[0]
        for piece in pieces
        if piece.tier == "messages"
        and piece.role == "user"
        and piece.type not in ("tool_result", "cache_edits")
    }
    numbers: list[int] = []
    turn, message = 0, -1
    for piece in pieces:
        if piece.tier == "messages" and piece.place[0] != message:
            message = piece.place[0]
            turn += message in opening
        numbers.append(turn)
    return numbers


def seal_thinking(
    blocks: Iterable[JsonObject], links: Links, model: str, workspace: str, signer: Signer
) -> list[JsonObject]:
    sealed: list[JsonObject] = []
    previous = links.last_seal
    for block in blocks:
        if block.get("type") == "thinking":
            text = str(block.get("thinking", ""))
            seal = ThinkingSeal(model, workspace, links.end, previous, digest(text.encode()))
            signature = signer.sign(seal)
            previous = digest(signature.encode())
            block = {"type": "thinking", "thinking": text, "signature": signature}
        sealed.append(block)
    return sealed


def digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST_BYTES).digest()


def _resume(piece: PromptPiece, frame: bytes, signer: Signer) -> CompactionSeal | None:
    if piece.type != "compaction":
        return None
    seal = signer.read(piece.block.get("signature"))
    if isinstance(seal, CompactionSeal) and seal.binds_thinking and seal.frame == frame:
        return seal
    return None


def _verify_seal(
    piece: PromptPiece, latest: int, settings: BillingSettings, signer: Signer
) -> ThinkingSeal | None:
    seal = signer.read(piece.block.get("signature"))
    text = digest(str(piece.block.get("thinking", "")).encode())
    if isinstance(seal, ThinkingSeal) and seal.text == text:
        return seal
    if seal is None and settings.accepts_foreign_thinking:
        return None
    if piece.place[0] == latest:
        raise invalid_request(
            f"{piece.path}: `thinking` or `redacted_thinking` blocks in the latest assistant "
            "message cannot be modified. These blocks must remain as they were in the original "
            "response."
        )
    raise invalid_request(f"{piece.path}: Invalid `signature` in `thinking` block")


def _mismatch(
    seal: ThinkingSeal | None, piece: PromptPiece, links: Links, caller: Caller, able: Capabilities
) -> str | None:
    """Return the first check that a block fails, in the API's order of precedence."""
    if seal is None:
        return None
    if seal.workspace != caller.workspace and seal.model in ACCOUNT_BOUND_MODELS:
        return "organization_binding_mismatch"
    if seal.model != able.model and seal.model not in WIDELY_READ_MODELS:
        return "model_binding_mismatch"
    if not able.binds_thinking:
        return None
    is_chained = links.previous[piece.place] in (b"", seal.previous)
    is_bound = seal.prefix in links.starts[piece.place] and is_chained
    return None if is_bound else PREFIX_MISMATCH


def _mismatch_behaviour(request: ApiRequest, settings: BillingSettings) -> str:
    binding = (request.thinking or {}).get("block_binding")
    if isinstance(binding, dict) and binding.get("prefix_mismatch_behavior"):
        return str(binding["prefix_mismatch_behavior"])
    return "error" if settings.enforces_binding else "allow"
