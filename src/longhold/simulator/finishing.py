"""Convert a brain's answer to an API answer with limits, ids, signatures and token counts."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from longhold.core.request.billing.api_request import JsonObject
from longhold.core.request.billing.pieces import PieceMeter
from longhold.core.request.billing.preparation import PreparedPrompt
from longhold.core.request.billing.thinking import Signer, digest, link_conversation, seal_thinking
from longhold.core.request.billing.tokens import decode, encode
from longhold.simulator.brains import BrainAnswer

ID_CHARS = 24  # the length of the providers' ids


def new_id(prefix: str) -> str:
    return prefix + secrets.token_hex(ID_CHARS // 2)


class FinishedAnswer(NamedTuple):
    blocks: list[JsonObject]
    stop_reason: str
    stop_sequence: str | None
    output_tokens: int
    thinking_tokens: int


def finish(
    answer: BrainAnswer, prepared: PreparedPrompt, prompt_tokens: int, signer: Signer
) -> FinishedAnswer:
    request, able = prepared.request, prepared.able
    is_off = (request.thinking or {}).get("type") == "disabled"
    blocks = [b for b in answer.blocks if not (is_off and b.get("type") == "thinking")]
    reason = answer.stop_reason or natural_reason(blocks)
    blocks, sequence = stop_at_sequence(blocks, request.stop_sequences or ())
    if sequence is not None:
        reason = "stop_sequence"
    room = able.window_tokens - prompt_tokens
    limit = request.max_tokens or 0
    fitted = fit(blocks, min(limit, room), prepared.measure)
    if fitted.is_cut:
        reason = "max_tokens" if limit <= room else "model_context_window_exceeded"
        sequence = None
    return FinishedAnswer(
        blocks=_complete_blocks(fitted.blocks, prepared, signer),
        stop_reason=reason,
        stop_sequence=sequence,
        output_tokens=fitted.tokens,
        thinking_tokens=fitted.thinking_tokens,
    )


def _block_text(block: JsonObject) -> str:
    match block.get("type"):
        case "thinking":
            return str(block.get("thinking", ""))
        case "tool_use":
            return f"{block.get('name')} {block.get('input')}"
        case _:
            return str(block.get("text", ""))


class FittedAnswer(NamedTuple):
    blocks: list[JsonObject]
    tokens: int
    thinking_tokens: int
    is_cut: bool


def fit(blocks: Sequence[JsonObject], limit: int, measure: PieceMeter) -> FittedAnswer:
    """Take blocks up to the limit. Cut a text that exceeds it, and drop a tool call."""
    taken: list[JsonObject] = []
    tokens = thinking_tokens = 0
    is_cut = False
    for block in blocks:
        cost = measure.text_tokens(_block_text(block)) + 1
        if tokens + cost <= limit:
            taken.append(block)
        else:
            is_cut = True
            cost = max(limit - tokens, 0)
            if block.get("type") == "text" and cost > 0:
                text = decode(encode(str(block["text"]))[:cost])
                if text.strip():
                    taken.append({**block, "text": text})
        tokens += cost
        thinking_tokens += cost if block.get("type") == "thinking" else 0
        if is_cut:
            break
    return FittedAnswer(blocks=taken, tokens=tokens, thinking_tokens=thinking_tokens, is_cut=is_cut)


def natural_reason(blocks: Sequence[JsonObject]) -> str:
    return "tool_use" if any(b.get("type") == "tool_use" for b in blocks) else "end_turn"


def stop_at_sequence(
    blocks: Sequence[JsonObject], sequences: Sequence[str]
) -> tuple[list[JsonObject], str | None]:
    for index, block in enumerate(blocks):
        if block.get("type") != "text":
            continue
        text = str(block["text"])
        found = [(text.find(s), s) for s in sequences if s and s in text]
        if found:
            position, sequence = min(found)
            head = [*blocks[:index]]
            if position:
                head.append({**block, "text": text[:position]})
            return head, sequence
    return list(blocks), None


def _complete_blocks(
    blocks: Sequence[JsonObject], prepared: PreparedPrompt, signer: Signer
) -> list[JsonObject]:
    if not any(block.get("type") in ("tool_use", "thinking") for block in blocks):
        return list(blocks)
    links, named = link_conversation(prepared.sent, signer), list[JsonObject]()
    is_hidden = (prepared.request.thinking or {}).get("display") == "omitted"
    for index, block in enumerate(blocks):
        if block.get("type") == "tool_use":  # gets a reproducible id
            own = digest(links.end + bytes([index % 256])).hex()[:ID_CHARS]
            block = {**block, "id": block.get("id") or f"toolu_{own}", "type": "tool_use"}
        elif is_hidden and block.get("type") == "thinking":
            block = {**block, "thinking": ""}
        named.append(block)
    able, workspace = prepared.able, prepared.caller.workspace
    return seal_thinking(named, links, able.model, workspace, signer)
