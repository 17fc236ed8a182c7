"""Chat completion lists: a request, a bare list, or one message per line.

On reading, leading system messages become the frame and later ones hidden messages. Old-style calls
without ids get ids. Fields that the model never reads are dropped, except the id.

On writing, content that the format does not support is omitted and counted: thinking and its
signatures, error flags of results, images and files in results, and files that are not base64
(replaced by a note). Content between the tool calls of an answer moves before them.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from longhold.core.log.entries import AnyEntry, Framed, Section
from longhold.core.messages import Content, JsonObject, block_from_wire, text_of
from longhold.core.view import View
from longhold.core.wire import chat
from longhold.core.wire.messages import SYSTEM_ROLES
from longhold.session.importing.dialogue import Dialogue
from longhold.session.importing.json_records import arguments_of, count, document, message_list
from longhold.session.importing.provider import provider_of
from longhold.session.importing.transcript_writer import ImportAccount, TranscriptWriter

NAME = "openai"

_FRAME = frozenset({"tools", "model", "max_tokens", "max_completion_tokens", "stream"})
"""Request fields that are stored elsewhere or, like streaming, are not part of a frame."""


def sniff(first: bytes) -> bool:
    return provider_of(first) == NAME


def read(lines: Iterable[bytes], writer: TranscriptWriter) -> Iterator[AnyEntry]:
    request, messages = message_list(lines, writer.account)
    sections: list[Section] = []
    first = []
    for number, message in messages:
        if message.get("role") not in SYSTEM_ROLES:
            first.append((number, message))
            break
        text = text_of(chat.decode_content(message.get("content")))
        sections.append(Section(name=message["role"], text=text))
    reader = _Reader(writer)
    yield from reader.dialogue.begin(request, _frame(request, tuple(sections)))
    for number, message in chain(first, messages):
        yield from reader.message(message, number)


def _frame(request: JsonObject, sections: tuple[Section, ...]) -> Framed:
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    tools = request.get("tools")
    return Framed(
        sections=sections,
        tools=tuple(chat.decode_tool(tool) for tool in tools) if isinstance(tools, list) else (),
        options={key: value for key, value in request.items() if key not in _FRAME},
        max_output_tokens=count(limit),
    )


class _Reader:
    def __init__(self, writer: TranscriptWriter) -> None:
        self.dialogue = Dialogue(writer)
        self._writer = writer
        self._function_call = ""
        """The id generated for the last old-style call."""

    def message(self, message: JsonObject, number: int) -> Iterator[AnyEntry]:
        match message.get("role"):
            case "assistant":
                origin = str(message.get("id") or "")
                yield from self.dialogue.write_answer(self._answer(message), origin=origin)
            case "tool":
                yield self._result(message, str(message.get("tool_call_id") or ""))
            case "function":
                yield self._result(message, self._function_call)
            case _:
                content = chat.decode_content(message.get("content"))
                yield from self.dialogue.spoken(message, number, content, SYSTEM_ROLES)

    def _answer(self, message: JsonObject) -> Content:
        parse = partial(arguments_of, account=self._writer.account)
        content = chat.decode_answer(message, parse)
        if not isinstance(function := message.get("function_call"), dict):
            return content
        self._function_call = f"function-call-{self._writer.last + 1}"
        raw = {"id": self._function_call, "function": function}
        return (*content, chat.decode_call(raw, parse) or block_from_wire(raw))

    def _result(self, message: JsonObject, tool_use_id: str) -> AnyEntry:
        result = chat.decode_result(message, tool_use_id)
        return self.dialogue.ran(result, origin=str(message.get("id") or ""))


def write(view: View, account: ImportAccount | None = None, **_where: str) -> Iterator[bytes]:
    writer = chat.ChatWriter((account or ImportAccount()).skipped)
    frame = view.frame or Framed()
    messages = (wire for message in view.messages() for wire in writer.message(message))
    return document(_request(view.model, frame), chain(_system(frame), messages))


def losses(view: View) -> Counter[str]:
    account = ImportAccount()
    deque(write(view, account), maxlen=0)
    return account.skipped


def _request(model: str, frame: Framed) -> JsonObject:
    fields: JsonObject = {
        "model": model,
        "max_completion_tokens": frame.max_output_tokens,
        "tools": [chat.write_tool(tool) for tool in frame.tools],
    }
    return {key: value for key, value in fields.items() if value} | frame.options


def _system(frame: Framed) -> Iterator[JsonObject]:
    for section in frame.sections:
        role = section.name if section.name in SYSTEM_ROLES else "system"
        yield {"role": role, "content": section.text}
    if frame.instructions:
        yield {"role": "system", "content": frame.instructions}
