"""Messages API lists: a request, the bare list of messages, or one message per line.

Blocks are already in our shape, so everything in them survives; of a message's other fields the
id, model, stop reason and usage do. Written is a request that can be sent, as far as the view
knows the model and the output limit.
"""

from collections.abc import Iterable, Iterator

from holdfast.log.entries import AnyEntry, Framed, Section, Switched
from holdfast.messages import Json, JsonObject, Text, message_to_wire
from holdfast.transcripts.dialogue import Dialogue
from holdfast.transcripts.parts import content_of
from holdfast.transcripts.provider import provider_of
from holdfast.transcripts.records import count, document, message_list
from holdfast.transcripts.writer import ImportAccount, TranscriptWriter
from holdfast.view import View

NAME = "anthropic"

_FRAME = frozenset({"system", "tools", "model", "max_tokens", "betas", "stream"})
"""Fields of a request that have a place of their own, or, like streaming, none in a frame."""


def sniff(first: bytes) -> bool:
    return provider_of(first) == NAME


def read(lines: Iterable[bytes], writer: TranscriptWriter) -> Iterator[AnyEntry]:
    request, messages = message_list(lines, writer.account)
    dialogue = Dialogue(writer)
    yield from _frame(request, writer, dialogue)
    for number, message in messages:
        yield from _message(message, number, writer.account, dialogue)


def write(view: View) -> Iterator[bytes]:
    return document(_request(view), (message_to_wire(message) for message in view.messages()))


def _frame(request: JsonObject, writer: TranscriptWriter, dialogue: Dialogue) -> Iterator[AnyEntry]:
    if not request:
        return
    betas = request.get("betas")
    yield dialogue.framed(
        _sections(request.get("system"), writer.account),
        _tools(request.get("tools"), writer.account),
        options={key: value for key, value in request.items() if key not in _FRAME},
        betas=tuple(str(beta) for beta in betas) if isinstance(betas, list) else (),
        max_output_tokens=count(request.get("max_tokens")),
    )
    model = request.get("model")
    if isinstance(model, str) and model:
        yield writer.write(Switched(model=model))


def _tools(raw: Json, account: ImportAccount) -> tuple[JsonObject, ...]:
    tools = raw if isinstance(raw, list) else []
    if odd := sum(not isinstance(tool, dict) for tool in tools):
        account.repaired["tool that is not an object"] += odd
    return tuple(tool for tool in tools if isinstance(tool, dict))


def _sections(system: Json, account: ImportAccount) -> tuple[Section, ...]:
    sections = []
    for block in content_of(system):
        if isinstance(block, Text):
            sections.append(Section(name="system", text=block.text))
        else:
            account.repaired["system prompt that is not text"] += 1
    return tuple(sections)


def _message(
    message: JsonObject, number: int, account: ImportAccount, dialogue: Dialogue
) -> Iterator[AnyEntry]:
    content = content_of(message.get("content"))
    origin = str(message.get("id") or "")
    match message.get("role"):
        case "assistant":
            yield from dialogue.replied(
                content,
                model=str(message.get("model") or ""),
                stop_reason=str(message.get("stop_reason") or ""),
                usage=account.usage(message.get("usage")),
                origin=origin,
            )
        case "user":
            yield from dialogue.said(content, origin=origin)
        case str(role):
            if role != "system":
                account.repaired[f"message of the role {role}"] += 1
            yield from dialogue.said(content, origin=origin, hidden=True)
        case _:
            account.malformed.append((number, "a message without a role"))


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
