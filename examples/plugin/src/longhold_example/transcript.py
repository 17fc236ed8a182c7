"""A transcript format: lines such as `User: Hello` and `Agent: Hi`. Other lines continue a
message."""

import re
from collections.abc import Iterator

from longhold.core.log.entries import AnyEntry
from longhold.core.messages import Text, text_of
from longhold.core.view import View
from longhold.session.importing.transcript_writer import TranscriptWriter

NAME = "plain"
_TURN = re.compile(r"(User|Agent): ?(.*)", re.S)


def sniff(first: bytes) -> bool:
    return first.startswith((b"User: ", b"Agent: "))


def read(lines: Iterator[bytes], writer: TranscriptWriter) -> Iterator[AnyEntry]:
    who, text = "", ""
    for line in lines:
        writer.account.count()
        decoded = line.decode("utf-8", "replace")
        if turn := _TURN.match(decoded):
            yield from _entry(who, text, writer)
            who, text = turn[1], turn[2]
        else:
            text += decoded
    yield from _entry(who, text, writer)


def _entry(who: str, text: str, writer: TranscriptWriter) -> Iterator[AnyEntry]:
    content = (Text(text=text.rstrip("\n")),)
    if who == "User":
        yield writer.write_message(content)
    elif who == "Agent":
        yield writer.write_answer(f"plain-{writer.last + 1}", content)


def write(view: View, *, session: str = "", directory: str = "") -> Iterator[bytes]:
    names = {"user": "User", "assistant": "Agent"}
    for message in view.messages():
        yield f"{names[message.role]}: {text_of(message.content)}\n".encode()
