"""Compact a list of messages in one call, for programs that need nothing else.

Without a client the summary is a digest and needs no network. System messages stay first, and the
user's unanswered message is kept. A list that would not get shorter is returned unchanged.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from longhold.core.log.entries import Compacted
from longhold.core.messages import Json, JsonObject, Usage
from longhold.core.settings import Settings
from longhold.core.stages.compact.compact import NothingToCompact
from longhold.core.stages.compact.compose import Manner
from longhold.core.stages.compact.draft import NotShorter
from longhold.core.stages.compact.owner import CompactRequest, manual_request
from longhold.core.wire.messages import SYSTEM_ROLES
from longhold.errors import ConfigError
from longhold.session.arguments import as_list, to_plain_object
from longhold.session.importing import anthropic, openai
from longhold.session.importing.provider import provider_of
from longhold.session.importing.transcript_writer import TranscriptWriter
from longhold.session.scratch_session import draft_compaction, open_scratch, take
from longhold.session.session import Session

Style: TypeAlias = Literal["anthropic", "openai"]

STYLES = {"anthropic": anthropic, "openai": openai}
ROLES: dict[Style, frozenset[str]] = {
    "anthropic": frozenset({"user", "assistant", "system"}),
    "openai": frozenset({"user", "assistant", "tool", "function"}) | {*SYSTEM_ROLES},
}
"""Any other message would be lost silently."""
WANTED = "objects with role and content"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedMessages:
    """A list of messages and how it was compacted."""

    messages: list[JsonObject]
    """To send instead, in the style of the input."""
    by: Literal["model", "digest", "nobody"]
    """Who wrote the summary; "nobody" if the list is unchanged."""
    before_tokens: int
    after_tokens: int
    survived: float = 1.0
    """The share of recently used exact names that are still in the list."""
    usage: Usage | None = None


async def compact(
    messages: Sequence[Mapping[str, object]],
    *,
    model: str = "",
    client: object = None,
    focus: str = "",
    keep: int = 0,
    style: Style | None = None,
    settings: Settings | None = None,
) -> CompactedMessages:
    """Replace the history in a list of messages with a summary.

    Args:
        messages: in the style of Anthropic's Messages API or of chat completions.
        model: the model the messages are for. It determines the window and which model is called.
        client: a client of Anthropic's or OpenAI's SDK, or a model. Without one no model is called.
        focus: what a model's summary should emphasise.
        keep: the minimum number of last messages to keep word for word.
        style: the style of the messages, if it should not be detected.
        settings: settings that replace the defaults.

    Raises:
        ContextOverflow: the part that cannot be compacted alone exceeds the window.
        ConfigError: a client was given without a model, or a message cannot be read.
    """
    if client is not None and not (model := model or str(getattr(client, "name", ""))):
        raise ConfigError("a client needs the name of the model to ask; give model=")
    given = as_list(messages, "messages", WANTED)
    plain = [to_plain_object(one, f"messages[{i}]", WANTED) for i, one in enumerate(given)]
    if not plain:
        return CompactedMessages(messages=[], by="nobody", before_tokens=0, after_tokens=0)
    style = style or _style(plain)
    _check_roles(plain, style)
    history = list(STYLES[style].read(iter([_request(plain, style)]), TranscriptWriter()))
    with open_scratch(history, settings or Settings(), client=client, model=model) as paper:
        before = paper.fullness().used_tokens
        entry = await _compact_paper(paper, keep, focus, by_model=client is not None)
        if entry is None:
            return CompactedMessages(
                messages=plain, by="nobody", before_tokens=before, after_tokens=before
            )
        return CompactedMessages(
            messages=[*filter(_is_system, plain), *_write_messages(paper, style, like=plain)],
            by="model" if entry.by == "model" else "digest",
            before_tokens=before,
            after_tokens=paper.fullness().used_tokens,
            survived=entry.survived,
            usage=entry.usage,
        )


async def _compact_paper(
    paper: Session, keep: int, focus: str, *, by_model: bool
) -> Compacted | None:
    request = _compact_request(paper, keep, focus, by_model=by_model)
    if request is None:
        return None
    try:
        return await take(paper, await draft_compaction(paper, request, Manner()), request)
    except (NothingToCompact, NotShorter):
        return None


def _compact_request(
    paper: Session, keep: int, focus: str, *, by_model: bool
) -> CompactRequest | None:
    """Choose the part to cover; None if everything is to be kept."""
    view = paper.view
    if keep <= 0:
        return manual_request(focus, by_model=by_model)
    left, at = keep, len(view.items)
    while at and left > 0:
        at -= 1
        left -= len(list(view.items[at].fragments("sent")))
    if at < 2:
        return None
    return manual_request(focus, end=view.items[at - 1].id, by_model=by_model)


def _write_messages(paper: Session, style: Style, *, like: list[JsonObject]) -> list[JsonObject]:
    request = msgspec.json.decode(b"".join(STYLES[style].write(paper.view)))
    found = [message for message in request["messages"] if not _is_system(message)]
    has_only_strings = all(isinstance(message.get("content"), str) for message in like)
    return [_flatten(message) for message in found] if has_only_strings else found


def _request(messages: list[JsonObject], style: Style) -> bytes:
    system = [message for message in messages if _is_system(message)]
    rest = [message for message in messages if not _is_system(message)]
    if style == "openai" or not system:
        return msgspec.json.encode([*system, *rest])
    texts = (text for message in system for text in _texts(message.get("content")))
    blocks = [{"type": "text", "text": text} for text in texts]
    return msgspec.json.encode({"system": blocks, "messages": rest})


def _texts(content: Json) -> Iterator[str]:
    match content:
        case str():
            yield content
        case list():
            for block in content:
                if isinstance(block, dict):
                    yield str(block.get("text", ""))


def _is_system(message: JsonObject) -> bool:
    return message.get("role") in SYSTEM_ROLES


def _style(messages: list[JsonObject]) -> Style:
    found = provider_of(msgspec.json.encode(messages))
    if found is None:
        raise ConfigError(f"these are no messages; give a list of {WANTED}")
    return found


def _check_roles(messages: list[JsonObject], style: Style) -> None:
    for at, message in enumerate(messages):
        if message.get("role") not in ROLES[style]:
            known = ", ".join(sorted(ROLES[style]))
            raise ConfigError(
                f"message {at} has the role {message.get('role')!r}; in the style of {style} "
                f"there are {known}"
            )


def _flatten(message: JsonObject) -> JsonObject:
    content = message.get("content")
    if not isinstance(content, list) or any(block.get("type") != "text" for block in content):
        return message
    return message | {"content": "\n\n".join(block["text"] for block in content)}
