"""Compacts a list of messages in one call, for programs that need nothing else. Without a client
the summary is a digest and needs no network. System messages stay first, and the user's unanswered
message is kept. A list that would not get shorter is returned unchanged.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from longhold.core.log.entries import Compacted
from longhold.core.messages import JsonObject, Usage, message_to_wire
from longhold.core.settings import Settings
from longhold.core.stages.compact.compact import NothingToCompact
from longhold.core.stages.compact.compose import Manner
from longhold.core.stages.compact.draft import NotShorter
from longhold.core.stages.compact.owner import CompactRequest, manual_request
from longhold.core.wire.chat import ChatWriter
from longhold.core.wire.messages import SYSTEM_ROLES
from longhold.errors import ConfigError
from longhold.session.arguments import as_list, to_plain_object
from longhold.session.dialects import guessed_dialect
from longhold.session.program import Program, Wishes
from longhold.session.scratch_session import draft_compaction, open_scratch, take
from longhold.session.session import Session

Dialect: TypeAlias = Literal["anthropic", "openai"]

WANTED = "objects with role and content"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedMessages:
    messages: list[JsonObject]
    """The messages to send instead, in the dialect of the input."""
    by: Literal["model", "digest"] | None
    """What wrote the summary, or None if the list is unchanged."""
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
    keep_last: int = 0,
    dialect: Dialect | None = None,
    settings: Settings | None = None,
) -> CompactedMessages:
    """Replace the history in a list of messages with a summary.

    Args:
        messages: in the dialect of Anthropic's Messages API or of chat completions.
        model: the model the messages are for. It determines the window and which model is called.
        client: a client of Anthropic's or OpenAI's SDK, or a model. Without one no model is called.
        focus: the subject that a model's summary should emphasise.
        keep_last: the minimum number of last messages to keep word for word.
        dialect: the dialect of the messages, if it should not be detected.
        settings: settings that replace the defaults.

    Raises:
        ContextOverflow: even the part that cannot be compacted exceeds the window.
        ConfigError: a client was given without a model, or a message cannot be read.
    """
    if client is not None and not (model := model or str(getattr(client, "name", ""))):
        raise ConfigError("a client needs the name of the model to ask; give model=")
    given = as_list(messages, "messages", WANTED)
    plain = [to_plain_object(one, f"messages[{i}]", WANTED) for i, one in enumerate(given)]
    if not plain:
        return CompactedMessages(messages=[], by=None, before_tokens=0, after_tokens=0)
    if any("role" not in one for one in plain):
        raise ConfigError(f"these are not messages; give a list of {WANTED}")
    dialect = dialect or ("anthropic" if guessed_dialect(plain) == "anthropic" else "openai")
    ordered = sorted(plain, key=_is_system, reverse=True)
    with _open_paper(ordered, dialect, settings or Settings(), client, model) as paper:
        before = paper.fullness().used_tokens
        entry = await _compact_paper(paper, keep_last, focus, by_model=client is not None)
        if entry is None:
            return CompactedMessages(
                messages=plain, by=None, before_tokens=before, after_tokens=before
            )
        return CompactedMessages(
            messages=[*filter(_is_system, plain), *_write_messages(paper, dialect, like=plain)],
            by="model" if entry.by == "model" else "digest",
            before_tokens=before,
            after_tokens=paper.fullness().used_tokens,
            survived=entry.survived,
            usage=entry.usage,
        )


@contextmanager
def _open_paper(
    messages: list[JsonObject], dialect: Dialect, settings: Settings, client: object, model: str
) -> Iterator[Session]:
    whole = replace(settings, spill=replace(settings.spill, on=False))  # keep results whole
    with open_scratch([], whole, client=client, model=model) as paper:
        program = Program(paper._engine)
        program.configure(Wishes(dialect=dialect))
        program.follow(messages, None, None)
        yield paper


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


def _write_messages(
    paper: Session, dialect: Dialect, *, like: list[JsonObject]
) -> list[JsonObject]:
    sent = paper.view.messages()
    if dialect == "openai":
        write = ChatWriter(Counter()).message
        found = [wire for message in sent for wire in write(message)]
    else:
        found = [message_to_wire(message) for message in sent]
    has_only_strings = all(isinstance(message.get("content"), str) for message in like)
    return [_flatten(message) for message in found] if has_only_strings else found


def _is_system(message: JsonObject) -> bool:
    return message.get("role") in SYSTEM_ROLES


def _flatten(message: JsonObject) -> JsonObject:
    content = message.get("content")
    if not isinstance(content, list) or any(block.get("type") != "text" for block in content):
        return message
    return message | {"content": "\n\n".join(block["text"] for block in content)}
