"""Check the number, order and blocks of cache breakpoints, with the API's error texts."""

from collections.abc import Sequence

from longhold.core.request.billing.api_error import invalid_request
from longhold.core.request.billing.api_request import ApiRequest, Caller
from longhold.core.request.billing.billing_settings import BillingSettings
from longhold.core.request.billing.pieces import Marker, PromptPiece, can_be_marked, read_marker

MARKER_LIMIT = 4  # published
SCOPE_BETA = "cache-scope-simulated"  # our own extension: entries shared by all workspaces


def place_markers(
    pieces: Sequence[PromptPiece],
    request: ApiRequest,
    caller: Caller,
    minimum_tokens: int,
    settings: BillingSettings,
) -> list[PromptPiece]:
    """Check the explicit breakpoints, add the automatic one, and check the order of all."""
    marked = list(pieces)
    for piece in marked:
        if piece.marker is not None:
            _check_marker(piece, caller)
    count = sum(piece.marker is not None for piece in marked)
    if not settings.short_prefix_uses_slot:
        count = _long_enough(marked, minimum_tokens)
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


def _long_enough(pieces: Sequence[PromptPiece], minimum_tokens: int) -> int:
    total = count = 0
    for piece in pieces:
        total += piece.tokens
        count += piece.marker is not None and total >= minimum_tokens
    return count


def _mark_last(pieces: list[PromptPiece], automatic: Marker, count: int) -> list[PromptPiece]:
    """Mark the last block that can be marked. Without one nothing is cached."""
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
    """One-hour breakpoints must come before five-minute ones."""
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
