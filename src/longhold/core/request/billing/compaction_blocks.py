"""Compaction blocks that clients send back: everything they summarise leaves the prompt.

A block of an on-demand compaction is signed and must come first. An altered or misplaced one is
refused. A threshold block is unsigned and may be anywhere.
"""

from collections.abc import Sequence

import msgspec

from longhold.core.request.billing.api_error import invalid_request
from longhold.core.request.billing.api_request import JsonObject
from longhold.core.request.billing.pieces import PromptPiece
from longhold.core.request.billing.signing import CompactionSeal, Signer
from longhold.core.request.billing.thinking import digest

NO_CHANGES: tuple[JsonObject, ...] = ()  # tool changes in mid-conversation are not simulated


def adopt_compactions(pieces: Sequence[PromptPiece], signer: Signer) -> list[PromptPiece]:
    """Replace everything before a compaction block by the block. Failed blocks are dropped."""
    if not any(piece.type == "compaction" for piece in pieces):
        return list(pieces)
    filled = [p for p in pieces if p.type == "compaction" and p.block.get("content") is not None]
    _check_signed(pieces, filled, signer)
    standing = filled[-1].place if filled else (-1, -1)
    return [
        piece
        for piece in pieces
        if piece.tier != "messages" or (piece.place >= standing and not _is_failed(piece))
    ]


def _check_signed(
    pieces: Sequence[PromptPiece], filled: Sequence[PromptPiece], signer: Signer
) -> None:
    signed = [piece for piece in filled if piece.block.get("signature") is not None]
    if not signed:
        return
    if len(filled) > 1:
        raise invalid_request(
            "messages: more than one `compaction` block with content was found. Send only the "
            "block the conversation returned last.",
            "compaction_block_ambiguous",
        )
    piece = signed[0]
    first = next(p for p in pieces if p.tier == "messages" and not _is_failed(p))
    if piece.place != first.place or piece.role == "system":
        raise invalid_request(
            f"{piece.path}: a `compaction` block must be the first block of the conversation.",
            "compaction_block_misplaced",
        )
    _check_seal(piece, signer)


def _check_seal(piece: PromptPiece, signer: Signer) -> None:
    seal = signer.read(piece.block.get("signature"))
    if not isinstance(seal, CompactionSeal):
        raise invalid_request(
            f"{piece.path}: the `compaction` block's `signature` does not verify.",
            "compaction_signature_invalid",
        )
    if seal.text != digest(str(piece.block.get("content")).encode()):
        raise invalid_request(
            f"{piece.path}: the `compaction` block's `content` differs from the text its "
            "`signature` recorded.",
            "compaction_content_mismatch",
        )
    if seal.tool_changes != digest_changes(piece.block.get("tool_changes") or NO_CHANGES):
        raise invalid_request(
            f"{piece.path}: the `compaction` block's `tool_changes` differs from what was "
            "returned with the block.",
            "compaction_tool_changes_mismatch",
        )


def digest_changes(changes: Sequence[JsonObject]) -> bytes:
    return digest(msgspec.json.encode(list(changes)))


def _is_failed(piece: PromptPiece) -> bool:
    return piece.type == "compaction" and piece.block.get("content") is None
