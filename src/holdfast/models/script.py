"""The line language of scripted models. Answers are separated by `---` and consist of lines:

    think: The file is probably short.
    text: Let me look.
    tool: Read {"path": "a.py"}
    usage: input=1200 output=40 read=900 write=100
    stop: tool_use
    ---
    error: 529 retry-after=2
    ---
    text: It defines one function,
      and nothing calls it.

An indented line continues the text above it; `#` begins a comment line. `block: {json}` is any
other block, `error:` a status or one of `WORDS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from holdfast.errors import ConfigError
from holdfast.messages import Block, Json, Text, Thinking, ToolUse, Usage, block_from_wire

WORDS = ("too-long", "refused", "broken", "stalled")
"""Failures that are not a status. `too-long` may be followed by tokens needed and allowed."""

_USAGE_FIELDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "read": "cache_read_tokens",
    "write": "cache_write_tokens",
}


@dataclass(slots=True, kw_only=True)
class ScriptedAnswer:
    blocks: tuple[Block, ...] = ()
    usage: Usage | None = None
    stop_reason: str | None = None
    error: str | None = None


def read_script(script: str) -> tuple[ScriptedAnswer, ...]:
    """Read a script; a line that cannot be read raises `ConfigError` with its number."""
    answers: list[ScriptedAnswer] = []
    draft = ScriptedAnswer()
    lines = _logical_lines(script)
    for number, line in lines:
        if line == "---":
            answers.append(draft)
            draft = ScriptedAnswer()
            continue
        keyword, colon, rest = line.partition(":")
        apply = _LINES.get(keyword)
        if not colon or apply is None:
            raise _bad(number, f"{line!r} is none of {', '.join(_LINES)}")
        try:
            apply(draft, rest.strip())
        except (ValueError, msgspec.DecodeError) as error:
            raise _bad(number, str(error)) from error
    return (*answers, draft) if draft != ScriptedAnswer() else tuple(answers)


def _logical_lines(script: str) -> list[tuple[int, str]]:
    """Number the lines, leave out blank ones and comments, join indented ones to the line above."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(script.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] in " \t" and lines:
            first, text = lines[-1]
            lines[-1] = (first, f"{text}\n{line.strip()}")
        else:
            lines.append((number, line.rstrip()))
    return lines


def _bad(number: int, reason: str) -> ConfigError:
    return ConfigError(f"script line {number}: {reason}")


def _add_text(draft: ScriptedAnswer, rest: str) -> None:
    draft.blocks += (Text(text=rest),)


def _add_thinking(draft: ScriptedAnswer, rest: str) -> None:
    draft.blocks += (Thinking(thinking=rest, signature="scripted"),)


def _add_tool(draft: ScriptedAnswer, rest: str) -> None:
    name, _, written = rest.partition(" ")
    given = msgspec.json.decode(written or "{}", type=dict[str, Json])
    draft.blocks += (ToolUse(id="", name=name, input=given),)


def _add_block(draft: ScriptedAnswer, rest: str) -> None:
    draft.blocks += (block_from_wire(msgspec.json.decode(rest, type=dict[str, Json])),)


def _set_usage(draft: ScriptedAnswer, rest: str) -> None:
    counts = {}
    for pair in rest.split():
        name, _, number = pair.partition("=")
        if name not in _USAGE_FIELDS:
            raise ValueError(f"usage has no {name!r}; it has {', '.join(_USAGE_FIELDS)}")
        counts[_USAGE_FIELDS[name]] = int(number)
    draft.usage = msgspec.convert(counts, Usage)


def _set_stop(draft: ScriptedAnswer, rest: str) -> None:
    draft.stop_reason = rest


def _set_error(draft: ScriptedAnswer, rest: str) -> None:
    word = rest.split()[0] if rest else ""
    if not word.isdigit() and word not in WORDS:
        raise ValueError(f"error {rest!r} is neither a status nor one of {', '.join(WORDS)}")
    draft.error = rest


_LINES: Mapping[str, Callable[[ScriptedAnswer, str], None]] = {
    "text": _add_text,
    "think": _add_thinking,
    "tool": _add_tool,
    "block": _add_block,
    "usage": _set_usage,
    "stop": _set_stop,
    "error": _set_error,
}
