"""A tool call written for reading: an edit as a diff, a command as a command, the rest by inputs."""

from collections.abc import Iterator
from difflib import unified_diff

import msgspec

from holdfast.messages import JsonObject, ToolUse
from holdfast.tools.describe import description_of

DIFF_LINES = 400
"""Comparing longer texts line by line takes too long; they are shown one after the other."""

_OLD_AND_NEW = (
    *(("old_string", "new_string"), ("old_str", "new_str"), ("oldText", "newText")),
    *(("old_text", "new_text"), ("old", "new"), ("search", "replace")),
)
"""What the editing tools of common agents call the two texts."""


def call_text(use: ToolUse) -> str:
    return "\n".join([f"[calls {use.name}, id {use.id}]", *_inputs(use)])


def _inputs(use: ToolUse) -> Iterator[str]:
    known = description_of(use.name)
    for key, value in use.input.items():
        if key == known.command_input and isinstance(value, str):
            yield f"$ {value}"
        elif key == "edits" and isinstance(value, list):
            for each in value:
                edit = _edit(each) if isinstance(each, dict) else None
                yield from [json_text(each)] if edit is None else edit
        elif not any(key in pair for pair in _pairs(use.input)):
            yield _input(key, value)
    yield from _edit(use.input) or ()


def _input(key: str, value: object) -> str:
    if not isinstance(value, str):
        return f"{key}: {json_text(value)}"
    return f"{key}:\n{value}" if "\n" in value else f"{key}: {value}"


def _pairs(given: JsonObject) -> list[tuple[str, str]]:
    return [
        (old, new)
        for old, new in _OLD_AND_NEW
        if isinstance(given.get(old), str) and isinstance(given.get(new), str)
    ]


def _edit(given: JsonObject) -> list[str] | None:
    """Return the lines of a diff if the input holds an old and a new text."""
    for old, new in _pairs(given):
        return _diff(str(given[old]).splitlines(), str(given[new]).splitlines())
    return None


def _diff(old: list[str], new: list[str]) -> list[str]:
    if max(len(old), len(new)) > DIFF_LINES:
        return [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    return list(unified_diff(old, new, lineterm="", n=3))[2:]


def json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()
