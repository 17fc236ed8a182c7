"""The least that a recorded session could have cost, with hindsight.

Each call reads the system prompt and tools, new content, and earlier results that it or a later
call needed (see `regret`). Only the next call reads a message or an answer, because a short line
can keep the names in it. A result that was not kept until a call needs it is sent once more.
Unrecorded history costs nothing here, and a message that was retracted and sent again counts twice.
After a pause longer than the lifetime, kept content is written again. Pings and another lifetime
could avoid this cost and are not considered.
"""

from dataclasses import dataclass, field
from typing import TypeGuard

import msgspec
from msgspec import structs

from longhold.core.log.entries import AnyEntry, Ran, Replied, Said, Snipped
from longhold.core.messages import Text, Thinking
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import TOKENS_PER_PRICE, Prices, prices
from longhold.core.request.billing.pieces import PieceMeter
from longhold.core.request.lifetime import lifetime_seconds
from longhold.errors import LongholdError
from longhold.insight.replay.recorded_session import (
    RecordedSession,
    count_tokens,
    filler,
    read_recording,
)
from longhold.insight.replay.regret import Needs
from longhold.insight.session_files import SessionFile


@dataclass(slots=True)
class SentCalls:
    """The content that the calls of a recording had to read."""

    at: list[float] = field(default_factory=list)
    frame: int = 0
    new: list[int] = field(default_factory=list)
    """For each call, the tokens that no earlier call had read, without the frame."""
    output: int = 0
    arrived: dict[str, tuple[int, int]] = field(default_factory=dict)
    """For each result, the call that first read it, and its tokens."""
    needed: dict[str, int] = field(default_factory=dict)
    """For each result that was needed later, the last call that needed it."""


def least_cost(recording: RecordedSession, model: str, lifetime: str) -> dict[str, float]:
    """Return dollars by cause, like `ReplayResult.paid`, or {} for a model without a price."""
    if (listed := prices(model)) is None:
        return {}
    price, calls = listed.select_tier(0), list_calls(recording, model)
    write = price.write_1h if lifetime == "1h" else price.write_5m
    lives = lifetime_seconds(model, lifetime)
    expired = [b - a > lives for a, b in zip(calls.at, calls.at[1:], strict=False)]
    first = write if expired else price.input
    paid = {
        "frame": calls.frame * price.read * expired.count(False),
        "results": 0.0,
        "new": calls.frame * first + sum(calls.new) * price.input,
        "expired": calls.frame * write * sum(expired),
        "output": calls.output * price.output,
    }
    for id, last in calls.needed.items():
        since, tokens = calls.arrived.get(id, (last, 0))
        paid["results"] += tokens * _again(price, write, expired[since:last])
    return {cause: usd / TOKENS_PER_PRICE for cause, usd in paid.items()}


def read_limit(file: SessionFile) -> bytes:
    """Return the encoded least cost of a session in dollars, or 0 if the file cannot be read."""
    try:
        found = read_recording(file.path)
        usd = sum(least_cost(found, found.model, found.lifetime).values()) if found.answers else 0.0
    except (LongholdError, OSError):
        usd = 0.0
    return msgspec.msgpack.encode(usd)


def _again(price: Prices, write: float, expired: list[bool]) -> float:
    """Return the price per token of keeping a result available over these pauses between calls."""
    kept = write - price.input + sum(write if one else price.read for one in expired)
    return min(kept, price.input) if expired else 0.0


def list_calls(recording: RecordedSession, model: str) -> SentCalls:
    meter = PieceMeter(recording.counter, capabilities(model).tokenizer_scale * recording.density)
    found, needs, responses = SentCalls(), Needs(), set[str]()
    waiting, is_sendable = dict[int, int](), bool(recording.missing_tokens)
    for entry in recording.entries:
        if _is_call(entry) and is_sendable and entry.response_id not in responses:
            responses.add(entry.response_id)
            found.at.append(entry.at)
            found.new.append(sum(waiting.values()))
            found.output += entry.usage.output_tokens if entry.usage else 0
            waiting = {}
        if (need := needs.follow(entry)) is not None:
            found.needed[need.result.tool_use_id] = len(found.at) - 1
        if isinstance(entry, Snipped):
            waiting = {n: some for n, some in waiting.items() if n not in entry.targets}
        if not isinstance(entry, Said | Ran | Replied):
            continue
        is_sendable = not isinstance(entry, Replied)
        waiting[entry.n] = tokens = _count_sent(entry, meter)
        if isinstance(entry, Ran):
            found.arrived[entry.tool_use_id] = len(found.at), tokens
    scale = capabilities(recording.model).tokenizer_scale * recording.density
    frame = Said(content=(Text(text=filler(round(recording.frame_tokens / scale))),))
    found.frame = count_tokens(frame, meter) if found.at else 0
    return found


def _is_call(entry: AnyEntry) -> TypeGuard[Replied]:
    return isinstance(entry, Replied) and bool(entry.usage and entry.usage.prompt_tokens)


def _count_sent(entry: AnyEntry, meter: PieceMeter) -> int:
    """Count tokens without thinking, because the prompts of the next turn do not contain it."""
    if isinstance(entry, Replied):
        content = tuple(one for one in entry.content if not isinstance(one, Thinking))
        return count_tokens(structs.replace(entry, content=content), meter) if content else 0
    return count_tokens(entry, meter)
