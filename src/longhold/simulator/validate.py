"""The rules for a request's parameters and messages, with the API's text for each error."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from longhold.core.models.capabilities import Capabilities
from longhold.core.request.billing.api_request import (
    ApiMessage,
    ApiRequest,
    Caller,
    JsonObject,
    invalid_request,
)
from longhold.core.request.billing.edits import CLEAR_THINKING, CLEAR_TOOL_USES, COMPACT, edits_of
from longhold.core.request.billing.pieces import deferred_tools, reference_of
from longhold.core.request.billing.preparation import CACHE_EDITS_BETA
from longhold.simulator.model_list import check_model
from longhold.simulator.settings import SimulatorSettings

ON_DEMAND_BETA = "compact-2026-09-04"
THRESHOLD_BETA = "compact-2026-01-12"
DEFAULT_TRIGGER_TOKENS = 150_000  # the API's default
MINIMUM_TRIGGER_TOKENS = 50_000  # the API refuses less


STRICT_VERSION = "2026-10-21"  # from this version on, sampling parameters are refused
EDITS_BETA = "context-management-2025-06-27"
MINIMUM_BUDGET_TOKENS = 1_024  # published
MESSAGE_LIMIT = 100_000  # published
FORCING = ("any", "tool")
TOOL_REFERENCES = 1_000  # limit for a signed compaction, as the API does not publish its own


class Threshold(NamedTuple):
    trigger_tokens: int
    pauses: bool
    instructions: str | None


def threshold_of(request: ApiRequest) -> Threshold | None:
    for edit in edits_of(request.context_management):
        if edit.get("type") == COMPACT:
            trigger = edit.get("trigger") or {}
            return Threshold(
                trigger_tokens=int(trigger.get("value", DEFAULT_TRIGGER_TOKENS)),
                pauses=bool(edit.get("pause_after_compaction", False)),
                instructions=edit.get("instructions"),
            )
    return None


def check_request(
    request: ApiRequest,
    caller: Caller,
    able: Capabilities,
    settings: SimulatorSettings,
    *,
    is_count: bool = False,
) -> None:
    check_model(request.model, able, settings)
    if not is_count:
        _check_max_tokens(request, able)
    _check_sampling(request, caller)
    _check_thinking(request, able)
    _check_tools(request, able)
    _check_betas(request, caller, able)
    if request.compaction is not None and request.messages:
        _check_compaction(request)
    _check_conversation(request.messages, able, compacts=request.compaction is not None)
    _check_blocks(request, caller, able)


def _check_max_tokens(request: ApiRequest, able: Capabilities) -> None:
    limit = request.max_tokens
    if limit is None:
        raise invalid_request("max_tokens: Field required")
    _want(limit >= 0, "max_tokens: Input should be greater than or equal to 0")
    _want(
        limit <= able.max_output_tokens,
        f"max_tokens: {limit} > {able.max_output_tokens}, which is the maximum allowed number "
        f"of output tokens for {able.model}",
    )
    if limit == 0:
        _check_prewarm(request)


def _check_prewarm(request: ApiRequest) -> None:
    """Refuse output parameters if `max_tokens` is 0, because the request only fills the cache."""
    config = request.output_config or {}
    for is_set, name in (
        (request.stream, "stream"),
        ((request.thinking or {}).get("type") == "enabled", "thinking.enabled"),
        (config.get("format") or request.output_format, "output_config.format"),
        ((request.tool_choice or {}).get("type") in FORCING, "tool_choice"),
    ):
        _want(not is_set, f"max_tokens: 0 cannot be combined with `{name}`")


def _check_sampling(request: ApiRequest, caller: Caller) -> None:
    if caller.version < STRICT_VERSION:
        return
    for name in ("temperature", "top_p", "top_k"):
        _want(getattr(request, name) is None, f"{name}: Extra inputs are not permitted")


def _check_thinking(request: ApiRequest, able: Capabilities) -> None:
    thinking = request.thinking
    if thinking is None:
        return
    mode = thinking.get("type")
    _want(mode in able.thinking_modes, f"thinking.type: {mode!r} is not supported on {able.model}")
    if mode != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int):
        raise invalid_request("thinking.enabled.budget_tokens: Field required")
    _want(
        budget >= MINIMUM_BUDGET_TOKENS,
        "thinking.enabled.budget_tokens: Input should be greater than or equal to "
        f"{MINIMUM_BUDGET_TOKENS}",
    )
    is_longer = request.max_tokens is None or request.max_tokens > budget
    _want(is_longer, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    is_free = (request.tool_choice or {}).get("type") not in FORCING
    _want(is_free, "Thinking may not be enabled when tool_choice forces tool use.")


def _check_tools(request: ApiRequest, able: Capabilities) -> None:
    names = [str(tool.get("name")) for tool in request.tools or () if "name" in tool]
    _want(len(names) == len(set(names)), "tools: Tool names must be unique.")
    _check_deferred(request, able)
    choice = request.tool_choice or {}
    kind, name = choice.get("type"), choice.get("name")
    if kind in FORCING:
        _want(able.forced_tools, f"tool_choice: forcing a tool is not supported on {able.model}")
        _want(names, "tool_choice: may only be specified while providing `tools`.")
    _want(kind != "tool" or name in names, f"Tool {name!r} not found in provided tools")


def _check_deferred(request: ApiRequest, able: Capabilities) -> None:
    """Check that the model supports deferred tools and that one tool is not deferred."""
    deferred = deferred_tools(request)
    _want(not deferred or able.tool_references, f"defer_loading: not supported on {able.model}")
    has_others = len(deferred) < len(request.tools or ())
    problem = "tools: at least one tool must have `defer_loading` set to false"
    _want(not deferred or has_others, problem)
    for index, message in enumerate(request.messages):
        for block in message.blocks():
            content = block.get("content") if block.get("type") == "tool_result" else None
            for part in content if isinstance(content, list) else ():
                name = reference_of(part)
                if name is not None and name not in deferred:
                    raise invalid_request(
                        f"messages.{index}: Tool reference {name!r} has no definition"
                    )


def _check_betas(request: ApiRequest, caller: Caller, able: Capabilities) -> None:
    if request.compaction is not None:
        _want(ON_DEMAND_BETA in caller.betas, "compaction: Extra inputs are not permitted")
        _want(able.compacts_on_demand, f"compaction: not supported on {able.model}")
        is_summary = request.compaction.get("type") == "summarize"
        _want(is_summary, "compaction.type: Input should be 'summarize'")
    if request.context_management is None:
        return
    edits = edits_of(request.context_management)
    kinds = [str(edit.get("type")) for edit in edits]
    for index, kind in enumerate(kinds):
        needed = THRESHOLD_BETA if kind == COMPACT else EDITS_BETA
        _want(needed in caller.betas, "context_management: Extra inputs are not permitted")
        path = f"context_management.edits.{index}"
        is_known = kind in (CLEAR_THINKING, CLEAR_TOOL_USES, COMPACT)
        _want(is_known, f"{path}.type: unknown edit {kind!r}")
        is_able = able.compacts_at_threshold if kind == COMPACT else able.context_management
        _want(is_able, f"{path}: not supported on {able.model}")
    path = "context_management.edits"
    _want(CLEAR_THINKING not in kinds[1:], f"{path}: `{CLEAR_THINKING}` must be listed first")
    threshold = threshold_of(request)
    if threshold is not None:
        is_late = threshold.trigger_tokens >= MINIMUM_TRIGGER_TOKENS
        least = f"the compaction trigger must be at least {MINIMUM_TRIGGER_TOKENS} input tokens"
        _want(is_late, f"{path}: {least}")


def _check_compaction(request: ApiRequest) -> None:
    choice = (request.tool_choice or {}).get("type")
    for is_set, name in (
        (request.context_management, "`context_management`"),
        (request.stop_sequences, "`stop_sequences`"),
        (request.output_format, "`output_format`"),
        ((request.output_config or {}).get("format"), "`output_config.format`"),
        (choice in FORCING, "a `tool_choice` that forces a tool"),
    ):
        _want(not is_set, f"compaction: cannot be combined with {name}.")
    blocks = [b for m in request.messages if m.role != "system" for b in m.blocks()]
    _want(
        any(b.get("type") != "compaction" or b.get("content") for b in blocks),
        "messages: there is no `user` or `assistant` content to summarize.",
        "compaction_nothing_to_summarize",
    )
    last = request.messages[-1]
    _want(
        last.role != "assistant" or not _ids(last.blocks(), "tool_use", "id"),
        "messages: the request ends on an `assistant` turn that is not finished.",
        "compaction_incomplete_turn",
    )
    _want(
        len(set(_ids(blocks, "tool_use", "name"))) <= TOOL_REFERENCES,
        "messages: the conversation references more distinct tools than a `compaction` block "
        "can record.",
        "compaction_too_many_tool_references",
    )


def _check_blocks(request: ApiRequest, caller: Caller, able: Capabilities) -> None:
    is_strict = caller.version >= STRICT_VERSION
    images = 0
    references: set[str] = set()
    for index, message in enumerate(request.messages):
        if isinstance(message.content, str):
            continue
        for inner, block in enumerate(message.content):
            path = f"messages.{index}.content.{inner}"
            kind = block.get("type")
            images += kind == "image"
            if "cache_reference" in block:
                is_wanted = CACHE_EDITS_BETA in caller.betas
                _want(is_wanted, f"{path}.cache_reference: Extra inputs are not permitted")
                references.add(str(block["cache_reference"]))
            if kind == "cache_edits":
                _check_cache_edits(block, path, message.role, caller, references)
            elif is_strict and kind == "document" and message.role == "assistant":
                raise invalid_request(
                    f"{path}: `document` blocks are not allowed in assistant messages"
                )
            elif is_strict and kind == "text" and message.role == "user" and block.get("citations"):
                raise invalid_request(f"{path}.text.citations: Extra inputs are not permitted")
    if images > able.image_limit:
        raise invalid_request(f"messages: too many images: {images} > {able.image_limit}")


def _check_cache_edits(
    block: JsonObject, path: str, role: str, caller: Caller, references: set[str]
) -> None:
    if CACHE_EDITS_BETA not in caller.betas or role != "user":
        raise invalid_request(f"{path}: Input tag 'cache_edits' found using 'type' does not match")
    for edit in block.get("edits") or ():
        _want(edit.get("type") == "delete", f"{path}.edits: Input should be 'delete'")
        name = edit.get("cache_reference")
        _want(name in references, f"{path}.edits: no `cache_reference` {name!r} before it")


def _want(is_fine: object, message: str, code: str | None = None) -> None:
    """Refuse a request unless `is_fine`. Loops over blocks use a plain `if` for speed."""
    if not is_fine:
        raise invalid_request(message, code)


def _check_conversation(
    messages: Sequence[ApiMessage], able: Capabilities, *, compacts: bool
) -> None:
    count = len(messages)
    _want(count, "messages: at least one message is required")
    _want(count <= MESSAGE_LIMIT, f"messages: at most {MESSAGE_LIMIT} messages are allowed")
    _check_roles(messages, able)
    _check_content(messages)
    _check_pairs(messages)
    if not compacts:
        _check_end(messages[-1], able)


def _check_roles(messages: Sequence[ApiMessage], able: Capabilities) -> None:
    for index, message in enumerate(messages):
        path, role = f"messages.{index}.role", message.role
        if role == "system":
            _check_system_message(messages, index, able)
        elif role not in ("user", "assistant"):
            raise invalid_request(f"{path}: Input should be 'user' or 'assistant', got {role!r}")
    opening = messages[0].blocks()
    if messages[0].role != "user" and not (opening and opening[0].get("type") == "compaction"):
        raise invalid_request('messages: first message must use the "user" role')


def _check_system_message(messages: Sequence[ApiMessage], index: int, able: Capabilities) -> None:
    path = f"messages.{index}"
    _want(able.system_messages, f"{path}.role: role 'system' is not supported on this model")
    is_after_user = index > 0 and messages[index - 1].role == "user"
    _want(is_after_user, f"{path}: a system message must follow a user turn")
    is_before_answer = all(m.role == "assistant" for m in messages[index + 1 : index + 2])
    _want(is_before_answer, f"{path}: a system message must be last or precede the assistant")


def _check_content(messages: Sequence[ApiMessage]) -> None:
    last = len(messages) - 1
    for index, message in enumerate(messages):
        if not message.content and not (index == last and message.role == "assistant"):
            raise invalid_request(
                f"messages.{index}: all messages must have non-empty content except for the "
                "optional final assistant message"
            )
        if isinstance(message.content, str) and not message.content.isspace():
            continue
        for inner, block in enumerate(message.blocks()):
            _check_block(block, index, inner)


def _check_block(block: JsonObject, index: int, inner: int) -> None:
    kind, path = block.get("type"), f"messages.{index}.content.{inner}"
    if not isinstance(kind, str):
        raise invalid_request(f"{path}.type: Field required")
    if kind == "compaction" and block.get("content") == "":
        raise invalid_request(f"{path}.compaction.content: empty string is not allowed")
    if kind == "tool_result" and not isinstance(block.get("tool_use_id"), str):
        raise invalid_request(f"{path}.tool_result.tool_use_id: Field required")
    if kind == "text":
        _check_text(block.get("text"), block, path)


def _check_text(text: object, block: JsonObject, path: str) -> None:
    if not isinstance(text, str):
        raise invalid_request(f"{path}.text.text: Field required")
    if text.isspace():
        raise invalid_request("messages: text content blocks must contain non-whitespace text")
    if not text and block.get("cache_control"):
        raise invalid_request(f"{path}.text: cache_control cannot be set for empty text blocks")
    if not text:
        raise invalid_request("messages: text content blocks must be non-empty")


def _check_pairs(messages: Sequence[ApiMessage]) -> None:
    """Check that each tool use has exactly one result, at the start of the next user turn."""
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if isinstance(message.content, str):
            continue  # plain text has neither tool calls nor results
        if message.role == "assistant":
            asked = _ids(message.blocks(), "tool_use", "id")
            repeated = [i for n, i in enumerate(asked) if i in seen or i in asked[:n]]
            _want(
                not repeated,
                f"messages.{index}: `tool_use` ids must be unique: {', '.join(repeated)}",
            )
            seen.update(asked)
            if asked:
                _check_answered(messages, index, asked)
        elif message.role == "user":
            _check_expected(messages, index)


def _check_answered(messages: Sequence[ApiMessage], index: int, asked: Sequence[str]) -> None:
    if index + 1 < len(messages) and messages[index + 1].role == "assistant":
        return  # consecutive assistant messages are one turn, and the next is checked
    answered = set(_leading_results(messages, index + 1))
    missing = [i for i in asked if i not in answered]
    if missing:
        raise invalid_request(
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
            f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
            "`tool_result` block in the next message."
        )


def _check_expected(messages: Sequence[ApiMessage], index: int) -> None:
    results = _ids(messages[index].blocks(), "tool_result", "tool_use_id")
    if not results:
        return
    asked = _list_asked_before(messages, index)
    for inner, block in enumerate(messages[index].blocks()):
        name = block.get("tool_use_id")
        if block.get("type") != "tool_result":
            continue
        if name not in asked:
            raise invalid_request(
                f"messages.{index}.content.{inner}: unexpected `tool_use_id` found in "
                f"`tool_result` blocks: {name}. Each `tool_result` block must have a corresponding "
                "`tool_use` block in the previous message."
            )
        if results.count(str(name)) > 1:
            raise invalid_request(
                f"messages.{index}.content.{inner}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {name}"
            )


def _leading_results(messages: Sequence[ApiMessage], start: int) -> list[str]:
    found: list[str] = []
    for message in messages[start:]:
        if message.role != "user":
            break
        for block in message.blocks():
            if block.get("type") != "tool_result":
                return found
            found.append(str(block.get("tool_use_id")))
    return found


def _list_asked_before(messages: Sequence[ApiMessage], index: int) -> list[str]:
    asked: list[str] = []
    cursor = index - 1
    while cursor >= 0 and messages[cursor].role == "user":
        cursor -= 1
    while cursor >= 0 and messages[cursor].role == "assistant":
        asked += _ids(messages[cursor].blocks(), "tool_use", "id")
        cursor -= 1
    return asked


def _check_end(last: ApiMessage, able: Capabilities) -> None:
    if last.role != "assistant" or not last.content:
        return
    block = last.blocks()[-1]
    if block.get("type") == "compaction":
        return  # sending a paused answer back as the last message resumes it
    _want(
        able.prefill,
        "This model does not support assistant message prefill. The conversation must end "
        "with a user message.",
    )
    is_spaced = block.get("type") == "text" and str(block["text"])[-1:].isspace()
    _want(not is_spaced, "messages: final assistant content cannot end with trailing whitespace")


def _ids(blocks: Iterable[JsonObject], kind: str, field: str) -> list[str]:
    return [str(block.get(field)) for block in blocks if block.get("type") == kind]
