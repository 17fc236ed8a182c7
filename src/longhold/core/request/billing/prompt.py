"""The prompt as the cache sees it: a hash chain with token counts and breakpoints.

Each hash covers everything before it and the parameters of its tier, so changing a parameter
invalidates its tier and everything after it.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from longhold.core.models.capabilities import Capabilities
from longhold.core.request.billing.api_request import ApiRequest
from longhold.core.request.billing.pieces import DIGEST_BYTES, Marker, PromptPiece

DEFAULT_EFFORT = "high"  # a request that states the default equals one that omits it
LINKS = 20_000  # a long session needs fewer, because its prompts share most links


class Salts(NamedTuple):
    tools: bytes
    system: bytes
    messages: bytes


class Prompt(NamedTuple):
    """A prompt. Position i has the hash `chain[i]`, and `totals[i]` tokens end there."""

    chain: Sequence[bytes]
    totals: Sequence[int]
    markers: Sequence[tuple[int, Marker]]
    deleted: Sequence[tuple[int, int]] = ()  # positions of deleted results and their tokens

    @property
    def total_tokens(self) -> int:
        return self.totals[-1] if self.totals else 0


def chain_prompt(pieces: Iterable[PromptPiece], salts: Salts, deleted: frozenset[str]) -> Prompt:
    """Chain the pieces in tier order. Cache edits change the chain but have no position."""
    chain: list[bytes] = []
    totals: list[int] = []
    markers: list[tuple[int, Marker]] = []
    gone: list[tuple[int, int]] = []
    link, total, tier = _link(b"", salts.tools), 0, "tools"
    for piece in pieces:
        if piece.tier != tier:
            link, tier = _enter(link, tier, piece.tier, salts), piece.tier
        link = _link(link, piece.digest)
        if piece.type == "cache_edits":
            continue
        total += piece.tokens
        if piece.marker is not None:
            markers.append((len(chain), piece.marker))
        if deleted and piece.block.get("tool_use_id") in deleted:
            gone.append((len(chain), piece.tokens))
        chain.append(link)
        totals.append(total)
    return Prompt(chain=chain, totals=totals, markers=markers, deleted=gone)


def salts_of(request: ApiRequest, pieces: Iterable[PromptPiece], able: Capabilities) -> Salts:
    effort = (request.output_config or {}).get("effort") or DEFAULT_EFFORT
    config = request.thinking or {}
    default = "disabled" if "disabled" in able.thinking_modes else "adaptive"
    thinking = config.get("type", default), config.get("budget_tokens") or 0
    said = [piece for piece in pieces if piece.tier == "messages"]
    has_images = any(piece.has_image for piece in said)
    has_citations = any(piece.has_citations for piece in said)
    return Salts(
        tools=_salt(able.model),
        system=_salt(has_citations, request.speed or "standard"),
        messages=_salt(_choice_salt(request), has_images, thinking, effort),
    )


def _enter(link: bytes, tier: str, next_tier: str, salts: Salts) -> bytes:
    """Add the next tier's salt. The system tier's salt is added even without a system prompt."""
    if tier == "tools":
        link = _link(link, salts.system)
    return _link(link, salts.messages) if next_tier == "messages" else link


@lru_cache(maxsize=LINKS)
def _link(previous: bytes, addition: bytes) -> bytes:
    return blake2b(previous + addition, digest_size=DIGEST_BYTES).digest()


def _salt(*parts: object) -> bytes:
    return blake2b(msgspec.json.encode(parts), digest_size=DIGEST_BYTES).digest()


def _choice_salt(request: ApiRequest) -> tuple[str, str, bool]:
    choice = request.tool_choice or {}
    return (
        str(choice.get("type", "auto")),
        str(choice.get("name", "")),
        bool(choice.get("disable_parallel_tool_use", False)),
    )
