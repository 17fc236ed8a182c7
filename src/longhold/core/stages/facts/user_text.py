"""Separate the user's own words from the text that an agent wraps around them.

Text that matches no pattern here or in `messages.wrapped` is the user's.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter

from longhold.core.messages import Content, Document, Image, Text, text_of
from longhold.core.messages.text import CUT, head_and_tail, pluralize, sentences
from longhold.core.messages.wrapped import between_tags, strip_wrapped
from longhold.core.stages.facts.facts import Via, cite
from longhold.core.stages.facts.outcome import telling_lines

FEWEST_LINES = 12
"""Fewer lines may be an example that belongs to a request."""
HEAD_LINES, TAIL_LINES = 4, 3
SMALL_LINES, GAP_LINES = 4, 2
"""If space is short: the fewest lines of a paste, and the most typed-looking lines in it."""
TELLING_CHARS = 160
LONG_LINE_CHARS = 1_500
LINE_HEAD_CHARS = 300
SPACE_SHARE = 0.08
"""A long line with fewer spaces is not prose."""
PACKED_SHARE = 0.1
"""A line that compresses to a smaller share is repetitive. Prose compresses to a third."""

_MACHINE = re.compile(
    r"\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\s*\[?\d\d:\d\d:\d\d"
    r"|.{0,40}\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE)\b"
    r"|\s*(?:at \S+\(|File \".*\", line \d+|Traceback |\w+Error:|@@ |=== \S|diff --git|\+\+\+ |--- \S)"
    r"|\S+\.\w+:\d+(?::\d+)?[: ]|[+-](?![ -])\S"
    r"|.*[;{}]\s*$|\s*[\[{\"<].*[,\]}>]\s*$"
    r"|\s*(?:def|class|import|from|return|func|const|let|var|public|private|#include|if|for|while|else|try|except)\b.*[:;(){]\s*$"
    r"|(?:\t| {4,})(?![-*+] |\d+[.)] )\S"
)
_FENCE = re.compile(r"\s*(?:```|~~~)")
WHOLE_CHARS, BRIEF_CHARS = 1_500, 480
"""A longer message is mostly pasted text. The second limit is for its brief form."""
FEWEST_ITEMS, ITEM_SHARE = 3, 0.15
"""A list of requirements has this many items, and they are this share of its lines. A pasted output
has fewer."""

_LINE = re.compile(r"^.*\S", re.MULTILINE)
_ITEM = re.compile(
    r"^[ \t]*(?:[-*+•]|\(?\d{1,4}[.):]|[A-Z]{1,4}-?\d{1,4}[.):])[ \t]+\S", re.MULTILINE
)


def without_pastes(text: str, pointer: str) -> str:
    """Shorten pasted text to its first and last lines, with any pointer to the full text."""
    lines = text.split("\n")
    return _replace_pastes(lines, [*_marks(lines)], lambda part: _shorten_lines(part, pointer))


def shorten_long(text: str, pointer: str = "") -> str:
    return head_and_tail(text, BRIEF_CHARS, pointer) if len(text) > WHOLE_CHARS else text


def tell_pastes(text: str) -> str:
    """Replace pasted text with the lines that show its outcome."""
    lines = text.split("\n")
    marks = [*_marks(lines)]
    pasted = [i for i, is_pasted in enumerate(marks) if is_pasted]
    for a, b in pairwise(pasted):
        if b - a - 1 <= GAP_LINES:
            marks[a:b] = [True] * (b - a)
    return _replace_pastes(lines, marks, _tell_lines)


def _replace_pastes(
    lines: list[str], marks: list[bool], shorten: Callable[[list[str]], list[str]]
) -> str:
    shown: list[str] = []
    for is_pasted, run in groupby(zip(marks, lines, strict=True), key=itemgetter(0)):
        part = [line for _, line in run]
        shown += shorten(part) if is_pasted else part
    return "\n".join(shown)


def _tell_lines(lines: list[str]) -> list[str]:
    if len(lines) < SMALL_LINES:
        return lines
    told = telling_lines("\n".join(lines), TELLING_CHARS)
    return [f"[{CUT} {len(lines)} pasted lines: {told} {CUT}]"]


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
        notice = f"[{CUT} {left:,} pasted lines left out{_where(pointer)} {CUT}]"
        lines = [*lines[:HEAD_LINES], notice, *lines[-TAIL_LINES:]]
    return [_head(line, pointer) for line in lines]


def _head(line: str, pointer: str) -> str:
    if len(line) <= LONG_LINE_CHARS:
        return line
    left = len(line) - LINE_HEAD_CHARS
    return f"{line[:LINE_HEAD_CHARS]} [{CUT} {left:,} characters left out{_where(pointer)} {CUT}]"


def _where(pointer: str) -> str:
    return f", all in {pointer}" if pointer else ""


_STANDING = re.compile(
    r"\b(?:always|never|from now on|going forward|don'?t|do not|make sure|must|shouldn'?t|prefer"
    r"|only|instead of|remember|every time|no need)\b",
    re.IGNORECASE,
)


def find_standing(text: str) -> str:
    """Return the sentences of a message that also apply to later work, or ""."""
    said = sentences(tell_pastes(text))
    return " ".join(s for s in said if _STANDING.search(s) and not s.endswith("?"))


def find_vital(messages: Iterable[tuple[int, str]]) -> frozenset[int]:
    """Return the numbers of the first message and of messages that list requirements."""
    return frozenset(
        n for i, (n, text) in enumerate(messages) if i == 0 or _lists_requirements(text)
    )


def _lists_requirements(text: str) -> bool:
    items, lines = len(_ITEM.findall(text)), len(_LINE.findall(text))
    return items >= max(FEWEST_ITEMS, ITEM_SHARE * lines)


def describe_left_out(messages: Sequence[int], *, can_open: bool) -> str:
    first, last = cite(messages[0]), cite(messages[-1])
    where = "; the log has them." if can_open else " for lack of space."
    return f"{pluralize(len(messages), 'message')} from {first} to {last} left out{where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    text: str
    via: Via = "message"
    images: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A report of a background task among the user's messages."""

    task: str
    about: str
    text: str


_NOTICE, _RESULT = "<task-notification>", "<result>"
_PART = re.compile(r"\s*<(command-(?:name|message|args|contents)|bash-input)>")
_COMMAND_NAME = re.compile(r"[^\s<>]+")
_INTERRUPTED = re.compile(r"^\s*\[Request interrupted by user[^\]]*\]\s*$")
_HOUSEKEEPING = frozenset({"/exit", "/quit", "/clear", "/compact", "/resume", "/model", "/ide"})
"""Commands that, without arguments, ask the model for nothing."""

_SUMMARY = re.compile(
    r"\s*(?:<summary>|This session is being continued from a previous conversation"
    r"|Another language model started to solve this problem"
    r"|The conversation history before this point was compacted)"
)

_ANSWERED = re.compile(r"User has answered your questions?:|(?=\s*\{\s*\"answers\")")
_CONTINUE = "You can now continue"
_APPROVED = re.compile(r"\A(?:User has approved your plan|The plan is approved)")


def read_typed(content: Content) -> Typed | None:
    """Return the user's own words. A command counts only if it is a whole block of the message."""
    images = sum(isinstance(block, Image | Document) for block in content)
    if is_interruption(content):
        return None
    blocks = (_read_block(block.text) for block in content if isinstance(block, Text))
    own = [typed for typed in blocks if typed and typed.text]
    if len(own) == 1:
        return replace(own[0], images=images if own[0].via == "message" else 0)
    text = "\n".join(typed.text for typed in own)
    return Typed(text=text, images=images) if text or images else None


def _read_block(text: str) -> Typed | None:
    if text.lstrip().startswith(_NOTICE):
        return None
    parts = _read_command(text)
    if (shell := parts.get("bash-input")) is not None:
        return Typed(text=shell, via="shell")
    if (command := parts.get("command-name")) is not None:
        said = parts.get("command-args", "")
        if not said and command in _HOUSEKEEPING:
            return None
        return Typed(text=f"{command} {said}".strip(), via="command")
    return Typed(text=strip_wrapped(text))


def _read_command(text: str) -> dict[str, str]:
    """Return the parts of a block that is only a command, or {}."""
    parts: dict[str, str] = {}
    place = 0
    while opening := _PART.match(text, place):
        tag, close = opening[1], f"</{opening[1]}>"
        # The contents of a command are a file, so they extend to the last closing tag.
        find = text.rfind if tag == "command-contents" else text.find
        end = find(close, opening.end())
        if end < 0 or tag in parts:
            return {}
        parts[tag], place = text[opening.end() : end].strip(), end + len(close)
    is_whole = not text[place:].strip() and _COMMAND_NAME.fullmatch(parts.get("command-name", "x"))
    return parts if is_whole else {}


def is_interruption(content: Content) -> bool:
    return bool(_INTERRUPTED.match(text_of(content)))


def is_summary(content: Content) -> bool:
    """Return whether a message is another agent's summary of earlier history."""
    return bool(_SUMMARY.match(text_of(content)))


def notices(content: Content) -> Iterator[Notice]:
    """Yield the notice in each block. The result is read last, because another agent wrote it."""
    for block in content:
        if not isinstance(block, Text) or not block.text.lstrip().startswith(_NOTICE):
            continue
        notice = between_tags("task-notification", block.text) or ""
        head = notice.partition(_RESULT)[0]
        task, about = (between_tags(tag, head) or "" for tag in ("task-id", "summary"))
        yield Notice(task=task, about=about, text=between_tags("result", notice) or "")


def reply(result: str) -> str | None:
    """Return the user's answers, or None if a result is not in a known client's format."""
    found = _ANSWERED.match(result)
    if not found:
        return None
    return result[found.end() :].partition(_CONTINUE)[0].strip().rstrip(".").strip()


def is_approval(result: str) -> bool:
    return bool(_APPROVED.match(result))
