"""What was queued while the agent worked, until it is known where it was delivered.

The queue is a log of its own among the records. What was `dequeue`d follows as a record of the
user's; what was `popAll`ed went back into the input line; what was `remove`d was given to the model
inside the turn, after the results that were then awaited. Some versions also write that down, as an
attachment or beside a result, others do not: the text decides, so that nothing comes twice.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.messages import Content, Json, JsonObject, Text

ABSORBED = "absorbed_mid_turn"
"""The reason given for a removal that reached the model; older versions give none."""

_NOTIFICATION = re.compile(r"\s*<[a-z]+-notification>")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedWords:
    text: str
    at: float = 0.0
    is_shown: bool = False
    """They stand in the file already."""

    @property
    def is_users(self) -> bool:
        """False for what a background task reports."""
        return not _NOTIFICATION.match(self.text)


class MessageQueue:
    def __init__(self) -> None:
        self._waiting: list[QueuedWords] = []
        self._removed: list[QueuedWords] = []

    def take(self, record: JsonObject, at: float) -> None:
        """Follow one operation."""
        content, text = record.get("content"), str(record.get("content") or "")
        match record.get("operation"):
            case "enqueue" if isinstance(content, str) and content.strip():
                self._waiting.append(QueuedWords(text=content, at=at))
            case "popAll":
                self._pop(text)
            case "remove":
                words = self._pop(text) or QueuedWords(text=text, at=at)
                is_delivered = record.get("reason", ABSORBED) == ABSORBED
                if words.text and is_delivered and not words.is_shown:
                    self._removed.append(words)

    def show(self, content: Content) -> None:
        """Notice words that stand in a record of their own."""
        shown = {block.text.strip() for block in content if isinstance(block, Text)}
        self._removed = [each for each in self._removed if each.text.strip() not in shown]
        self._waiting = [
            QueuedWords(text=each.text, at=each.at, is_shown=True)
            if each.text.strip() in shown
            else each
            for each in self._waiting
        ]

    def delivered(self) -> Iterable[QueuedWords]:
        """Return what the model was given since, and stands nowhere else."""
        words, self._removed = self._removed, []
        return words

    def left(self) -> Iterable[QueuedWords]:
        """Return what the user typed and no answer came to; commands were for the program."""
        return (
            each
            for each in (*self._removed, *self._waiting)
            if each.is_users and not each.is_shown and not each.text.lstrip().startswith("/")
        )

    def _pop(self, text: str) -> QueuedWords | None:
        """Take out what has this text, or the oldest."""
        found = next((each for each in self._waiting if not text or each.text == text), None)
        if found is not None:
            self._waiting.remove(found)
        return found


def queued_prompt(attachment: Json) -> Json:
    """Return the words of an attachment that gives the model what was queued; None for any other."""
    match attachment:
        case {"type": "queued_command", "prompt": str() | list() as prompt}:
            return prompt
    return None


def is_from_user(attachment: Json, content: Content) -> bool:
    """False for what a background task or another agent put into the queue."""
    match attachment:
        case {"origin": {"kind": str(kind)}}:
            return kind == "human"
        case {"commandMode": "task-notification"}:
            return False
    texts = (block.text for block in content if isinstance(block, Text))
    return not any(_NOTIFICATION.match(text) for text in texts)
