"""Messages API lists: a request, a bare list of messages, or one message per line.

Blocks are preserved completely. Other fields of a message are dropped, except id, model, stop
reason and usage. The output is a valid request if the view knows the model and the output limit.
"""

from collections.abc import Iterable, Iterator

from longhold.core.log.entries import AnyEntry, Framed, Section
from longhold.core.messages import Json, JsonObject, Text, content_from_wire, message_to_wire
from longhold.core.view import View
from longhold.session.importing.dialogue import Dialogue
from longhold.session.importing.json_records import count, document, message_list
from longhold.session.importing.provider import provider_of
from longhold.session.importing.transcript_writer import ImportAccount, TranscriptWriter

NAME = "anthropic"

_FRAME = frozenset({"system", "tools", "model", "max_tokens", "betas", "stream"})
"""Request fields that are stored elsewhere or, like streaming, are not part of a frame."""


def sniff(first: bytes) -> bool:
    return provider_of(first) == NAME


def read(lines: Iterable[bytes], writer: TranscriptWriter) -> Iterator[AnyEntry]:
    request, messages = message_list(lines, writer.account)
    dialogue = Dialogue(writer)
    yield from dialogue.begin(request, _frame(request, writer.account))
    for number, message in messages:
        content = content_from_wire(message.get("content"))
        if message.get("role") == "assistant":
            yield from dialogue.write_answer(
                content,
                model=str(message.get("model") or ""),
                stop_reason=str(message.get("stop_reason") or ""),
                usage=writer.account.usage(message.get("usage")),
                origin=str(message.get("id") or ""),
            )
        else:
            yield from dialogue.spoken(message, number, content, ("system",))


def write(view: View, **_where: str) -> Iterator[bytes]:
    return document(_request(view), (message_to_wire(message) for message in view.messages()))


def _frame(request: JsonObject, account: ImportAccount) -> Framed:
    betas = request.get("betas")
    return Framed(
        sections=_sections(request.get("system"), account),
        tools=_tools(request.get("tools"), account),
        options={key: value for key, value in request.items() if key not in _FRAME},
        betas=tuple(str(beta) for beta in betas) if isinstance(betas, list) else (),
        max_output_tokens=count(request.get("max_tokens")),
    )


def _tools(raw: Json, account: ImportAccount) -> tuple[JsonObject, ...]:
    tools = raw if isinstance(raw, list) else []
    if odd := sum(not isinstance(tool, dict) for tool in tools):
        account.repaired["tool that is not an object"] += odd
    return tuple(tool for tool in tools if isinstance(tool, dict))


def _sections(system: Json, account: ImportAccount) -> tuple[Section, ...]:
    sections = []
    for block in content_from_wire(system):
        if isinstance(block, Text):
            sections.append(Section(name="system", text=block.text))
        else:
            account.repaired["system prompt that is not text"] += 1
    return tuple(sections)


def _request(view: View) -> JsonObject:
    frame = view.frame or Framed()
    texts = [section.text for section in frame.sections]
    texts += [frame.instructions] if frame.instructions else []
    blocks = [{"type": "text", "text": text} for text in texts if text.strip()]
    fields: JsonObject = {
        "model": view.model,
        "max_tokens": frame.max_output_tokens,
        "system": blocks[0]["text"] if len(blocks) == 1 else blocks,
        "tools": list(frame.tools),
        "betas": list(frame.betas),
    }
    return {key: value for key, value in fields.items() if value} | frame.options
