"""The user's own words, separated from what a harness wraps around them.

Other agents wrap commands, shell lines, reminders and notices in tags, and put answers to questions
into tool results. The patterns for that are all here; what matches none of them is the user's.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.messages import Content, Document, Image, text_of
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


LONGEST_WRAPPED_CHARS = 200_000
"""A longer message is a paste; searching it for tags costs more than it finds."""

_TAG = r"(?:system-reminder|ide_opened_file|ide_selection|local-command-caveat|local-command-stdout|local-command-stderr|bash-stdout|bash-stderr|command-message|command-contents|user-prompt-submit-hook|environment_context|user_instructions)"
_WRAPPED = re.compile(rf"<({_TAG})>.*?</\1>\s*", re.DOTALL)
_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_SHELL = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_NOTICE = re.compile(r"<task-notification>(.*?)</task-notification>", re.DOTALL)
_FIELD = re.compile(r"<(task-id|status|summary|result)>(.*?)</\1>", re.DOTALL)
_INTERRUPTED = re.compile(r"^\s*\[Request interrupted by user[^\]]*\]\s*$")
_HOUSEKEEPING = frozenset({"/exit", "/quit", "/clear", "/compact", "/resume", "/model", "/ide"})
"""Commands that ask the model for nothing unless they have arguments."""

_SUMMARY = re.compile(
    r"\s*(?:<summary>|This session is being continued from a previous conversation"
    r"|Another language model started to solve this problem"
    r"|The conversation history before this point was compacted)"
)

_ANSWERED = re.compile(
    r"\AUser has answered your questions?:\s*(.*?)\s*(?:You can now continue.*)?\Z", re.DOTALL
)
_APPROVED = re.compile(r"\A(?:User has approved your plan|The plan is approved)")


def typed(content: Content) -> Typed | None:
    """Return what the user typed in a message, or None."""
    text = text_of(content)
    images = sum(isinstance(block, Image | Document) for block in content)
    if len(text) > LONGEST_WRAPPED_CHARS:
        return Typed(text=text, images=images)
    if shell := _SHELL.search(text):
        return Typed(text=shell[1].strip(), via="shell")
    if command := _COMMAND.search(text):
        arguments = _ARGUMENTS.search(text)
        said = arguments[1] if arguments else ""
        if not said and command[1] in _HOUSEKEEPING:
            return None
        return Typed(text=f"{command[1]} {said}".strip(), via="command")
    if is_interruption(content) or text.lstrip().startswith("<task-notification>"):
        return None
    own = (_WRAPPED.sub("", text) if "<" in text else text).strip()
    return Typed(text=own, images=images) if own or images else None


def is_interruption(content: Content) -> bool:
    return bool(_INTERRUPTED.match(text_of(content)))


def is_summary(content: Content) -> bool:
    """True if a message is another agent's summary of what came before it."""
    return bool(_SUMMARY.match(text_of(content)))


def notices(content: Content) -> Iterator[Notice]:
    for notice in _NOTICE.finditer(text_of(content)):
        fields = dict(_FIELD.findall(notice[1]))
        yield Notice(
            task=fields.get("task-id", "").strip(),
            state=fields.get("status", "").strip(),
            about=fields.get("summary", "").strip(),
            text=fields.get("result", "").strip(),
        )


def reply(result: str) -> str:
    found = _ANSWERED.match(result)
    return (found[1].rstrip(".") if found else result).strip()


def is_approval(result: str) -> bool:
    return bool(_APPROVED.match(result))
