"""A summary made from fixed patterns, for the simulator and for replays without a model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from longhold.core.request.billing.api_request import JsonObject

FIELDS: dict[str, tuple[str, ...]] = {
    "path": ("file_path", "path", "filename", "file"),
    "pattern": ("pattern", "query", "regex", "glob"),
    "command": ("command", "cmd", "script"),
    "old": ("old_string", "old_str", "old", "search"),
    "new": ("new_string", "new_str", "new", "replace"),
    "content": ("content", "file_text", "text", "contents"),
}
REMINDER = re.compile(r"<((?:system-)?reminder)>.*?</\1>", re.S)
QUOTE_CHARS = 400  # limit for each request in a summary
LINE_CHARS = 160  # limit for each tool result in a report


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsTaken:
    name: str
    input: JsonObject
    result: str
    is_error: bool


def summarise(messages: Sequence[JsonObject]) -> str:
    calls = calls_in(messages)
    requests = [words[:QUOTE_CHARS] for m in messages if (words := said_by(m, "user"))]
    answers = [words for m in messages if (words := said_by(m, "assistant"))]
    files = sorted({str(path) for done in calls if (path := field_of(done.input, "path"))})
    commands = [d for d in calls if field_of(d.input, "command")]
    edits = [d for d in calls if field_of(d.input, "old") or field_of(d.input, "content")]
    parts = [
        _section("Requests", requests),
        _section("Files", files),
        _section("Edits", [f"{subject_of(d.input)}: {last_line(d.result)}" for d in edits]),
        _section("Commands", [f"{subject_of(d.input)}: {last_line(d.result)}" for d in commands]),
        _section("Last answer", answers[-1:]),
    ]
    return "\n\n".join(part for part in parts if part) or "Nothing was said."


def _section(title: str, items: Sequence[str]) -> str:
    return "\n".join([f"## {title}", *(f"- {item}" for item in items)]) if items else ""


def said_by(message: JsonObject, role: str) -> str:
    if message["role"] != role:
        return ""
    words = [str(b["text"]) for b in message["content"] if b.get("type") == "text"]
    return REMINDER.sub("", "\n".join(words)).strip()


def calls_in(messages: Sequence[JsonObject]) -> list[StepsTaken]:
    """Pair tool calls with their results, in order. Calls without a result are omitted."""
    blocks = [block for message in messages for block in message["content"]]
    results = {b.get("tool_use_id"): b for b in blocks if b.get("type") == "tool_result"}
    return [
        StepsTaken(
            name=str(block["name"]),
            input=block["input"],
            result=_result_text(results[block["id"]].get("content")),
            is_error=bool(results[block["id"]].get("is_error")),
        )
        for block in blocks
        if block.get("type") == "tool_use" and block.get("id") in results
    ]


def _result_text(content: object) -> str:
    parts = content if isinstance(content, list) else [{"text": content or ""}]
    return REMINDER.sub("", "\n".join(str(part.get("text", "")) for part in parts))


def field_of(inputs: JsonObject, purpose: str) -> str | None:
    return next((str(inputs[name]) for name in FIELDS[purpose] if name in inputs), None)


def subject_of(inputs: JsonObject) -> str:
    for purpose in ("path", "command", "pattern"):
        if (found := field_of(inputs, purpose)) and found != ".":
            return found[:LINE_CHARS]
    return ""


def last_line(result: str) -> str:
    lines = [line.strip() for line in result.splitlines() if line.strip()]
    return lines[-1][:LINE_CHARS] if lines else "no output"
