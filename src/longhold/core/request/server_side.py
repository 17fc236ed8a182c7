"""Clearing done by the provider: by cache edits, or by its context management.

What a session asks for is fixed in its frame at the start, because any later change would move
the prefix. Answers report only counts of what was cleared; which results is inferred, oldest
first, according to the provider's rule.
"""

from collections.abc import Sequence

from msgspec import structs

from longhold.core.log.entries import Framed
from longhold.core.messages import JsonObject
from longhold.core.models.capabilities import Capabilities, capabilities
from longhold.core.request.edits import BETA as EDITS_BETA
from longhold.core.settings import ClearSettings
from longhold.core.tools.describe import description_of
from longhold.core.view.window import Window

BETA = "context-management-2025-06-27"
OPTION = "context_management"
CLEAR_RESULTS = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"


def declare_clearing(frame: Framed, model: str, settings: ClearSettings, window: Window) -> Framed:
    """Add provider-side clearing to a frame; context management set by the caller stays."""
    able = capabilities(model)
    betas, options = list(frame.betas), dict(frame.options)
    if settings.on and settings.edits and able.cache_edits:
        betas.append(EDITS_BETA)
    if settings.on and settings.server and able.context_management and OPTION not in options:
        betas.append(BETA)
        thinking = _thinking(frame, able)
        options[OPTION] = {"edits": [*thinking, _build_clearing(frame, settings, window)]}
    return structs.replace(frame, betas=tuple(dict.fromkeys(betas)), options=options)


def update_excluded(frame: Framed) -> Framed:
    """Update the tools that provider-side clearing names, after tools were added."""
    edits = [
        edit | _name_tools(frame, clears_inputs="clear_tool_inputs" in edit)
        if edit.get("type") == CLEAR_RESULTS
        else edit
        for edit in edits_in(frame.options)
    ]
    if not edits:
        return frame
    return structs.replace(frame, options=frame.options | {OPTION: {"edits": edits}})


def edits_in(options: JsonObject) -> list[JsonObject]:
    management = options.get(OPTION)
    edits = management.get("edits") if isinstance(management, dict) else None
    return [edit for edit in edits or () if isinstance(edit, dict)]


def _build_clearing(frame: Framed, settings: ClearSettings, window: Window) -> JsonObject:
    trigger = max(1, min(settings.server_trigger_tokens, window.warning_tokens))
    least = max(0, trigger - settings.server_target_tokens)
    return {
        "type": CLEAR_RESULTS,
        "trigger": {"type": "input_tokens", "value": trigger},
        "keep": {"type": "tool_uses", "value": settings.keep_results},
        "clear_at_least": {"type": "input_tokens", "value": least},
    } | _name_tools(frame, clears_inputs=settings.inputs)


def _thinking(frame: Framed, able: Capabilities) -> list[JsonObject]:
    """Keep all thinking, if the model thinks; this edit must come first."""
    config = frame.options.get("thinking")
    mode = config.get("type") if isinstance(config, dict) else None
    thinks = mode not in (None, "disabled") or "disabled" not in able.thinking_modes
    return [{"type": CLEAR_THINKING, "keep": "all"}] if thinks else []


def _name_tools(frame: Framed, *, clears_inputs: bool) -> JsonObject:
    tools = {str(tool.get("name")): description_of(str(tool.get("name"))) for tool in frame.tools}
    named: JsonObject = {
        "exclude_tools": sorted(name for name, tool in tools.items() if not tool.is_clearable)
    }
    writing = sorted(name for name, tool in tools.items() if tool.kind == "write")
    return named | ({"clear_tool_inputs": writing} if clears_inputs and writing else {})


def drop_unsupported(frame: Framed, able: Capabilities) -> tuple[JsonObject, tuple[str, ...]]:
    options, dropped = frame.options, set() if able.cache_edits else {EDITS_BETA}
    if not able.context_management and OPTION in options:
        options = {key: value for key, value in options.items() if key != OPTION}
        dropped.add(BETA)
    return options, tuple(beta for beta in frame.betas if beta not in dropped)


def cleared_count(applied: Sequence[JsonObject]) -> int:
    return _sum(applied, "cleared_tool_uses")


def cleared_tokens(applied: Sequence[JsonObject]) -> int:
    return _sum(applied, "cleared_input_tokens")


def _sum(applied: Sequence[JsonObject], key: str) -> int:
    counts = (edit.get(key) for edit in applied if edit.get("type") == CLEAR_RESULTS)
    return sum(count for count in counts if isinstance(count, int))


def is_shortened(applied: Sequence[JsonObject]) -> bool:
    return any(edit.get("cleared_input_tokens") for edit in applied)
