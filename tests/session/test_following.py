"""A session that follows a program's own list of messages."""

import asyncio
import json

import pytest

from longhold import Session
from longhold.core.log.entries import Compacted, Followed, Framed, Replied, Rewound, Said
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.settings import ClearSettings, NotesSettings, Settings, WindowSettings
from longhold.errors import InvalidArgument, RequestRejected
from seen import of, shown, texts

MODEL = "claude-opus-4-6"
SMALL = Settings(
    window=WindowSettings(limit_tokens=20_000),
    clear=ClearSettings(on=False),
    notes=NotesSettings(on=False),
)


@pytest.fixture
def opened(tmp_path):
    """Open sessions, and close them."""
    made = []

    def open(**options):
        made.append(Session.open(**{"model": MODEL, "directory": tmp_path} | options))
        return made[-1]

    yield open
    for one in made:
        one.close()


def user(text):
    return {"role": "user", "content": text}


def said(text):
    return {"role": "assistant", "content": text}


def call(id, name="Read", **given):
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": id, "name": name, "input": given}],
    }


def result(id, text):
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": text}],
    }


def answer(text, id="r1", used=100):
    return {
        "id": id,
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": used, "output_tokens": 5},
    }


def bare(messages):
    """Messages without cache marks."""
    return json.loads(json.dumps(messages).replace(', "cache_control": {"type": "ephemeral"}', ""))


async def test_only_what_is_new_is_appended(opened):
    session = opened()
    await session.follow([user("one")])
    await session.follow([user("one"), said("two"), user("three")])
    request = await session.follow([user("one"), said("two"), user("three")])
    assert [text_of(entry.content) for entry in of(session, Said)] == ["one", "three"]
    assert len(of(session, Replied)) == 1
    assert bare(request.kwargs["messages"])[0]["content"][0]["text"] == "one"
    assert texts(session) == ["one", "two", "three"]


async def test_the_same_message_in_other_clothes_is_recognised(opened):
    session = opened()
    await session.follow([user("one"), said("two"), user("three")])
    marked = {"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}
    await session.follow(
        [
            user([marked]),
            said([{"type": "text", "text": "two"}]),
            user("three"),
            said("4"),
            user("5"),
        ]
    )
    assert not of(session, Rewound)
    assert texts(session) == ["one", "two", "three", "4", "5"]


async def test_an_answer_that_was_settled_is_recognised_in_the_list(opened):
    session = opened()
    messages = [user("one")]
    await session.follow(messages)
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    reply = answer("two")
    await session.record(reply | {"content": [thought, *reply["content"]]})
    await session.follow([*messages, said("two"), user("three")])
    [entry] = of(session, Replied)
    assert entry.usage.prompt_tokens == 100
    assert not of(session, Rewound)
    assert shown(session)[1]["content"][0]["type"] == "thinking"


async def test_an_answer_that_the_caller_gave_up_leaves_the_view(opened):
    session = opened()
    await session.follow([user("one")])
    await session.record(answer("bad"))
    await session.follow([user("one")])
    await session.record(answer("good", id="r2"))
    await session.follow([user("one"), said("good"), user("next")])
    assert texts(session) == ["one", "good", "next"]
    assert [entry.reason for entry in of(session, Rewound)] == ["shorter"]


async def test_the_place_is_known_after_a_kill(opened):
    session = opened()
    messages = [user("one"), said("two"), user("three")]
    await session.follow(messages)
    await session.record(answer("four"))
    session._engine.log.close()  # as a killed process leaves it
    with Session.resume(session.id) as again:
        await again.follow([*messages, said("four"), user("five")])
        assert texts(again) == ["one", "two", "three", "four", "five"]
        assert not of(again, Rewound)


@pytest.mark.files
async def test_a_kill_in_the_middle_of_taking_a_list_in_loses_and_doubles_nothing(opened):
    for written in range(1, 7):
        session = opened()
        messages = [user("one"), call("t1"), result("t1", "a file"), said("two"), user("three")]
        await session.follow(messages)
        path = session._engine.log.path
        session._engine.log.close()
        lines = path.read_bytes().splitlines(keepends=True)
        first = next(i for i, line in enumerate(lines) if b'"said"' in line)
        path.write_bytes(b"".join(lines[: first + written]))
        with Session.resume(session.id) as again:
            await again.follow(messages)
            assert violations(again.view.messages()) == []
            assert [m["role"] for m in shown(again)] == ["user", "assistant"] * 2 + ["user"]
            assert [entry.content for entry in again.view.round_of("t1").results] == ["a file"]


async def test_open_calls_get_their_results_from_the_list_after_a_kill(opened):
    session = opened()
    await session.follow([user("go")])
    used = answer("I look.") | {"content": call("t1")["content"], "stop_reason": "tool_use"}
    await session.record(used)
    session._engine.log.close()
    with Session.resume(session.id) as again:
        await again.follow([user("go"), call("t1"), result("t1", "charged")])
        assert "charged" in str(shown(again)[-1])
        assert "ended" not in str(shown(again))


async def test_a_shorter_list_is_a_rewind(opened):
    session = opened()
    full = [user("one"), said("two"), user("three"), said("four"), user("five")]
    await session.follow(full)
    await session.follow(full[:3])
    assert texts(session) == ["one", "two", "three"]
    assert of(session, Rewound)[-1].reason == "shorter"
    await session.follow([*full[:3], said("other"), user("end")])
    assert texts(session) == ["one", "two", "three", "other", "end"]


async def test_an_edited_middle_is_followed_from_there(opened):
    session = opened()
    full = [user("one"), said("two"), user("three"), said("four"), user("five")]
    first = await session.follow(full)
    edited = [*full[:2], user("THREE"), *full[3:]]
    second = await session.follow(edited)
    assert texts(session) == ["one", "two", "THREE", "four", "five"]
    assert of(session, Rewound)[-1].reason == "edited"
    assert bare(first.kwargs["messages"])[:2] == bare(second.kwargs["messages"])[:2]


async def test_a_message_changed_in_place_is_noticed(opened):
    session = opened()
    messages = [user("go"), call("t1"), result("t1", "long " * 50), said("ok"), user("next")]
    await session.follow(messages)
    messages[2]["content"][0]["content"] = "[cleared]"
    await session.follow(messages)
    assert "long long" not in str(shown(session))
    assert violations(session.view.messages()) == []


async def test_a_list_compacted_by_its_owner_is_recognised_as_that(opened):
    session = opened()
    full = [user(f"q{i}") if i % 2 == 0 else said(f"a{i}") for i in range(21)]
    await session.follow(full)
    await session.follow([user("Summary of all that."), *full[17:], said("a21"), user("q22")])
    assert of(session, Rewound)[-1].reason == "compacted"
    assert "Summary of all that." in texts(session)[0]
    assert "q10" not in str(texts(session))
    assert any("q10" in text_of(entry.content) for entry in of(session, Said))


async def test_another_list_altogether_is_a_new_history(opened):
    session = opened()
    await session.follow([user("one"), said("two"), user("three")])
    await session.follow([user("something else")])
    assert texts(session) == ["something else"]
    assert of(session, Rewound)[-1].reason == "replaced"


async def test_what_was_decided_stays_decided(opened):
    session = opened(settings=SMALL)
    messages = []
    for n in range(14):
        messages += [
            user(f"task {n}"),
            call(f"t{n}", path="a.py"),
            result(f"t{n}", f"line {n}\n" * 300),
        ]
        await session.follow(messages)
        messages += [said(f"done {n}")]
    messages += [user("and now?")]
    await session.follow(messages)
    compactions = len(of(session, Compacted))
    assert compactions
    before = shown(session)
    await session.follow([*messages[:-1], user("or what?")])
    assert len(of(session, Compacted)) == compactions
    assert shown(session)[:-1] == before[:-1]


async def test_going_back_before_a_compaction_shows_the_messages_again(opened):
    session = opened(settings=SMALL)
    messages = []
    for n in range(10):
        messages += [user(f"task {n}"), said(f"line {n}\n" * 300)]
    await session.follow([*messages, user("go on")])
    await session.compact()
    await session.follow(messages[:3])
    assert [text.split("\n")[0] for text in texts(session)] == ["task 0", "line 0", "task 1"]


async def test_an_owner_that_shortens_what_a_summary_covers_undoes_nothing(opened):
    session = opened(settings=SMALL)
    messages = []
    for n in range(10):
        messages += [user(f"task {n}"), call(f"t{n}"), result(f"t{n}", f"line {n}\n" * 200)]
        messages += [said(f"done {n}")]
    await session.follow([*messages, user("go on")])
    await session.compact()
    messages += [user("go on"), said("on"), user("more")]
    await session.follow(messages)
    before = shown(session)
    messages[2]["content"][0]["content"] = "[cleared by its owner]"
    await session.follow(messages)
    assert shown(session) == before
    await session.follow([*messages[:-1], user("something else")])
    assert shown(session)[:-1] == before[:-1]
    session._engine.log.close()
    with Session.resume(session.id) as again:
        await again.follow([*messages[:-1], user("something else")])
        assert shown(again)[:-1] == before[:-1]


async def test_two_callers_at_once_take_turns(opened):
    session = opened()
    lists = [[user("one"), said("two"), user(f"caller {n}")] for n in range(6)]
    requests = await asyncio.gather(*(session.follow(one) for one in lists))
    for one, request in zip(lists, requests, strict=True):
        assert bare(request.kwargs["messages"])[-1]["content"][0]["text"] == one[-1]["content"]


async def test_another_system_prompt_or_other_tools_are_declared(opened):
    session = opened(system="Be kind.")
    tools = [{"name": "add", "description": "adds", "input_schema": {"type": "object"}}]
    first = await session.follow([user("one")], system="Be brief.", tools=tools)
    frames = len(of(session, Framed))
    again = await session.follow(
        [user("one"), said("2"), user("3")], system="Be brief.", tools=tools
    )
    assert len(of(session, Framed)) == frames
    assert first.kwargs["system"] == again.kwargs["system"]
    assert again.kwargs["tools"] == tools
    kept = await session.follow([user("one"), said("2"), user("3"), said("4"), user("5")])
    assert kept.kwargs["tools"] == tools


async def test_a_list_with_open_calls_is_refused_and_can_be_completed(opened):
    session = opened()
    with pytest.raises(RequestRejected, match="t1 have no result"):
        await session.follow([user("go"), call("t1")])
    await session.follow([user("go"), call("t1"), result("t1", "done")])
    assert "done" in str(shown(session)[-1])


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "the list is empty"),
        ("hello", "a str is not a list"),
        ({"role": "user"}, "a dict is not a list"),
        (None, "None is not a list"),
        ([user("a"), {"role": "robot", "content": "x"}], r"messages\[1\]: the role 'robot'"),
        ([user("")], r"messages\[0\].content: the content is empty"),
        ([user(None)], r"messages\[0\].content: None is not content"),
        ([user("a"), result("t9", "x")], r"messages\[1\]: a result answers the call 't9'"),
        ([user([{"type": "text", "text": float("nan")}])], "nan is not JSON"),
        ([user([{"type": "tool_use", "id": 3}])], "lacks required fields"),
        ([5], r"messages\[0\]: expected an object, not a int"),
    ],
)
async def test_a_list_that_cannot_be_sent_is_refused_and_leaves_nothing(opened, messages, words):
    session = opened()
    await session.follow([user("a")])
    count = len(of(session, Said))
    with pytest.raises(InvalidArgument, match=words):
        await session.follow(messages)
    assert len(of(session, Said)) == count
    assert not of(session, Rewound)
    await session.follow([user("a"), said("b"), user("c")])
    assert texts(session) == ["a", "b", "c"]


async def test_a_position_costs_a_few_bytes_for_each_message(opened):
    session = opened()
    messages = [user("one")]
    for n in range(50):
        await session.follow(messages)
        messages = [*messages, said(f"a{n}"), user(f"q{n}")]
    assert [len(entry.keys) for entry in of(session, Followed)] == [1] + [2] * 49


def join_neighbours(messages):
    """Join neighbours of one role, as frameworks do between two runs."""
    joined = []
    for message in messages:
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {"role": message["role"], "content": joined[-1]["content"] + blocks}
        else:
            joined.append({"role": message["role"], "content": list(blocks)})
    return joined


async def follow_until_compacted(session):
    """Rounds of large results, each followed by the user's next question. Return the list."""
    messages = []
    for i in range(40):
        messages.append(user(f"Question {i}."))
        await session.follow(messages)
        if of(session, Compacted):
            await session.record(answer("Done.", id=f"r{i}"))
            return [*messages, said("Done.")]
        calls = call(f"t{i}", k=i)
        used = 500 + 1500 * i
        await session.record(answer("", id=f"r{i}", used=used) | {"content": calls["content"]})
        messages += [calls, result(f"t{i}", "row " * 1500)]
    raise AssertionError("nothing was compacted")


async def test_neighbours_joined_behind_a_summary_are_no_edit(opened):
    session = opened(window=20_000)
    messages = [*await follow_until_compacted(session), user("One more.")]
    before = await session.follow(messages)
    for grouped in (join_neighbours(messages), messages, join_neighbours(messages)):
        request = await session.follow(grouped)
        assert bare(request.kwargs["messages"]) == bare(before.kwargs["messages"])
    assert not of(session, Rewound)
    await session.record(answer("yes", id="last"))
    longer = [*join_neighbours(messages), said("yes"), user("And now?")]
    assert "And now?" in json.dumps((await session.follow(longer)).kwargs["messages"])
    assert not of(session, Rewound)


async def test_a_message_joined_to_a_known_one_is_appended(opened):
    session = opened()
    messages = [user("go"), call("t1"), result("t1", "a file")]
    await session.follow(messages)
    longer = join_neighbours([*messages, user("and then?")])
    await session.follow(longer)
    assert [text_of(entry.content) for entry in of(session, Said)] == ["go", "and then?"]
    assert not of(session, Rewound)
    session.close()
    with Session.resume(session.id) as again:
        await again.follow(longer)
        await again.follow([*messages, user("and then?"), said("ok"), user("next")])
        assert texts(again)[-2:] == ["ok", "next"]
        assert not of(again, Rewound)


async def test_a_list_edited_behind_a_summary_is_followed(opened):
    """The round that begins before the edit is taken from the list again, whole."""
    session = opened(window=20_000)
    messages = [*await follow_until_compacted(session), user("One more.")]
    edited = [*messages[:5], result("t1", "other rows"), *messages[6:]]
    messages[2] = result("t0", [{"type": "text", "text": "row"}])
    for given in (edited, join_neighbours(messages)):
        request = await session.follow(given)
        assert not violations(session.view.messages())
        assert "One more." in json.dumps(request.kwargs["messages"][-1])


async def test_a_result_without_a_call_is_refused_and_the_next_list_is_followed(opened):
    session = opened()
    await session.follow([user("one")])
    with pytest.raises(InvalidArgument, match=r"messages\[1\].*no earlier call has that id"):
        await session.follow([user("one"), result("nobody", "x")])
    await session.follow([user("one"), said("two"), user("three")])
    assert texts(session) == ["one", "two", "three"]
