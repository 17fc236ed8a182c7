"""Explain cache misses by comparing the hashes of a request with those of an earlier request."""

from array import array
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from longhold.core.request.billing.api_request import JsonObject
from longhold.core.request.billing.pieces import DIGEST_BYTES, PromptPiece, PromptTier
from longhold.core.request.billing.preparation import PreparedPrompt
from longhold.core.request.billing.thinking import digest


class RequestFingerprint(NamedTuple):
    model: tuple[str, str]
    tools: bytes
    system: bytes
    messages: bytes
    message_tokens: "array[int]"  # tokens of each message block, as a compact array
    tools_tokens: int
    system_tokens: int
    others: bytes


REMEMBERED = 500  # number of requests to compare with, at about 24 bytes per block


class Diagnostics:
    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], RequestFingerprint] = OrderedDict()

    def remember(self, prepared: PreparedPrompt, message_id: str) -> None:
        key = prepared.caller.workspace, message_id
        self._known[key] = fingerprint(prepared)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def diagnose(self, prepared: PreparedPrompt) -> JsonObject | None:
        """Answer a request's `diagnostics`, or return None if it has no id or nothing differs."""
        previous_id = (prepared.request.diagnostics or {}).get("previous_message_id")
        if previous_id is None:
            return None
        previous = self._known.get((prepared.caller.workspace, str(previous_id)))
        if previous is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        reason = compare(previous, fingerprint(prepared))
        return None if reason is None else {"cache_miss_reason": reason}

    def clear(self) -> None:
        self._known.clear()


def fingerprint(prepared: PreparedPrompt) -> RequestFingerprint:
    tiers: dict[PromptTier, list[PromptPiece]] = {"tools": [], "system": [], "messages": []}
    for piece in prepared.sent:
        tiers[piece.tier].append(piece)
    request = prepared.request
    options = (request.tool_choice, request.thinking, request.output_config)
    more = (request.context_management, sorted(prepared.caller.betas))
    return RequestFingerprint(
        model=(prepared.able.model, request.speed or "standard"),
        tools=b"".join(piece.digest for piece in tiers["tools"]),
        system=b"".join(piece.digest for piece in tiers["system"]),
        messages=b"".join(piece.digest for piece in tiers["messages"]),
        message_tokens=array("Q", (piece.tokens for piece in tiers["messages"])),
        tools_tokens=sum(piece.tokens for piece in tiers["tools"]),
        system_tokens=sum(piece.tokens for piece in tiers["system"]),
        others=digest(msgspec.json.encode((*options, *more))),
    )


def compare(previous: RequestFingerprint, current: RequestFingerprint) -> JsonObject | None:
    after_tools = previous.system_tokens + sum(previous.message_tokens)
    total = previous.tools_tokens + after_tools
    if previous.model != current.model:
        return _reason("model_changed", total)
    if previous.tools != current.tools:
        return _reason("tools_changed", total)
    if previous.system != current.system:
        return _reason("system_changed", after_tools)
    same = _common_blocks(previous.messages, current.messages)
    if same < len(previous.message_tokens):
        return _reason("messages_changed", sum(previous.message_tokens[same:]))
    if previous.others != current.others:
        return {"type": "unavailable"}
    return None


def _common_blocks(one: bytes, other: bytes) -> int:
    for start in range(0, min(len(one), len(other)), DIGEST_BYTES):
        if one[start : start + DIGEST_BYTES] != other[start : start + DIGEST_BYTES]:
            return start // DIGEST_BYTES
    return min(len(one), len(other)) // DIGEST_BYTES


def _reason(kind: str, tokens: int) -> JsonObject:
    return {"type": kind, "cache_missed_input_tokens": tokens}
