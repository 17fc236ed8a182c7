"""Compaction blocks, of both server compactions: past a threshold, and on demand.

Reads blocks that are sent back (what they summarise leaves the prompt), refuses altered or
misplaced ones, and makes new ones. `simulation` decides when to compact and who writes the
summary. An on-demand block is signed and must be first; a threshold block is unsigned and may
stand anywhere: everything before it is ignored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from longhold.core.models.capabilities import Capabilities
from longhold.core.request.billing.edits import COMPACT, edits_of, fires
from longhold.core.request.billing.errors import invalid_request
from longhold.core.request.billing.pieces import PromptPiece
from longhold.core.request.billing.request import ApiRequest, JsonObject
from longhold.core.request.billing.settings import SimulatorSettings
from longhold.core.request.billing.signing import CompactionSeal, Signer
from longhold.core.request.billing.thinking import Links, digest

ON_DEMAND_BETA = "compact-2026-09-04"
THRESHOLD_BETA = "compact-2026-01-12"
DEFAULT_TRIGGER_TOKENS = 150_000  # the API's default
MINIMUM_TRIGGER_TOKENS = 50_000  # the API refuses less
NO_CHANGES: tuple[JsonObject, ...] = ()  # tool changes in mid-conversation are not simulated


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    trigger_tokens: int
    pauses: bool
    instructions: str | None


def threshold_of(request: ApiRequest) -> Threshold | None:
    for edit in edits_of(request.context_management):
        if edit.get("type") == COMPACT:
            trigger = edit.get("trigger") or {}
            return Threshold(
                trigger_tokens=int(trigger.get("value", DEFAULT_TRIGGER_TOKENS)),
                pauses=bool(edit.get("pause_after_compaction", False)),
                instructions=edit.get("instructions"),
            )
    return None


def is_due(threshold: Threshold | None, tokens: int, settings: SimulatorSettings) -> bool:
    return threshold is not None and fires(threshold.trigger_tokens, tokens, settings)


def instructions_of(request: ApiRequest) -> str | None:
    instructions = (request.compaction or {}).get("instructions")
    if isinstance(instructions, str) and instructions.strip():
        return instructions
    return None


def adopt_compactions(pieces: Sequence[PromptPiece], signer: Signer) -> list[PromptPiece]:
    """Replace what precedes a compaction block by the block; failed ones change nothing."""
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
    """Refuse signed blocks that are repeated, misplaced or altered."""
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


def make_signed_block(
    summary: str, links: Links, able: Capabilities, last_role: str, signer: Signer
) -> JsonObject:
    seal = CompactionSeal(
        model=able.model,
        frame=links.frame,
        prefix=links.end,
        previous=links.last_seal,
        text=digest(summary.encode()),
        tool_changes=_changes_digest(NO_CHANGES),
        binds_thinking=able.binds_thinking,
        last_role=last_role,
    )
    return {
        "type": "compaction",
        "content": summary,
        "signature": signer.sign(seal),
        "tool_changes": list(NO_CHANGES),
    }


def make_threshold_block(summary: str | None) -> JsonObject:
    """Make the block that opens an answer past the threshold; None is a failed one."""
    return {"type": "compaction", "content": summary, "encrypted_content": None}


def check_compaction_request(request: ApiRequest, settings: SimulatorSettings) -> None:
    """Refuse an on-demand compaction that cannot be combined or has nothing to do."""
    for name in ("context_management", "stop_sequences", "output_format"):
        if getattr(request, name):
            raise invalid_request(f"compaction: cannot be combined with `{name}`.")
    if (request.output_config or {}).get("format"):
        raise invalid_request("compaction: cannot be combined with `output_config.format`.")
    if (request.tool_choice or {}).get("type") in ("any", "tool"):
        raise invalid_request(
            "compaction: cannot be combined with a `tool_choice` that forces a tool."
        )
    blocks = [b for m in request.messages if m.role != "system" for b in m.blocks()]
    if not any(b.get("type") != "compaction" or b.get("content") for b in blocks):
        raise invalid_request(
            "messages: there is no `user` or `assistant` content to summarize.",
            "compaction_nothing_to_summarize",
        )
    last = request.messages[-1]
    if last.role == "assistant" and any(b.get("type") == "tool_use" for b in last.blocks()):
        raise invalid_request(
            "messages: the request ends on an `assistant` turn that is not finished.",
            "compaction_incomplete_turn",
        )
    names = {b.get("name") for b in blocks if b.get("type") == "tool_use"}
    if len(names) > settings.compaction_tool_references:
        raise invalid_request(
            "messages: the conversation references more distinct tools than a `compaction` block "
            "can record.",
            "compaction_too_many_tool_references",
        )


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
    if seal.tool_changes != _changes_digest(piece.block.get("tool_changes") or NO_CHANGES):
        raise invalid_request(
            f"{piece.path}: the `compaction` block's `tool_changes` differs from what was "
            "returned with the block.",
            "compaction_tool_changes_mismatch",
        )


def _changes_digest(changes: Sequence[JsonObject]) -> bytes:
    return digest(msgspec.json.encode(list(changes)))


def _is_failed(piece: PromptPiece) -> bool:
    return piece.type == "compaction" and piece.block.get("content") is None
