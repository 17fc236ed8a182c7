"""Prepare the prompt that a model would read, with breakpoints, thinking, compactions and edits."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from longhold.core.models.capabilities import LONG_WINDOW, Capabilities, capabilities
from longhold.core.request.billing.api_request import (
    ApiRequest,
    Caller,
    JsonObject,
    invalid_request,
)
from longhold.core.request.billing.edits import (
    EditContext,
    adopt_compactions,
    apply_edits,
    edits_of,
)
from longhold.core.request.billing.pieces import (
    Marker,
    PieceMeter,
    PromptPiece,
    can_be_marked,
    deferred_tools,
    read_marker,
    take_apart,
)
from longhold.core.request.billing.prompt import Prompt, chain_prompt, salts_of
from longhold.core.request.billing.thinking import Signer, check_thinking, strip_earlier_thinking
from longhold.core.request.billing.tokens import BillingSettings, TokenCounter, count_tokens

MARKER_LIMIT = 4  # published
SCOPE_BETA = "cache-scope-simulated"  # Longhold's extension for entries that all workspaces share


def place_markers(
    pieces: Sequence[PromptPiece], request: ApiRequest, caller: Caller
) -> list[PromptPiece]:
    marked = list(pieces)
    for piece in marked:
        if piece.marker is not None:
            _check_marker(piece, caller)
    count = sum(piece.marker is not None for piece in marked)
    _check_count(count)
    _check_control(request.cache_control, "cache_control", caller)
    automatic = read_marker(request.cache_control)
    if automatic is not None:
        marked = _mark_last(marked, automatic, count)
    _check_order(marked)
    return marked


def _check_count(count: int) -> None:
    if count > MARKER_LIMIT:
        raise invalid_request(
            f"A maximum of {MARKER_LIMIT} blocks with cache_control may be provided. Found {count}."
        )


def _check_marker(piece: PromptPiece, caller: Caller) -> None:
    control = piece.block.get("cache_control")
    path = f"{piece.path}.{piece.type}" if piece.type else piece.path
    if not can_be_marked(piece):
        if piece.type == "text":
            raise invalid_request(f"{path}: cache_control cannot be set for empty text blocks")
        raise invalid_request(f"{path}.cache_control: Extra inputs are not permitted")
    _check_control(control, f"{path}.cache_control", caller)
    if piece.marker is not None and piece.marker.is_global and piece.tier == "messages":
        raise invalid_request(f"{path}.cache_control.scope: 'global' is for tools and system only")


def _check_control(control: object, path: str, caller: Caller) -> None:
    if not isinstance(control, dict):
        return
    if control.get("type") != "ephemeral":
        raise invalid_request(f"{path}.type: Input should be 'ephemeral'")
    if control.get("ttl", "5m") not in ("5m", "1h"):
        raise invalid_request(f"{path}.ttl: Input should be '5m' or '1h'")
    if "scope" in control and SCOPE_BETA not in caller.betas:
        raise invalid_request(f"{path}.scope: Extra inputs are not permitted")


def _mark_last(pieces: list[PromptPiece], automatic: Marker, count: int) -> list[PromptPiece]:
    """Mark the last block that allows a breakpoint. Without such a block, nothing is cached."""
    for index, piece in reversed(list(enumerate(pieces))):
        if not can_be_marked(piece):
            continue
        if piece.marker is None:
            _check_count(count + 1)
            pieces[index] = piece._replace(marker=automatic)
        elif piece.marker.lifetime != automatic.lifetime:
            raise invalid_request(
                "cache_control: the last block already has a cache_control with a different ttl."
            )
        return pieces
    return pieces


def _check_order(pieces: Sequence[PromptPiece]) -> None:
    """Raise an error if a five-minute breakpoint comes before a one-hour breakpoint."""
    has_short = False
    for piece in pieces:
        if piece.marker is None:
            continue
        if piece.marker.lifetime == "1h" and has_short:
            raise invalid_request(
                f"{piece.path}.cache_control.ttl: a ttl='1h' cache_control block must not come "
                "after a ttl='5m' cache_control block. Note that blocks are processed in the "
                "following order: `tools`, `system`, `messages`."
            )
        has_short = has_short or piece.marker.lifetime == "5m"


CACHE_EDITS_BETA = "cache-edits-simulated"  # Longhold's extension


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPrompt:
    request: ApiRequest
    caller: Caller
    able: Capabilities
    measure: PieceMeter
    sent: Sequence[PromptPiece]  # the pieces as sent, for comparing thinking and diagnostics
    read: Sequence[PromptPiece]  # the pieces that remain after the server's removals
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
        self.signer = Signer()


def capabilities_for(request: ApiRequest, caller: Caller) -> Capabilities:
    able = capabilities(request.model)
    if able.long_window_beta in caller.betas:
        return capabilities(request.model + LONG_WINDOW)
    return able


def prepare(request: ApiRequest, caller: Caller, bench: Workbench) -> PreparedPrompt:
    settings = bench.settings
    able = capabilities_for(request, caller)
    measure = PieceMeter(bench.counter, able.tokenizer_scale, deferred_tools(request))
    sent = take_apart(request, measure)
    marked = place_markers(sent, request, caller)
    checked, transformations = check_thinking(marked, request, caller, able, settings, bench.signer)
    stripped = strip_earlier_thinking(adopt_compactions(checked, bench.signer), able)
    edits = edits_of(request.context_management) if settings.acts_on_context_management else []
    read, applied = apply_edits(stripped, edits, EditContext(able, measure))
    salts = salts_of(request, read, able)
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
    """Join pieces into messages. The summary of a compaction becomes a user message."""
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
