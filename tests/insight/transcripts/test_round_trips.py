"""Any message list, even a broken one, imports to a valid view and exports without loss."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import (
    Block,
    Document,
    Image,
    Json,
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from longhold.core.messages.rules import violations
from longhold.core.view import View, fold
from longhold.core.wire.chat import NO_PICTURE
from longhold.insight.transcripts import codex, pi
from longhold.insight.transcripts.formats import open_transcript
from longhold.session.importing.api_messages import ANTHROPIC as anthropic
from longhold.session.importing.api_messages import OPENAI as openai
from longhold.session.importing.transcript_writer import TranscriptWriter

LOSSLESS = [anthropic, codex, pi]
ALL = [*LOSSLESS, openai]


def imported(module: ModuleType, lines: Iterator[bytes] | list[bytes]) -> View:
    """Fold what a format's reader makes of these lines."""
    return fold(module.read(lines, TranscriptWriter()))


def view_of(messages: Json) -> View:
    """Fold a message list in the shape of the Messages API."""
    return imported(anthropic, [msgspec.json.encode(messages)])


names = st.sampled_from(["a", "b", "call", "detail", "id", "name", "status", "extra", "message"])
words = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = st.none() | st.booleans() | st.integers(-1000, 1000) | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
extras = st.just({}) | st.dictionaries(names, values, max_size=2)
ids = st.sampled_from(["", "t1", "t2", "t3"])
images = st.builds(
    lambda source, extra: extra | {"type": "image", "source": source},
    st.sampled_from(
        [
            {"type": "base64", "media_type": "image/png", "data": "aGk="},
            {"type": "url", "url": "https://example.com/a.png"},
            {"type": "file", "file_id": "f1"},
            {"type": "base64", "media_type": "image/png"},
            {"type": "url", "url": "data:image/png;base64,aGk="},
        ]
    ),
    extras,
)
documents = st.builds(
    lambda source, extra: extra | {"type": "document", "source": source},
    st.sampled_from(
        [
            {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
            {"type": "text", "media_type": "text/plain", "data": "hi"},
        ]
    ),
    extras,
)
texts = st.builds(lambda text, extra: extra | {"type": "text", "text": text}, words, extras)
strange = st.builds(
    lambda kind, extra: extra | {"type": kind},
    st.sampled_from(["server_thing", "text", "tool_use", "tool_result", "image", None, 3, []]),
    extras,
)
thoughts = st.builds(
    lambda text, sign, extra: extra | {"type": "thinking", "thinking": text, "signature": sign},
    words,
    words,
    extras,
) | st.builds(lambda data: {"type": "redacted_thinking", "data": data}, words)
uses = st.builds(
    lambda id, name, data, extra: (
        extra | {"type": "tool_use", "id": id, "name": name, "input": data}
    ),
    ids,
    names,
    st.dictionaries(names, values, max_size=2),
    extras.map(lambda extra: {k: v for k, v in extra.items() if k not in ("id", "name")}),
)
results = st.builds(
    lambda id, content, error, extra: (
        extra | {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": error}
    ),
    ids,
    words | st.lists(texts | images | documents | strange, max_size=3),
    st.booleans(),
    extras,
)
blocks = texts | images | documents | strange | thoughts | uses | results | words
message_lists = st.lists(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant", "user", "assistant", "system", "robot"]),
        words | st.lists(blocks, max_size=5) | values,
    ),
    max_size=8,
)


@pytest.mark.parametrize("module", ALL, ids=lambda module: module.NAME)
@given(messages=message_lists)
def test_any_message_list_folds_to_what_the_api_accepts(module: ModuleType, messages: Json):
    view = imported(module, [msgspec.json.encode(messages)])
    assert violations(view.messages()) == []


@pytest.mark.parametrize("module", LOSSLESS, ids=lambda module: module.NAME)
@given(messages=message_lists)
def test_export_and_import_again_gives_the_same_messages(module: ModuleType, messages: Json):
    view = view_of(messages)
    assert imported(module, list(module.write(view))).messages() == view.messages()


@given(messages=message_lists)
def test_openai_gives_back_all_it_can_hold(messages: Json):
    view = view_of(messages)
    again = imported(openai, list(openai.write(view)))
    assert again.messages() == [held_by_openai(message) for message in view.messages()]


@pytest.mark.parametrize("module", ALL, ids=lambda module: module.NAME)
@given(junk=st.lists(st.binary(max_size=30) | values.map(msgspec.json.encode), max_size=5))
def test_junk_is_counted_not_raised(module: ModuleType, junk: list[bytes]):
    writer = TranscriptWriter()
    view = fold(module.read([line.replace(b"\n", b"") + b"\n" for line in junk], writer))
    assert violations(view.messages()) == []


def test_recorded_transcripts_come_back_from_every_format(recorded: Path):
    with open_transcript(recorded) as transcript:
        view = fold(transcript.entries)
    for module in LOSSLESS:
        assert imported(module, list(module.write(view))).messages() == view.messages()
    held = [held_by_openai(message) for message in view.messages()]
    assert imported(openai, list(openai.write(view))).messages() == held


def held_by_openai(message: Message) -> Message:
    """Leave out of a message what chat completions have no place for."""
    kept = [b for b in message.content if not isinstance(b, Thinking | RedactedThinking)]
    calls = [b for b in kept if isinstance(b, ToolUse)]
    rest = [b for b in kept if not isinstance(b, ToolUse)]
    return Message(message.role, tuple(block_held_by_openai(b) for b in rest + calls))


def block_held_by_openai(block: Block) -> Block:
    """Put the note where a picture or a file cannot stand, and take error marks off."""
    note = Text(text=NO_PICTURE)
    match block:
        case ToolResult(content=tuple() as content):
            inner = tuple(note if isinstance(b, Image | Document) else b for b in content)
            return msgspec.structs.replace(block, content=inner, is_error=False)
        case ToolResult():
            return msgspec.structs.replace(block, is_error=False)
        case Document(source=source, extra=extra):
            return block if source["type"] == "base64" and extra is None else note
        case Image(source={"type": "url", "url": str(url)}) if url.startswith("https:"):
            return block
        case Image(source={"type": "base64", "data": _}):
            return block
        case Image():
            return note
    return block
