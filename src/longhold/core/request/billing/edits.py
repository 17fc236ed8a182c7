"""Server-side context edits, which remove old thinking and old tool results from the prompt.

The client keeps its full history and repeats the edits in every request. A compaction block also
replaces everything that it summarises. If the client requested the compaction, its block is signed
and must come first. If a threshold triggered it, its block is unsigned and may be anywhere.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from longhold.core.models.capabilities import Capabilities
from longhold.core.request.billing.api_request import JsonObject, invalid_request
from longhold.core.request.billing.pieces import PieceMeter, PromptPiece
from longhold.core.request.billing.thinking import (
    CompactionSeal,
    Signer,
    digest,
    is_thinking,
    turn_numbers,
)

CLEAR_TOOL_USES = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"
COMPACT = "compact_20260112"

CLEAR_TRIGGER_TOKENS = 100_000  # the API's default
KEPT_TOOL_USES = 3  # the API's default
CLEARED_PLACEHOLDER = "[tool result cleared]"  # the API's text is not published


class EditContext(NamedTuple):
    able: Capabilities
    measure: PieceMeter


def edits_of(context_management: JsonObject | None) -> list[JsonObject]:
    return list((context_management or {}).get("edits") or ())


def apply_edits(
    pieces: Sequence[PromptPiece], edits: Sequence[JsonObject], context: EditContext
) -> tuple[list[PromptPiece], list[JsonObject]]:
    """Return the remaining pieces and the API's report for each edit that had an effect."""
    current, applied = list(pieces), list[JsonObject]()
    for edit in edits:
        if clear := _CLEARING.get(str(edit.get("type"))):
            current, done = clear(current, edit, context)
            applied += [done] if done else []
    return current, applied


def _clear_thinking(
    pieces: list[PromptPiece], edit: JsonObject, context: EditContext
) -> tuple[list[PromptPiece], JsonObject | None]:
    keep = _kept_turns(edit.get("keep"), context.able)
    paired = list(zip(pieces, turn_numbers(pieces), strict=True))
    turns = sorted({turn for piece, turn in paired if is_thinking(piece)})
    gone = set(turns[:-keep]) if keep is not None else set()
    if not gone:
        return pieces, None
    left = [piece for piece, turn in paired if not (is_thinking(piece) and turn in gone)]
    return left, {
        "type": CLEAR_THINKING,
        "cleared_thinking_turns": len(gone),
        "cleared_input_tokens": _sum_tokens(pieces) - _sum_tokens(left),
    }


def _kept_turns(keep: JsonObject | str | None, able: Capabilities) -> int | None:
    if keep is None:
        return None if able.keeps_thinking else 1
    if isinstance(keep, str) or keep.get("type") == "all":
        return None
    return int(keep["value"])


def _clear_tool_uses(
    pieces: list[PromptPiece], edit: JsonObject, context: EditContext
) -> tuple[list[PromptPiece], JsonObject | None]:
    uses = [piece for piece in pieces if piece.type == "tool_use"]
    trigger = edit.get("trigger") or {}
    measured = len(uses) if trigger.get("type") == "tool_uses" else _sum_tokens(pieces)
    if measured <= int(trigger.get("value", CLEAR_TRIGGER_TOKENS)):
        return pieces, None
    keep = int((edit.get("keep") or {}).get("value", KEPT_TOOL_USES))
    excluded = set(edit.get("exclude_tools") or ())
    old = [use.block for use in uses[: max(len(uses) - keep, 0)]]
    cleared_ids = {block.get("id") for block in old if block.get("name") not in excluded}
    edited = [_clear_piece(piece, cleared_ids, edit, context) for piece in pieces]
    tokens = _sum_tokens(pieces) - _sum_tokens(edited)
    at_least = int((edit.get("clear_at_least") or {}).get("value", 0))
    if not cleared_ids or tokens < at_least or tokens <= 0:
        return pieces, None
    return edited, {
        "type": CLEAR_TOOL_USES,
        "cleared_tool_uses": len(cleared_ids),
        "cleared_input_tokens": tokens,
    }


def _sum_tokens(pieces: Iterable[PromptPiece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _clear_piece(
    piece: PromptPiece, ids: set[Any], edit: JsonObject, context: EditContext
) -> PromptPiece:
    block, inputs = piece.block, edit.get("clear_tool_inputs")
    if piece.type == "tool_result" and block.get("tool_use_id") in ids:
        changed = {**block, "content": CLEARED_PLACEHOLDER}
    elif (
        piece.type == "tool_use"
        and block.get("id") in ids
        and (inputs is True or (isinstance(inputs, list) and block.get("name") in inputs))
    ):
        changed = {**block, "input": {}}
    else:
        return piece
    return context.measure.piece(piece.tier, piece.role, changed, piece.place)


_Clear = Callable[
    [list[PromptPiece], JsonObject, EditContext], tuple[list[PromptPiece], JsonObject | None]
]
_CLEARING: dict[str, _Clear] = {CLEAR_THINKING: _clear_thinking, CLEAR_TOOL_USES: _clear_tool_uses}


NO_CHANGES: tuple[JsonObject, ...] = ()  # tool changes during a conversation are not simulated


def adopt_compactions(pieces: Sequence[PromptPiece], signer: Signer) -> list[PromptPiece]:
    """Replace everything before a compaction block with the block. Drop blocks without content."""
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
    for name, is_same in (
        ("content", seal.text == digest(str(piece.block.get("content")).encode())),
        (
            "tool_changes",
            seal.tool_changes == digest_changes(piece.block.get("tool_changes") or NO_CHANGES),
        ),
    ):
        if not is_same:
            problem = (
                f"the `compaction` block's `{name}` differs from what its `signature` recorded."
            )
            raise invalid_request(f"{piece.path}: {problem}", f"compaction_{name}_mismatch")


def digest_changes(changes: Sequence[JsonObject]) -> bytes:
    return digest(msgspec.json.encode(list(changes)))


def _is_failed(piece: PromptPiece) -> bool:
    return piece.type == "compaction" and piece.block.get("content") is None
