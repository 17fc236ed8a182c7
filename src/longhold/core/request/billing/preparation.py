"""Prepare the prompt a model would read: breakpoints, thinking, compactions, edits.

Pure: returns a `PreparedPrompt` or raises the API's error for one of these. Other request rules are
not checked. Token counting needs exactly this.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from longhold.core.models.capabilities import LONG_WINDOW, Capabilities, capabilities
from longhold.core.request.billing.api_request import ApiRequest, Caller, JsonObject
from longhold.core.request.billing.billing_settings import BillingSettings
from longhold.core.request.billing.compaction_blocks import adopt_compactions
from longhold.core.request.billing.edits import EditContext, apply_edits, edits_of
from longhold.core.request.billing.marker_rules import place_markers
from longhold.core.request.billing.pieces import PieceMeter, PromptPiece, deferred_tools, take_apart
from longhold.core.request.billing.prompt import Prompt, chain_prompt, salts_of
from longhold.core.request.billing.signing import Signer
from longhold.core.request.billing.thinking import check_thinking, strip_earlier_thinking
from longhold.core.request.billing.tokens import TokenCounter, count_tokens

CACHE_EDITS_BETA = "cache-edits-simulated"  # our own extension


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPrompt:
    request: ApiRequest
    caller: Caller
    able: Capabilities
    measure: PieceMeter
    sent: Sequence[PromptPiece]
    """The pieces as sent, for comparing thinking and diagnostics."""
    read: Sequence[PromptPiece]
    """The pieces after everything the server removes."""
    prompt: Prompt
    original_tokens: int
    applied_edits: Sequence[JsonObject]
    transformations: Sequence[JsonObject]


class Workbench:
    def __init__(
        self, settings: BillingSettings, count: Callable[[str], int] = count_tokens
    ) -> None:
        self.settings = settings
        self.counter = TokenCounter(settings, count)
        self.signer = Signer(settings.secret)


def capabilities_for(request: ApiRequest, caller: Caller) -> Capabilities:
    able = capabilities(request.model)
    if able.long_window_beta in caller.betas:
        return capabilities(request.model + LONG_WINDOW)
    return able


def prepare(request: ApiRequest, caller: Caller, bench: Workbench) -> PreparedPrompt:
    settings = bench.settings
    able = capabilities_for(request, caller)
    scale = able.tokenizer_scale if settings.scales_tokens else 1.0
    measure = PieceMeter(bench.counter, scale, deferred_tools(request))
    sent = take_apart(request, measure)
    marked = place_markers(sent, request, caller, able.cache_minimum_tokens, settings)
    checked, transformations = check_thinking(marked, request, caller, able, settings, bench.signer)
    stripped = strip_earlier_thinking(adopt_compactions(checked, bench.signer), able)
    context = EditContext(able=able, settings=settings, measure=measure)
    edits = edits_of(request.context_management) if settings.acts_on_context_management else []
    read, applied = apply_edits(stripped, edits, context)
    salts = salts_of(request, read, able, settings)
    has_edits = CACHE_EDITS_BETA in caller.betas and settings.acts_on_cache_edits
    prompt = chain_prompt(read, salts, _deletions(read) if has_edits else frozenset())
    return PreparedPrompt(
        request=request,
        caller=caller,
        able=able,
        measure=measure,
        sent=sent,
        read=read,
        prompt=prompt,
        original_tokens=sum(p.tokens for p in stripped) if applied else prompt.total_tokens,
        applied_edits=applied,
        transformations=transformations,
    )


def messages_of(pieces: Iterable[PromptPiece]) -> tuple[JsonObject, ...]:
    """Rejoin pieces into messages. A compaction becomes its summary, as user text."""
    messages: list[JsonObject] = []
    current, content = "", list[JsonObject]()
    for piece in pieces:
        if piece.tier != "messages" or piece.type == "cache_edits":
            continue
        role, block = piece.role, piece.block
        if piece.type == "compaction":
            role, block = "user", {"type": "text", "text": str(piece.block.get("content"))}
        if role != current:
            current, content = role, []
            messages.append({"role": role, "content": content})
        content.append(block)
    return tuple(messages)


def _deletions(pieces: Iterable[PromptPiece]) -> frozenset[str]:
    references: dict[object, str] = {}
    deleted: set[str] = set()
    for piece in pieces:
        if piece.type == "tool_result" and "cache_reference" in piece.block:
            references[piece.block["cache_reference"]] = str(piece.block.get("tool_use_id"))
        elif piece.type == "cache_edits":
            named = {edit.get("cache_reference") for edit in piece.block.get("edits") or ()}
            deleted.update(references[name] for name in named & references.keys())
    return frozenset(deleted)
