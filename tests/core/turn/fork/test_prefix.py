"""What forks share with their parent, and where their breakpoints go."""

import copy
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from msgspec import structs

from longhold.core.log import Header, Log
from longhold.core.log.entries import Asked, Failed, Framed, Section, Switched
from longhold.core.messages import Message, ToolUse, Usage, content_from_wire
from longhold.core.messages.rules import violations
from longhold.core.models.protocol import Reply
from longhold.core.request.cache.fingerprint import fingerprint
from longhold.core.request.markers import MarkerPlace
from longhold.core.settings import Settings
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.prefix import STARTED, Prefix, answer_alike, join_messages
from longhold.errors import RequestRejected
from properties.strategies import sequences
from wire_checks import marked, said, upto

USER = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
ANSWER = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "tool_use", "id": "a", "name": "Read", "input": {}},
        {"type": "tool_use", "id": "b", "name": "Read", "input": {}},
    ],
}
OWN = [{"role": "user", "content": [{"type": "text", "text": "sum up"}]}]


def prefix(*messages, **fields):
    frame = Framed(sections=(Section(name="rules", text="Be brief."),), tools=({"name": "Read"},))
    given = {"frame": frame, "model": "claude-opus-5-5", "max_output_tokens": 900}
    return Prefix(messages=messages, **given | fields)


def result(id, content):
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def test_words_follow_an_answer_as_a_message_of_their_own():
    answered = {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}
    assert join_messages([USER, answered], OWN) == [USER, answered, OWN[0]]


def test_words_behind_a_user_message_become_its_further_blocks():
    before = copy.deepcopy(USER)
    one = join_messages([USER], OWN)
    assert said({"messages": one}) == [("user", ["hello", "sum up"])]
    assert before == USER


def test_without_a_conversation_there_are_only_the_words():
    assert join_messages([], OWN) == OWN


def test_a_fork_inherits_frame_model_limit_and_messages():
    kwargs = prefix(USER, max_output_tokens=12_345).build_request(OWN).kwargs
    assert (kwargs["model"], kwargs["max_tokens"]) == ("claude-opus-5-5", 12_345)
    assert kwargs["system"][0]["text"] == "Be brief."
    assert kwargs["tools"] == [{"name": "Read"}]


def test_the_marker_stands_where_the_parent_left_something():
    answered = {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}
    one = prefix(USER, answered, USER, cached_to=MarkerPlace(0, 0))
    assert marked(one.build_request(OWN).kwargs) == [(0, 0)]


def test_where_nothing_was_left_the_end_is_marked_before_the_words():
    assert marked(prefix(USER).build_request(OWN).kwargs) == [(0, 0)]


def test_with_the_cache_off_nothing_is_marked():
    off = structs.replace(prefix().frame, cached=False)
    assert "cache_control" not in str(prefix(USER, frame=off).build_request(OWN).kwargs)


def test_every_tool_use_of_an_answer_is_answered_alike():
    one, other = (
        answer_alike([USER, ANSWER, *later], STARTED)
        for later in ([], [{"role": "user", "content": [result("a", "done"), result("b", "no")]}])
    )
    assert one == other
    assert one[-1]["content"] == [result("a", STARTED), result("b", STARTED)]
    assert one[1] is ANSWER


@pytest.mark.parametrize("messages", [[], [USER], [USER, {"role": "assistant", "content": []}]])
def test_without_an_open_tool_use_there_is_nothing_to_fork_at(messages):
    with pytest.raises(RequestRejected, match="fork at the end instead"):
        answer_alike(messages, STARTED)


def test_forks_at_an_answer_differ_only_in_their_words():
    at = prefix(USER, ANSWER, cached_to=MarkerPlace(0, 0)).end_at_answer()
    one, other = (
        at.build_request([{"role": "user", "content": [{"type": "text", "text": word}]}]).kwargs
        for word in ("look here", "look there")
    )
    place = (2, 1)
    assert upto(one, place) == upto(other, place)
    assert len(one["messages"]) == 3
    assert one["messages"][2]["content"][2]["text"] == "look here"


def test_what_was_left_behind_the_answer_does_not_count_at_the_answer():
    results = {"role": "user", "content": [result("a", "done"), result("b", "no")]}
    one = prefix(USER, ANSWER, results, cached_to=MarkerPlace(2, 1))
    assert one.end_at_answer().cached_to is None
    assert prefix(
        USER, ANSWER, results, cached_to=MarkerPlace(0, 0)
    ).end_at_answer().cached_to == MarkerPlace(0, 0)


def test_a_fork_that_writes_marks_what_siblings_share_and_later_its_own_end():
    one = prefix(USER, cached_to=None)
    assert one.growing_places((), None) == (MarkerPlace(0, 0),)
    own = [*OWN, ANSWER, {"role": "user", "content": [result("a", "x")]}]
    assert one.growing_places(own, None)[-1] == MarkerPlace(2, 0)


def test_siblings_know_each_other_by_what_they_share():
    def key(one, own=OWN):
        where = one.shared_places()
        return one.shared_key(where, fingerprint(one.build_request(own, where)))

    other = {"role": "user", "content": [{"type": "text", "text": "other words"}]}
    assert key(prefix(USER)) == key(prefix(USER), [other]) != ""
    assert key(prefix(USER)) == key(prefix(USER, max_output_tokens=1))
    tools = Framed(sections=prefix().frame.sections, tools=({"name": "Write"},))
    assert key(prefix(USER)) != key(prefix(USER, frame=tools))
    assert key(prefix(USER)) != key(prefix(other))
    assert key(prefix(USER)) != key(prefix(USER, model="claude-opus-5"))
    assert prefix(USER).shared_key((), fingerprint(prefix(USER).build_request(OWN))) == ""


@given(sequences)
async def test_a_forks_bytes_are_its_parents_up_to_the_marker(entries):
    with tempfile.TemporaryDirectory() as place:
        log = Log.create(Path(place) / "a.jsonl", Header(session="a"))
        with log:
            await check_bytes(Engine(log, Settings()), entries)


async def check_bytes(engine, entries):
    for entry in entries:
        engine.record(Failed(what="x", error="") if isinstance(entry, Asked) else entry)
    engine.record(Switched(model="claude-opus-5-5"))
    engine.say("go on")
    sent = (await engine.prepare(max_output_tokens=900)).kwargs
    use = ToolUse(id="last", name="Read", input={})
    engine.record_reply(
        Reply(response_id="z", model="m", content=(use,), stop_reason="tool_use", usage=Usage())
    )
    engine.take_result("last", "done")
    one = engine.prefix()
    frozen = msgspec.json.encode(one.messages)
    kwargs = one.build_request(OWN).kwargs
    assert marked(kwargs) == marked(sent)[-1:]
    place = marked(kwargs)[-1]
    assert msgspec.json.encode(upto(kwargs, place)) == msgspec.json.encode(upto(sent, place))
    assert violations([message_of(message) for message in kwargs["messages"]]) == []
    assert msgspec.json.encode(one.messages) == frozen


def message_of(wire):
    return Message(wire["role"], content_from_wire(wire["content"]))
