"""Reads message lists of the Messages API and of chat completions, as a request or a bare list.

Leading system messages become the frame, and later system messages become hidden messages. Chat
completions have no place for thinking, error flags, images in results and files that are not
base64. The account counts the omitted parts.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from longhold.core.log.entries import AnyEntry, Framed, Section, Switched
from longhold.core.messages import (
    Content,
    Json,
    JsonObject,
    Text,
    content_from_wire,
    message_to_wire,
    text_of,
)
from longhold.core.view import View
from longhold.core.wire import chat
from longhold.core.wire.messages import SYSTEM_ROLES
from longhold.session.importing.json_records import (
    UnreadableRecord,
    check_record,
    count,
    decode_record,
)
from longhold.session.importing.transcript_writer import Dialogue, ImportAccount, TranscriptWriter

_LIST = re.compile(rb'(?<!\\)"(?:role|input_schema|function)"\s*:')
_ANTHROPIC = re.compile(rb'(?<!\\)"(?:tool_use|tool_result|thinking|input_schema)"')
_OPENAI = re.compile(
    rb'(?<!\\)"(?:tool_calls|tool_call_id|image_url|function|input_audio)"'
    rb'|(?<!\\)"role"\s*:\s*"(?:system|developer|tool)"'
)
_FRAME = frozenset(
    {"system", "tools", "model", "max_tokens", "max_completion_tokens", "betas", "stream"}
)
"""Request fields that are stored elsewhere or, like streaming, are not part of a frame."""


def provider_of(first: bytes) -> str | None:
    """Return the format of a file from its first bytes. Anthropic's keywords decide, because a
    tool's input may contain keywords of the other format.
    """
    if first.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"[", b"{") or not _LIST.search(first):
        return None
    return "openai" if _OPENAI.search(first) and not _ANTHROPIC.search(first) else "anthropic"


@dataclass(frozen=True)
class MessageLists:
    NAME: str
    decode: Callable[[JsonObject], Content]
    decode_tool: Callable[[Json], JsonObject]
    encode: Callable[[View, Counter[str]], Iterator[bytes]]

    def sniff(self, first: bytes) -> bool:
        return provider_of(first) == self.NAME

    def read(self, lines: Iterable[bytes], writer: TranscriptWriter) -> Iterator[AnyEntry]:
        request, messages = _read_document(b"".join(lines), writer.account)
        head = 0
        while head < len(messages) and messages[head][1].get("role") in SYSTEM_ROLES:
            head += 1
        frame = self._frame(request, [message for _, message in messages[:head]])
        if request or frame.sections:
            yield writer.write_frame(frame)
        if isinstance(model := request.get("model"), str) and model:
            yield writer.write(Switched(model=model))
        dialogue = Dialogue(writer)
        for number, message in messages[head:]:
            yield from self._message(message, number, dialogue, writer.account)

    def _message(
        self, message: JsonObject, number: int, dialogue: Dialogue, account: ImportAccount
    ) -> Iterator[AnyEntry]:
        role, origin = message.get("role"), str(message.get("id") or "")
        if not isinstance(role, str):
            account.malformed.append((number, "a message without a role"))
        elif role == "assistant":
            yield from dialogue.write_answer(
                self.decode(message),
                model=str(message.get("model") or ""),
                stop_reason=str(message.get("stop_reason") or ""),
                usage=account.usage(message.get("usage")),
                origin=origin,
            )
        else:
            hidden = role not in ("user", "tool")
            yield from dialogue.write_message(self.decode(message), origin=origin, hidden=hidden)

    def _frame(self, request: JsonObject, head: list[JsonObject]) -> Framed:
        system = content_from_wire(request.get("system"))
        texts = [block.text for block in system if isinstance(block, Text)]
        sections = [Section(name="system", text=text) for text in texts]
        sections += [Section(name=one["role"], text=text_of(self.decode(one))) for one in head]
        tools, betas = request.get("tools"), request.get("betas")
        return Framed(
            sections=tuple(sections),
            tools=tuple(map(self.decode_tool, tools)) if isinstance(tools, list) else (),
            options={key: value for key, value in request.items() if key not in _FRAME},
            betas=tuple(map(str, betas)) if isinstance(betas, list) else (),
            max_output_tokens=count(
                request.get("max_completion_tokens") or request.get("max_tokens")
            ),
        )

    def write(self, view: View, **_where: str) -> Iterator[bytes]:
        return self.encode(view, Counter())

    def losses(self, view: View) -> Counter[str]:
        lost: Counter[str] = Counter()
        deque(self.encode(view, lost), maxlen=0)
        return lost


def _read_document(
    text: bytes, account: ImportAccount
) -> tuple[JsonObject, list[tuple[int, JsonObject]]]:
    value = decode_record(text.removeprefix(b"\xef\xbb\xbf"), account)
    request = {"messages": value} if isinstance(value, list) else value
    if not isinstance(request, dict) or not isinstance(request.get("messages"), list):
        is_unreadable = isinstance(value, UnreadableRecord)
        account.malformed.append((1, value.reason if is_unreadable else "not a list of messages"))
        return {}, []
    messages: list[tuple[int, JsonObject]] = []
    for number, one in enumerate(request.pop("messages"), 1):
        account.count()
        messages += check_record(number, one, account)
    return request, messages


def _encode_anthropic(view: View, lost: Counter[str]) -> Iterator[bytes]:
    frame = view.frame or Framed()
    texts = [*(section.text for section in frame.sections), frame.instructions]
    blocks = [{"type": "text", "text": text} for text in texts if text.strip()]
    request = {
        "model": view.model,
        "max_tokens": frame.max_output_tokens,
        "system": blocks[0]["text"] if len(blocks) == 1 else blocks,
        "tools": list(frame.tools),
        "betas": list(frame.betas),
    }
    return _document(request, frame, map(message_to_wire, view.messages()))


def _encode_chat(view: View, lost: Counter[str]) -> Iterator[bytes]:
    frame, writer = view.frame or Framed(), chat.ChatWriter(lost)
    request = {
        "model": view.model,
        "max_completion_tokens": frame.max_output_tokens,
        "tools": [chat.write_tool(tool) for tool in frame.tools],
    }
    more = [Section(name="system", text=frame.instructions)] if frame.instructions else []
    messages: list[JsonObject] = [
        {"role": one.name if one.name in SYSTEM_ROLES else "system", "content": one.text}
        for one in (*frame.sections, *more)
    ]
    messages += (wire for message in view.messages() for wire in writer.message(message))
    return _document(request, frame, messages)


def _document(
    request: JsonObject, frame: Framed, messages: Iterable[JsonObject]
) -> Iterator[bytes]:
    given = {key: value for key, value in request.items() if value} | frame.options
    head = msgspec.json.encode(given)[:-1]
    yield head + (b',"messages":[' if given else b'"messages":[')
    separator = b"\n"
    for message in messages:
        yield separator + msgspec.json.encode(message)
        separator = b",\n"
    yield b"\n]}\n"


ANTHROPIC = MessageLists(
    "anthropic",
    lambda message: content_from_wire(message.get("content")),
    lambda tool: tool if isinstance(tool, dict) else {"type": "unknown", "value": tool},
    _encode_anthropic,
)
OPENAI = MessageLists("openai", chat.decode_message, chat.decode_tool, _encode_chat)
