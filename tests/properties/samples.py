"""Small transcripts of every format, each kind of record once, and ways to spoil them.

A spoilt transcript has values replaced by values of another type, by values from elsewhere
in the same transcript, or by nothing at all, at any depth.
"""

import copy
import json
from typing import Any

from hypothesis import strategies as st

TIME = "2026-01-05T10:00:00.000Z"
PICTURE = {"type": "base64", "media_type": "image/png", "data": "aGk="}
USE = {"type": "tool_use", "id": "a", "name": "Read", "input": {"path": "a.py"}}
RESULT = {
    "type": "tool_result",
    "tool_use_id": "a",
    "content": [{"type": "text", "text": "body"}, {"type": "image", "source": PICTURE}],
    "is_error": True,
}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
USAGE = {
    "input_tokens": 3,
    "output_tokens": 7,
    "cache_read_input_tokens": 90,
    "cache_creation_input_tokens": 9,
    "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 5},
}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def _claude(kind: str, n: int, **fields: Any) -> dict[str, Any]:
    parent = f"u{n - 1}" if n > 1 else None
    return {"type": kind, "uuid": f"u{n}", "parentUuid": parent, "timestamp": TIME} | fields


def _users(content: Any) -> dict[str, Any]:
    return {"message": {"role": "user", "content": content}, "sessionId": "s"}


def _models(content: Any) -> dict[str, Any]:
    answer = {"id": "m1", "model": "claude-opus-4-5", "stop_reason": "tool_use", "usage": USAGE}
    return {"message": answer | {"role": "assistant", "content": content}, "sessionId": "s"}


CLAUDE_CODE = [
    _claude("user", 1, **_users("for the agent"), isSidechain=True),
    _claude("user", 2, **_users([{"type": "text", "text": "hi"}]), parentUuid=None),
    _claude("assistant", 3, **_models([THOUGHT, {"type": "text", "text": "looking"}])),
    _claude("assistant", 4, **_models([USE])),
    _claude("user", 5, **_users([RESULT])),
    _claude("attachment", 6, attachment={"type": "file", "content": "a file"}),
    _claude("user", 7, **_users("instead"), parentUuid="u1"),
    _claude(
        "system",
        8,
        subtype="microcompact_boundary",
        microcompactMetadata={"compactedToolIds": ["a"]},
    ),
    _claude("system", 9, subtype="api_error", error={"status": 529}),
    _claude(
        "system",
        10,
        subtype="compact_boundary",
        compactMetadata={
            "trigger": "auto",
            "preTokens": 160_000,
            "preservedSegment": {"headUuid": "u4", "tailUuid": "u5"},
        },
    ),
    _claude("user", 11, **_users("a summary"), isCompactSummary=True),
    _claude("user", 12, **_users("again"), parentUuid=None),
    {"type": "summary", "summary": "A title", "leafUuid": "u2"},
]


def _codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": TIME, "type": kind, "payload": payload}


def _says(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


_COUNTED = {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 3}
CODEX = [
    _codex("session_meta", id="s", timestamp=TIME, base_instructions={"text": "Be careful."}),
    _codex("turn_context", cwd="/x", model="gpt-5.5-codex"),
    _codex("response_item", **_says("user", "fix it")),
    _codex(
        "response_item",
        type="reasoning",
        summary=[{"type": "summary_text", "text": "hm"}],
        encrypted_content="c2ln",
    ),
    _codex(
        "response_item",
        type="function_call",
        call_id="a",
        name="read",
        arguments='{"path":"a.py"}',
    ),
    _codex(
        "event_msg",
        type="token_count",
        info={"last_token_usage": _COUNTED, "total_token_usage": _COUNTED},
    ),
    _codex(
        "response_item",
        type="function_call_output",
        call_id="a",
        output={"content": "body", "success": False},
    ),
    _codex("response_item", type="local_shell_call", call_id="b", action={"command": ["ls"]}),
    _codex("response_item", type="custom_tool_call", call_id="c", name="patch", input="x"),
    _codex(
        "response_item",
        type="custom_tool_call_output",
        call_id="c",
        output=[{"type": "input_image", "image_url": "data:image/png;base64,aGk="}],
    ),
    _codex("event_msg", type="thread_rolled_back", num_turns=1),
    _codex("event_msg", type="thread_name_updated", thread_name="A title"),
    _codex(
        "compacted",
        message="a summary",
        replacement_history=[_says("user", "fix it"), _says("assistant", "yes")],
    ),
    _codex("response_item", **_says("assistant", "done")),
]


def _pi(kind: str, n: int, **fields: Any) -> dict[str, Any]:
    head = {"type": kind, "id": f"{n}", "parentId": f"{n - 1}" if n > 1 else None}
    return head | {"timestamp": TIME} | fields


_PI_TALK = [
    _pi("model_change", 1, provider="x", modelId="some-model"),
    _pi("message", 2, message={"role": "user", "content": "fix it", "timestamp": 1767607200000}),
    _pi(
        "message",
        3,
        message={
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"},
                {"type": "toolCall", "id": "a", "name": "read", "arguments": {"path": "a.py"}},
            ],
            "model": "some-model",
            "usage": {"input": 3, "output": 7, "cacheRead": 90, "cacheWrite": 0},
            "stopReason": "toolUse",
        },
    ),
    _pi(
        "message",
        4,
        message={
            "role": "toolResult",
            "toolCallId": "a",
            "toolName": "read",
            "content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}],
            "isError": True,
        },
    ),
    _pi(
        "message",
        5,
        message={"role": "bashExecution", "command": "ls", "output": "a.py", "exitCode": 1},
    ),
    _pi("custom_message", 6, content="for the model", display=False),
    _pi("compaction", 7, summary="a summary", firstKeptEntryId="5", tokensBefore=9_000),
    _pi("branch_summary", 8, summary="what was tried", fromId="3"),
    _pi("message", 9, message={"role": "assistant", "content": [], "stopReason": "error"}),
    _pi("session_info", 10, name="A title"),
]
PI = [{"type": "session", "version": 3, "id": "s", "timestamp": TIME, "cwd": "/x"}, *_PI_TALK]
OLD_PI = [{"type": "session", "id": "s", "timestamp": TIME, "modelId": "m"}, *_PI_TALK]

ANTHROPIC = {
    "model": "claude-opus-4-5",
    "max_tokens": 4_096,
    "system": [{"type": "text", "text": "Be careful."}],
    "tools": [{"name": "Read", "input_schema": SCHEMA}],
    "betas": ["some-beta"],
    "thinking": {"type": "enabled", "budget_tokens": 1_024},
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "id": "m1", "content": [THOUGHT, USE], "usage": USAGE},
        {"role": "user", "content": [RESULT, {"type": "document", "source": PICTURE}]},
        {"role": "assistant", "content": "done"},
    ],
}
OPENAI = {
    "model": "gpt-5.5",
    "max_completion_tokens": 4_096,
    "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
    "messages": [
        {"role": "system", "content": "Be careful."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path":"a.py"}'},
                },
                {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "x"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "body"}]},
        {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}, "refusal": "no"},
        {"role": "function", "name": "old", "content": "body"},
    ],
}

LINES: dict[str, list[Any]] = {
    "claude-code": CLAUDE_CODE,
    "codex": CODEX,
    "pi": PI,
    "old pi": OLD_PI,
    "anthropic": [ANTHROPIC],
    "openai": [OPENAI],
}
"""Transcripts by name; the name begins with the format's."""

ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 1.5, 1e300, -(10**25), 10**25, "", " ", "a", "u1", "{", "[[]]"),
    *([], {}, [[]], [None], [{}], {"a": {"b": [1]}}, {"type": []}, {"type": "text"}, ["a", 1]),
    *({"type": "tool_use"}, {"type": "tool_result", "content": [USE]}, "user", "assistant"),
    "9999-12-31T23:59:59-23:59",
]
"""What stands where it should not."""


def _places(value: Any) -> list[tuple[Any, Any]]:
    """List every container in a value with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    found = [(value, key) for key in keys]
    for key in keys:
        if isinstance(value[key], dict | list):
            found += _places(value[key])
    return found


@st.composite
def spoilt(draw: st.DrawFn, name: str) -> list[bytes]:
    """Draw the lines of a transcript in which up to four values are not what they should be."""
    records = copy.deepcopy(LINES[name])
    for _ in range(draw(st.integers(1, 4))):
        places = _places(records)
        if not places:
            break
        container, key = draw(st.sampled_from(places))
        change = draw(st.sampled_from(["odd", "odd", "other", "gone"]))
        if change == "gone":
            del container[key]
        elif change == "odd":
            container[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
        else:
            other, there = draw(st.sampled_from(places))
            container[key] = copy.deepcopy(other[there])
    return [json.dumps(record).encode() + b"\n" for record in records]
