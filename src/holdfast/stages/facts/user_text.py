"""The user's own words, separated from what a harness wraps around them.

Other agents wrap commands, shell lines, reminders and notices in tags, and put answers to questions
into tool results. The patterns for that are here and in `messages.wrapped`; what matches none of
them is the user's.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.messages import Content, Document, Image, text_of
from holdfast.messages.wrapped import LONGEST_WRAPPED_CHARS, elements, unwrapped
from holdfast.stages.facts.facts import Via


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


def typed(content: Content) -> Typed | None:
    """Return what the user typed in a message, or None."""
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
    own = unwrapped(text)
    return Typed(text=own, images=images) if own or images else None


def is_interruption(content: Content) -> bool:
    return bool(_INTERRUPTED.match(text_of(content)))


def is_summary(content: Content) -> bool:
    """True if a message is another agent's summary of what came before it."""
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
