"""Fingerprints: the same in one step or turn by turn, and fast if little is new."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.entries import Framed, Section
from longhold.core.messages import Message, Text
from longhold.core.models.protocol import Request
from longhold.core.request.cache.fingerprint import (
    Chain,
    Fingerprint,
    extend_chain,
    find_first_moved,
    fingerprint,
)
from longhold.core.request.markers import MarkerPlace, add_markers, last_place
from longhold.core.request.request import Caching, Wire, build, first_messages
from longhold.errors import PrefixMoved

MARK = {"type": "ephemeral"}


def message(text, role="user", **more):
    return {"role": role, "content": [{"type": "text", "text": text, **more}]}


def taken(messages, like=None, **kwargs):
    return fingerprint(Request(kwargs={"messages": messages, **kwargs}), like)


words = st.sampled_from(["a", "b", "c"])
histories = st.lists(st.lists(words, max_size=12), min_size=1, max_size=8)


@given(histories)
def test_a_chain_taken_turn_by_turn_is_the_one_taken_at_once(histories):
    wire, last = Wire(), None
    views: list[list[Message]] = [[]]
    for texts in histories:
        kept = next(
            (
                i
                for i, pair in enumerate(zip(views[-1], texts, strict=False))
                if pair[0].content[0].text != pair[1]
            ),
            min(len(views[-1]), len(texts)),
        )
        fresh = [Message("user", (Text(text=text),)) for text in texts[kept:]]
        views.append(views[-1][:kept] + fresh)
        frame = Framed(instructions="be kind")
        messages = first_messages(frame) + wire.messages(views[-1])
        caching = Caching(places=(last_place(messages),))
        request = build(frame, messages, model="m", max_output_tokens=1, caching=caching)
        last = fingerprint(request, last)
        alone = fingerprint(
            Request(kwargs=msgspec.json.decode(msgspec.json.encode(request.kwargs)))
        )
        assert last.chain.links[: last.length] == alone.chain.links
        assert last.head == alone.head
        assert (last.marked, last.markers) == (alone.marked, alone.markers)


@given(st.lists(words, max_size=12), st.lists(words, max_size=12))
def test_the_first_moved_message_is_found(before, after):
    one, other = taken([message(w) for w in before]), taken([message(w) for w in after])
    same = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b),
        min(len(before), len(after)),
    )
    assert find_first_moved(one, other) == (same if same < len(before) else None)


def test_an_older_fingerprint_stays_true_when_history_parts():
    messages = [message(w) for w in "abc"]
    first = taken(messages)
    longer = taken([*messages, message("d")], first)
    assert longer.chain is first.chain
    other = taken([messages[0], message("x"), message("y")], longer)
    assert other.chain is not first.chain
    assert first.chain.links[:3] == taken([message(w) for w in "abc"]).chain.links
    assert find_first_moved(first, other) == 1


def test_where_markers_stand_changes_no_hash():
    bare = taken(
        [message("a"), message("b")], system=[{"type": "text", "text": "s"}], tools=[{"name": "T"}]
    )
    there = taken(
        [message("a", cache_control=MARK), *add_markers([message("b")], [MarkerPlace(0, 0)], MARK)],
        system=[{"type": "text", "text": "s", "cache_control": MARK}],
        tools=[{"name": "T", "cache_control": MARK}],
    )
    assert (bare.head, bare.tools, bare.sections) == (there.head, there.tools, there.sections)
    assert there.marked == (0, 1)
    assert there.markers == (
        "tool T (5m)",
        "system block 1 (5m)",
        "the last message (5m)",
    )


def test_a_marker_is_found_again_on_a_message_that_is_the_same_object():
    first = [message("a"), message("b", cache_control=MARK)]
    before = taken(first)
    after = taken([*first, message("c"), message("d", cache_control=MARK)], before)
    assert (before.marked, after.marked) == ((1,), (1, 3))
    assert taken([*first, message("c")], after).marked == (1,)


def test_a_message_that_was_sent_with_a_marker_is_not_hashed_twice():
    messages = [message(str(i)) for i in range(50)]
    chain = extend_chain(Chain([], []), add_markers(messages, [MarkerPlace(49, 0)], MARK))
    assert extend_chain(chain, messages) is chain
    assert all(known is sent for known, sent in zip(chain.messages, messages, strict=True))


def test_a_first_message_that_is_made_anew_is_compared_by_its_words():
    rest = [message(str(i)) for i in range(20)]
    first = taken([message("be kind"), *rest])
    assert find_first_moved(first, taken([message("be kind"), *rest], first)) is None
    assert find_first_moved(first, taken([message("be terse"), *rest], first)) == 0


def test_sections_are_called_by_their_names():
    frame = Framed(sections=(Section(name="rules", text="a"), Section(name="rules", text="b")))
    request = build(frame, [], model="m", max_output_tokens=1, caching=Caching())
    assert list(fingerprint(request, names=["rules", "rules"]).sections) == ["rules", "rules (2)"]
    assert list(fingerprint(request, names=["one"]).sections) == ["block 1", "block 2"]


def test_sections_after_others_are_hashed_as_if_alone():
    texts = [["a", "b"], ["a", "b"], ["a", "c"], ["b", "a"], ["a"], ["a"]]
    names = [["x", "y"], ["x", "y"], ["x", "y"], ["x", "y"], ["x"], ["z"]]
    last = None
    for words, called in zip(texts, names, strict=True):
        system = [{"type": "text", "text": word, "cache_control": MARK} for word in words]
        request = Request(kwargs={"messages": [], "system": system})
        last = fingerprint(request, last, called)
        assert last.sections == fingerprint(request, None, called).sections


def test_what_no_cache_depends_on_is_left_out():
    one = taken([], max_tokens=1, metadata={"user": "a"}, thinking={"type": "adaptive"})
    assert list(one.options) == ["thinking"]


def test_plain_strings_are_as_good_as_blocks():
    short: Fingerprint = taken([{"role": "user", "content": "hi"}], system="be kind")
    assert list(short.sections) == ["block 1"]
    assert short.length == 1


def test_a_change_under_messages_that_stayed_is_refused_when_strict():
    known = [message(str(i)) for i in range(9)]
    before = taken(known)
    tampered = [*known[:3], message("other"), *known[4:], message("9")]
    request = Request(kwargs={"messages": tampered})
    with pytest.raises(PrefixMoved, match="message 4 changed"):
        fingerprint(request, before, is_strict=True)
    assert fingerprint(Request(kwargs={"messages": known}), before, is_strict=True).length == 9
