"""Cache edits in requests: references, places, and unchanged objects."""

import itertools

import pytest

from longhold.core.log.entries import Cleared, Framed, Ran, Replied, Said, Snipped, Switched
from longhold.core.messages import Message, Text, ToolUse, Usage, content_from_wire
from longhold.core.request.billing.preparation import CACHE_EDITS_BETA
from longhold.core.request.request import Wire
from longhold.core.request.server_side import (
    EDITS_BETA,
    deleted_tokens,
    has_edits,
    place_edits,
    with_edits,
)
from longhold.core.view import View

TEXT = {"type": "text", "text": "on"}


def result(id):
    return {"type": "tool_result", "tool_use_id": id, "content": "x"}


def deletion(*ids):
    return {
        "type": "cache_edits",
        "edits": [{"type": "delete", "cache_reference": id} for id in ids],
    }


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def spoken(*blocks):
    return Message(role="user", content=content_from_wire(list(blocks)))


def test_the_simulator_knows_the_header():
    assert EDITS_BETA == CACHE_EDITS_BETA


@pytest.mark.parametrize(
    ("blocks", "at"),
    [
        ([result("a"), TEXT], 1),
        ([result("a"), result("b")], 2),
        ([TEXT, TEXT], 0),
    ],
)
def test_an_edit_stands_behind_the_results_and_before_the_words(blocks, at):
    content = with_edits(user(*blocks), ("z",))["content"]
    assert content[at] == deletion("z")
    assert [_bare(block) for block in content if block["type"] != "cache_edits"] == blocks


def _bare(block):
    return {key: value for key, value in block.items() if key != "cache_reference"}


def test_every_result_can_be_named():
    content = with_edits(user(result("a"), TEXT), ())["content"]
    assert content == [result("a") | {"cache_reference": "a"}, TEXT]
    plain = user(TEXT)
    assert with_edits(plain, ()) is plain


def test_what_did_not_change_is_the_same_object():
    wire = Wire()
    messages = [spoken(TEXT), spoken(result("a")), spoken(TEXT)]
    first = list(wire.messages(messages, {}))
    messages += [spoken(result("b"))]
    second = list(wire.messages(messages, {3: ("a",)}))
    assert all(a is b for a, b in zip(first, second, strict=False)) and wire.unmoved == 3
    third = list(wire.messages(messages, {}))
    assert third[3] is not second[3] and wire.unmoved == 3
    assert wire.messages(messages[:2], {}) == third[:2]


def test_what_follows_a_change_is_made_anew():
    wire = Wire()
    messages = [spoken(result(str(i))) for i in range(9)]
    before = list(wire.messages(messages, {2: ("0",)}))
    after = wire.messages(messages, {2: ("0", "1")})
    assert wire.unmoved == 2
    assert [one is other for one, other in zip(before, after, strict=True)] == [True] * 2 + [
        False
    ] * 7


def test_no_message_is_the_object_it_was_without_edits():
    wire = Wire()
    messages = [spoken(TEXT), spoken(result("a")), spoken(TEXT)]
    sent = [list(wire.messages(messages))]
    for edits in ({}, None, {}):
        sent.append(list(wire.messages(messages, edits)))
        assert wire.unmoved == 0
    for before, now in itertools.pairwise(sent):
        assert not any(one is other for one, other in zip(before, now, strict=True))


def test_a_turn_looks_at_what_is_new_only():
    looked = []

    class Counting(list):
        def __getitem__(self, at):
            if not isinstance(at, slice):
                looked.append(at)
            return super().__getitem__(at)

        def __iter__(self):
            raise AssertionError("all of it was walked over")

    wire = Wire()
    messages = Counting(spoken(result(str(i))) for i in list(range(10_000)))
    wire.messages(messages, {})
    looked.clear()
    messages.append(spoken(TEXT))
    wire.messages(messages, {})
    assert len(looked) < 40


def reads(*ids):
    """A history that reads, one round each."""
    entries = [Said(content=(Text(text="go"),))]
    for id in ids:
        use = ToolUse(id=id, name="Read", input={})
        entries += [Replied(response_id=id, content=(use,)), Ran(tool_use_id=id, content="x")]
    return entries


def view_of(*entries):
    """A view whose frame and model take edits."""
    view = View()
    able = (Switched(model="simulated/claude-opus-5", reason=""), Framed(betas=(EDITS_BETA,)))
    for n, entry in enumerate((*entries, *able), 1):
        view.apply(type(entry)(**_fields(entry) | {"n": n}))
    return view


def _fields(entry):
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


def edited(*ids, place):
    return Cleared(ids=ids, texts=("gone",) * len(ids), how="edited", place=place)


def test_edits_stand_in_the_message_they_were_first_sent_with():
    view = view_of(*reads("a", "b", "c"), edited("a", place=6), *reads("d")[1:])
    assert place_edits(view) == {6: ("a",)}
    assert view.messages()[6].content[0].tool_use_id == "c"


def test_an_edit_whose_message_is_gone_moves_to_the_next():
    view = view_of(*reads("a", "b", "c"), edited("a", place=4), Snipped(targets=(4,)))
    assert place_edits(view) == {4: ("a",)}


def test_what_is_rewritten_or_gone_is_not_deleted_as_well():
    rewritten = Cleared(ids=("a",), texts=("gone",))
    assert place_edits(view_of(*reads("a", "b", "c"), edited("a", "b", place=6), rewritten)) == {
        6: ("b",)
    }
    snipped = Snipped(targets=(2,))
    assert place_edits(view_of(*reads("a", "b", "c"), edited("a", place=6), snipped)) == {}


def test_a_session_that_did_not_latch_edits_sends_none():
    latched = Framed(betas=(EDITS_BETA,))
    assert has_edits(latched, "simulated/claude-opus-5")
    assert not has_edits(latched, "claude-opus-5")
    assert not has_edits(Framed(), "simulated/claude-opus-5")
    assert place_edits(View()) is None


def test_a_provider_without_the_figure_deleted_nothing():
    assert deleted_tokens(None) == deleted_tokens(Usage()) == 0
    assert deleted_tokens(Usage(extra={"cache_deleted_input_tokens": None})) == 0
    assert deleted_tokens(Usage(extra={"cache_deleted_input_tokens": 9})) == 9


def test_messages_of_a_view_take_edits():
    view = view_of(*reads("a", "b"), edited("a", place=4))
    sent = Wire().messages(view.messages(), place_edits(view))
    assert sent[-1]["content"] == [result("b") | {"cache_reference": "b"}, deletion("a")]
