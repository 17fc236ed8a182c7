"""Requests that the API refuses, with its error messages."""

import pytest

HI = [{"role": "user", "content": "hi"}]
TOOL = {"name": "Read", "input_schema": {"type": "object"}}


def user(*blocks):
    """A user message of blocks."""
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    """An assistant message of blocks."""
    return {"role": "assistant", "content": list(blocks)}


def use(name):
    """A tool call."""
    return {"type": "tool_use", "id": name, "name": "Read", "input": {}}


def result(name):
    """A tool result."""
    return {"type": "tool_result", "tool_use_id": name, "content": "ok"}


TEXT = {"type": "text", "text": "go on"}
MARK = {"type": "ephemeral"}
LONG_MARK = {"type": "ephemeral", "ttl": "1h"}

DEFERRED = TOOL | {"defer_loading": True}
REFERENCE = {"type": "tool_reference", "tool_name": "Read"}

REFUSED = {
    "only deferred tools": ({"messages": HI, "tools": [DEFERRED]}, "at least one tool must have"),
    "deferred on an old model": (
        {"messages": HI, "tools": [TOOL | {"name": "Edit"}, DEFERRED], "model": "claude-opus-4-1"},
        "defer_loading: not supported",
    ),
    "a reference to nothing": (
        {
            "messages": [*HI, assistant(use("a")), user(result("a") | {"content": [REFERENCE]})],
            "tools": [TOOL],
        },
        "Tool reference 'Read' has no definition",
    ),
    "no messages": ({"messages": []}, "at least one message is required"),
    "first role": (
        {"messages": [assistant(TEXT), user(TEXT)]},
        'messages: first message must use the "user" role',
    ),
    "unknown role": ({"messages": [{"role": "robot", "content": "hi"}]}, "messages.0.role"),
    "empty content": ({"messages": [user()]}, "messages.0: all messages must have non-empty"),
    "empty text": (
        {"messages": [user({"type": "text", "text": ""})]},
        "messages: text content blocks must be non-empty",
    ),
    "blank text": (
        {"messages": [user({"type": "text", "text": " \n"})]},
        "messages: text content blocks must contain non-whitespace text",
    ),
    "marked empty text": (
        {"messages": [user({"type": "text", "text": "", "cache_control": MARK})]},
        "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
    ),
    "prefill": (
        {"messages": [*HI, assistant(TEXT)]},
        "This model does not support assistant message prefill",
    ),
    "unanswered tool": (
        {"messages": [*HI, assistant(use("t1")), user(TEXT)]},
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1.",
    ),
    "result not first": (
        {"messages": [*HI, assistant(use("t1")), user(TEXT, result("t1"))]},
        "`tool_use` ids were found without `tool_result` blocks immediately after: t1",
    ),
    "one of two answered": (
        {"messages": [*HI, assistant(use("t1"), use("t2")), user(result("t1"))]},
        "immediately after: t2.",
    ),
    "unasked result": (
        {"messages": [user(result("t9"))]},
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t9",
    ),
    "doubled result": (
        {"messages": [*HI, assistant(use("t1")), user(result("t1"), result("t1"))]},
        "each tool_use must have a single result",
    ),
    "doubled use": (
        {"messages": [*HI, assistant(use("t1")), user(result("t1")), assistant(use("t1"))]},
        "`tool_use` ids must be unique: t1",
    ),
    "five markers": (
        {"messages": [user(*[{**TEXT, "cache_control": MARK}] * 5)]},
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "marker order": (
        {"messages": [user({**TEXT, "cache_control": MARK}, {**TEXT, "cache_control": LONG_MARK})]},
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    ),
    "automatic against another ttl": (
        {"messages": [user({**TEXT, "cache_control": LONG_MARK})], "cache_control": MARK},
        "cache_control: the last block already has a cache_control with a different ttl",
    ),
    "automatic as the fifth": (
        {"messages": [user(*[{**TEXT, "cache_control": MARK}] * 4, TEXT)], "cache_control": MARK},
        "Found 5.",
    ),
    "unknown ttl": (
        {"messages": [user({**TEXT, "cache_control": {"type": "ephemeral", "ttl": "2h"}})]},
        "cache_control.ttl: Input should be '5m' or '1h'",
    ),
    "scope without the extension": (
        {"messages": HI, "system": [{**TEXT, "cache_control": {**MARK, "scope": "global"}}]},
        "scope: Extra inputs are not permitted",
    ),
    "too much output": (
        {"messages": HI, "max_tokens": 200_000},
        "max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens",
    ),
    "no max_tokens": ({"messages": HI, "max_tokens": None}, "max_tokens: Field required"),
    "temperature": ({"messages": HI, "temperature": 1.0}, "temperature: Extra inputs"),
    "unknown field": ({"messages": HI, "colour": 1}, "colour: Extra inputs are not permitted"),
    "budgeted thinking": (
        {"messages": HI, "thinking": {"type": "enabled", "budget_tokens": 2000}},
        "thinking.type: 'enabled' is not supported on claude-opus-5",
    ),
    "no thinking off": (
        {"messages": HI, "model": "claude-fable-5", "thinking": {"type": "disabled"}},
        "thinking.type: 'disabled' is not supported",
    ),
    "small budget": (
        {
            "messages": HI,
            "model": "claude-sonnet-4-5",
            "thinking": {"type": "enabled", "budget_tokens": 100},
        },
        "greater than or equal to 1024",
    ),
    "forced tool": (
        {
            "messages": HI,
            "model": "claude-opus-5-5",
            "tools": [TOOL],
            "tool_choice": {"type": "any"},
        },
        "tool_choice: forcing a tool is not supported on claude-opus-5-5",
    ),
    "edits without the header": (
        {"messages": HI, "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
        "context_management: Extra inputs are not permitted",
    ),
    "warming with a stream": ({"messages": HI, "max_tokens": 0, "stream": True}, "`stream`"),
    "system message on an older model": (
        {"messages": [*HI, {"role": "system", "content": "x"}], "model": "claude-sonnet-4-6"},
        "role 'system' is not supported",
    ),
    "system message out of place": (
        {"messages": [*HI, {"role": "system", "content": "x"}, user(TEXT)]},
        "messages.1: a system message must be last or precede the assistant",
    ),
    "document from the assistant": (
        {"messages": [*HI, assistant({"type": "document", "source": {}}, TEXT), user(TEXT)]},
        "messages.1.content.0: `document` blocks are not allowed",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(api, name):
    body, text = REFUSED[name]
    refusal = api().refusal(**body)
    assert refusal.status == 400
    assert text in refusal.message


def test_unknown_models_are_404(api):
    assert api().refusal(messages=HI, model="granite-9").status == 404
    assert api(accepts_unknown_models=True).create(messages=HI, model="granite-9")["content"]


def test_older_versions_take_sampling_parameters(api):
    assert api().create(messages=HI, temperature=0.5, version="2023-06-01")["content"]


def test_older_models_take_a_prefill(api):
    ask = {"model": "claude-sonnet-4-5", "version": "2023-06-01"}
    assert api().create(messages=[*HI, assistant(TEXT)], **ask)["content"]
    spaced = [*HI, assistant({"type": "text", "text": "so "})]
    assert "trailing whitespace" in api().refusal(messages=spaced, **ask).message


def test_consecutive_messages_of_a_role_are_one_turn(api):
    messages = [*HI, *HI, assistant(use("t1"), use("t2")), user(result("t1")), user(result("t2"))]
    assert api().create(messages=messages)["content"]


def test_input_and_output_must_fit_on_the_oldest_models(api):
    long = [{"role": "user", "content": "a " * 190_000}]
    ask = {"messages": long, "model": "claude-sonnet-4", "version": "2023-06-01"}
    refusal = api().refusal(**ask, max_tokens=20_000)
    assert "input length and `max_tokens` exceed context limit: 1900" in refusal.message
    assert "+ 20000 > 200000, decrease input length" in refusal.message


def test_newer_models_stop_at_the_window(api):
    long = [{"role": "user", "content": "a " * 199_980}]
    made = api().create(messages=long, model="claude-haiku-4-5", max_tokens=20_000)
    assert made["stop_reason"] == "model_context_window_exceeded"
