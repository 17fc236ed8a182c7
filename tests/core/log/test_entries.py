"""Entries on disk, and which entries a change depends on and acts on."""

from typing import get_args

import msgspec
import pytest

from longhold.core.log.entries import (
    AnyEntry,
    Cleared,
    Collapsed,
    Compacted,
    Pinned,
    Ran,
    Replied,
    Restored,
    Said,
    Snipped,
    Spilled,
)
from longhold.core.messages import Opaque, Text, Thinking, ToolUse
from longhold.core.view.in_force import references, targets

SHAPED = [
    (Spilled(tool_use_id="a", text="", file="f", rests_on=(7,)), (7,), {"a"}),
    (Cleared(ids=("a", "b"), texts=("", "")), (), {"a", "b"}),
    (Snipped(targets=(1, 2), rests_on=(7,)), (1, 2, 7), {1, 2}),
    (Pinned(targets=(3,)), (3,), {3}),
    (Collapsed(first=1, last=4, text="", rests_on=(7,)), (1, 4, 7), {1, 4}),
    (Compacted(first=1, last=4, summary=()), (1, 4), {1, 4}),
    (Restored(compaction=5, content=(), rests_on=(7,)), (5, 7), set()),
]


@pytest.mark.parametrize(("entry", "rests_on", "acts_on"), SHAPED)
def test_what_a_shaping_entry_rests_on_and_acts_on(entry, rests_on, acts_on):
    assert references(entry) == rests_on
    assert targets(entry) == acts_on


def test_every_kind_has_a_tag_of_its_own():
    tags = [kind.__struct_config__.tag for kind in get_args(AnyEntry)]
    assert len(set(tags)) == len(tags)
    assert tags == [kind.__name__.lower() for kind in get_args(AnyEntry)]


def test_a_line_begins_with_its_kind_and_holds_no_defaults():
    entry = Said(n=3, at=1.5, content=(Text(text="hi"),))
    assert msgspec.json.encode(entry) == (
        b'{"entry":"said","n":3,"at":1.5,"content":[{"type":"text","text":"hi"}]}'
    )


def test_blocks_are_told_apart_again():
    content = (
        Text(text="a"),
        Thinking(thinking="b", signature="c"),
        ToolUse(id="d", name="e", input={"f": [1, None, {"g": 2.5}]}),
        Opaque(raw={"type": "text", "text": 5}),
    )
    entry = Replied(n=1, response_id="r", content=content)
    assert msgspec.json.decode(msgspec.json.encode(entry), type=AnyEntry) == entry


def test_a_result_is_a_string_or_blocks():
    for content in ("", "x", (), (Text(text="x"),)):
        entry = Ran(n=1, tool_use_id="a", content=content)
        assert msgspec.json.decode(msgspec.json.encode(entry), type=AnyEntry) == entry


def test_fields_a_later_minor_version_adds_do_not_stop_us():
    line = b'{"entry":"titled","n":1,"title":"x","mood":"good"}'
    assert msgspec.json.decode(line, type=AnyEntry).title == "x"


def test_entries_are_frozen():
    with pytest.raises(AttributeError):
        Said(content=()).hidden = True
