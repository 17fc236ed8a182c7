"""Clearing on the provider's side, by cache edits or context management.

The frame stores the parameters, because changing them later would change the prefix. The provider
does not store cache edits, so every request repeats them in the same position.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import structs

from longhold.core.log.entries import Framed
from longhold.core.messages import JsonObject, Usage
from longhold.core.models.capabilities import Capabilities, capabilities
from longhold.core.settings import ClearSettings
from longhold.core.tools.describe import description_of
from longhold.core.view import View
from longhold.core.view.window import Window

EDITS_BETA = "cache-edits-simulated"  # Enables cache edits. Only the simulator has them.
BETA = "context-management-2025-06-27"
OPTION = "context_management"
CLEAR_RESULTS = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"


def declare_clearing(frame: Framed, model: str, settings: ClearSettings, window: Window) -> Framed:
    """Add provider-side clearing to a frame, unless the caller has set context management."""
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
    """Keep all thinking, for models that think. The API requires this edit to come first."""
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


def deleted_tokens(usage: Usage | None) -> int:
    return usage.deleted_tokens if usage else 0


PlacedEdits: TypeAlias = Mapping[int, Sequence[str]]  # result ids that a message deletes


def has_edits(frame: Framed, model: str) -> bool:
    return EDITS_BETA in frame.betas and capabilities(model).cache_edits


def place_edits(view: View) -> PlacedEdits | None:
    """Return the cache edits for a view's request, or None if the model does not support them."""
    if not has_edits(view.frame or Framed(), view.model):
        return None
    found: dict[int, tuple[str, ...]] = {}
    messages = view.sent if view.edits else ()
    for entry in view.edits:
        ids = tuple(id for id in entry.ids if _is_edited(view, id, entry.place))
        at = view.message_from(entry.place)
        while at < len(messages) and messages[at].role != "user":
            at += 1
        if ids and at < len(messages):
            found[at] = found.get(at, ()) + ids
    return found


def _is_edited(view: View, tool_use_id: str, place: int) -> bool:
    owner = view.round_of(tool_use_id)
    result = owner.result_of(tool_use_id) if owner and owner.order < place else None
    return bool(result and result.cleared and result.cleared.how == "edited")


def with_edits(message: JsonObject, ids: Sequence[str]) -> JsonObject:
    content = [
        block | {"cache_reference": block["tool_use_id"]} if _is_result(block) else block
        for block in message["content"]
    ]
    if not ids and all(new is old for new, old in zip(content, message["content"], strict=True)):
        return message
    if ids:
        results = [i for i, block in enumerate(content) if _is_result(block)]
        deletions = [{"type": "delete", "cache_reference": id} for id in ids]
        place = results[-1] + 1 if results else 0
        content.insert(place, {"type": "cache_edits", "edits": deletions})
    return message | {"content": content}


def _is_result(block: JsonObject) -> bool:
    return block.get("type") == "tool_result"


def find_first_edit(then: PlacedEdits | None, now: PlacedEdits | None) -> int | None:
    if (now is None) != (then is None):
        return 0
    before, after = then or {}, now or {}
    return min((i for i in {*before, *after} if before.get(i) != after.get(i)), default=None)
