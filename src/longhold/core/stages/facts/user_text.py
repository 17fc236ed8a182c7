"""Separate the user's own words from the text that an agent wraps around them.

Text that matches no pattern here or in `messages.wrapped` is the user's.
"""

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from longhold.core.messages import Content, Document, Image, text_of
from longhold.core.messages.text import CUT
from longhold.core.messages.wrapped import LONGEST_WRAPPED_CHARS, elements, strip_wrapped
from longhold.core.stages.facts.facts import Via

FEWEST_LINES = 12
"""A shorter run may be an example that belongs to a request."""
HEAD_LINES, TAIL_LINES = 4, 3
LONG_LINE_CHARS = 1_500
LINE_HEAD_CHARS = 300
SPACE_SHARE = 0.08
"""A long line with fewer spaces is not prose."""
PACKED_SHARE = 0.1
"""A line that compresses below this is repetitive. Prose compresses to a third."""

_MACHINE = re.compile(
    r"\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\s*\[?\d\d:\d\d:\d\d"
    r"|.{0,40}\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE)\b"
    r"|\s*(?:at \S+\(|File \".*\", line \d+|Traceback |\w+Error:|@@ |diff --git|\+\+\+ |--- \S)"
    r"|\S+\.\w+:\d+(?::\d+)?[: ]|[+-](?![ -])\S"
    r"|.*[;{}]\s*$|\s*[\[{\"<].*[,\]}>]\s*$"
    r"|\s*(?:def|class|import|from|return|func|const|let|var|public|private|#include|if|for|while|else|try|except)\b.*[:;(){]\s*$"
    r"|(?:\t| {4,})(?![-*+] |\d+[.)] )\S"
)
_FENCE = re.compile(r"\s*(?:```|~~~)")


def without_pastes(text: str, pointer: str) -> str:
    """Shorten pastes to their first and last lines, with a pointer to the full text."""
    shown: list[str] = []
    lines = text.split("\n")
    for is_pasted, run in groupby(zip(_marks(lines), lines, strict=True), key=itemgetter(0)):
        part = [line for _, line in run]
        shown += _shorten_lines(part, pointer) if is_pasted else part
    return "\n".join(shown)


def _marks(lines: list[str]) -> Iterator[bool]:
    in_fence, before = False, ""
    for line in lines:
        is_fence = bool(_FENCE.match(line))
        is_again = bool(line.strip()) and line == before
        yield in_fence or is_fence or is_again or _is_machine(line)
        in_fence, before = in_fence ^ is_fence, line


def _is_machine(line: str) -> bool:
    if len(line) > LONG_LINE_CHARS:
        packed = len(zlib.compress(line.encode("utf-8", "replace"), 1))
        return line.count(" ") < SPACE_SHARE * len(line) or packed < PACKED_SHARE * len(line)
    return bool(_MACHINE.match(line))


def _shorten_lines(lines: list[str], pointer: str) -> list[str]:
    if len(lines) >= FEWEST_LINES:
        left = len(lines) - HEAD_LINES - TAIL_LINES
        notice = f"[{CUT} {left:,} pasted lines left out, all in {pointer} {CUT}]"
        lines = [*lines[:HEAD_LINES], notice, *lines[-TAIL_LINES:]]
    return [_head(line, pointer) for line in lines]


def _head(line: str, pointer: str) -> str:
    if len(line) <= LONG_LINE_CHARS:
        return line
    left = len(line) - LINE_HEAD_CHARS
    return f"{line[:LINE_HEAD_CHARS]} [{CUT} {left:,} characters left out, all in {pointer} {CUT}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    text: str
    via: Via = "message"
    images: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A background task's report among the user's messages."""

    task: str
    state: str
    about: str
    text: str


_NOTICE = re.compile(r"<(task-notification)>")
_FIELD = re.compile(r"<(task-id|status|summary|result)>")
_COMMAND, _ARGUMENTS, _SHELL = (
    re.compile(f"<({name})>") for name in ("command-name", "command-args", "bash-input")
)
_INTERRUPTED = re.compile(r"^\s*\[Request interrupted by user[^\]]*\]\s*$")
_HOUSEKEEPING = frozenset({"/exit", "/quit", "/clear", "/compact", "/resume", "/model", "/ide"})
"""Commands that ask the model for nothing unless they have arguments."""

_SUMMARY = re.compile(
    r"\s*(?:<summary>|This session is being continued from a previous conversation"
    r"|Another language model started to solve this problem"
    r"|The conversation history before this point was compacted)"
)

_ANSWERED = re.compile(r"User has answered your questions?:")
_CONTINUE = "You can now continue"
_APPROVED = re.compile(r"\A(?:User has approved your plan|The plan is approved)")


def _first(opening: re.Pattern[str], text: str) -> str | None:
    return next((element.text.strip() for element in elements(opening, text)), None)


def read_typed(content: Content) -> Typed | None:
    text = text_of(content)
    images = sum(isinstance(block, Image | Document) for block in content)
    if len(text) > LONGEST_WRAPPED_CHARS:
        return Typed(text=text, images=images)
    if (shell := _first(_SHELL, text)) is not None:
        return Typed(text=shell, via="shell")
    if (command := _first(_COMMAND, text)) is not None:
        said = _first(_ARGUMENTS, text) or ""
        if not said and command in _HOUSEKEEPING:
            return None
        return Typed(text=f"{command} {said}".strip(), via="command")
    if is_interruption(content) or text.lstrip().startswith("<task-notification>"):
        return None
    own = strip_wrapped(text)
    return Typed(text=own, images=images) if own or images else None


def is_interruption(content: Content) -> bool:
    return bool(_INTERRUPTED.match(text_of(content)))


def is_summary(content: Content) -> bool:
    """True if a message is another agent's summary of earlier history."""
    return bool(_SUMMARY.match(text_of(content)))


def notices(content: Content) -> Iterator[Notice]:
    for notice in elements(_NOTICE, text_of(content)):
        fields = {field.tag: field.text for field in elements(_FIELD, notice.text)}
        yield Notice(
            task=fields.get("task-id", "").strip(),
            state=fields.get("status", "").strip(),
            about=fields.get("summary", "").strip(),
            text=fields.get("result", "").strip(),
        )


def reply(result: str) -> str:
    found = _ANSWERED.match(result)
    if not found:
        return result.strip()
    return result[found.end() :].partition(_CONTINUE)[0].strip().rstrip(".").strip()


def is_approval(result: str) -> bool:
    return bool(_APPROVED.match(result))
