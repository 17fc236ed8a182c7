"""The list of models, in one format for both SDKs. Each SDK ignores the other's fields."""

from longhold.core.models.capabilities import Capabilities, capabilities, known_models
from longhold.core.request.billing.api_request import ApiError, JsonObject
from longhold.simulator.settings import SimulatorSettings

RELEASED = "2026-01-01T00:00:00Z"  # release dates are not simulated
RELEASED_UNIX = 1_767_225_600
DEFAULT_PAGE = 20  # the API's default
LARGEST_PAGE = 1_000  # the API's limit


def model_list(limit: int = DEFAULT_PAGE, after: str | None = None) -> JsonObject:
    names = list(known_models())
    start = names.index(after) + 1 if after in names else 0
    page = names[start : start + max(1, min(limit, LARGEST_PAGE))]
    return {
        "object": "list",
        "data": [_model_json(capabilities(name)) for name in page],
        "has_more": start + len(page) < len(names),
        "first_id": page[0] if page else None,
        "last_id": page[-1] if page else None,
    }


def find_model(name: str, settings: SimulatorSettings) -> JsonObject:
    able = capabilities(name)
    check_model(name, able, settings)
    return {**_model_json(able), "id": name}


def check_model(name: str, able: Capabilities, settings: SimulatorSettings) -> None:
    is_known = able.model in known_models() or able.family == "simulator"
    if not is_known and not settings.accepts_unknown_models:
        raise ApiError(404, f"model: {name}")


def _model_json(able: Capabilities) -> JsonObject:
    line = able.model.split("-")[1] if able.model.startswith("claude-") else None
    return {
        "id": able.model,
        "type": "model",
        "object": "model",
        "created": RELEASED_UNIX,
        "owned_by": able.family,
        "created_at": RELEASED,
        "display_name": able.model,
        "lifecycle": "active",
        "line": line,
        "max_input_tokens": able.window_tokens,
        "max_tokens": able.max_output_tokens,
        "capabilities": _capabilities_json(able),
    }


def _capabilities_json(able: Capabilities) -> JsonObject:
    return {
        "compaction": {
            **_support(able.compacts_on_demand),
            "summarize": _support(able.compacts_on_demand),
        },
        "context_management": {
            **_support(able.context_management),
            "clear_thinking_20251015": _support(able.context_management),
            "clear_tool_uses_20250919": _support(able.context_management),
            "compact_20260112": _support(able.compacts_at_threshold),
        },
    }


def _support(is_supported: bool) -> JsonObject:
    return {"supported": is_supported}
