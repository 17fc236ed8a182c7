"""Arguments of a session: wrong ones are named immediately, and valid ones work."""

import enum
import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType

import pytest
from anthropic.types import Message, TextBlock, ToolUseBlock
from anthropic.types import Usage as SdkUsage

import longhold
from longhold import Session, Tool
from longhold.core.log.entries import Began, Ran, Said
from longhold.core.log.store import FileStore
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.settings import Settings, WindowSettings
from longhold.core.turn.repair import INTERRUPTED, MAY_HAVE_RUN, NOT_RUN
from longhold.errors import (
    InvalidArgument,
    NotInHistory,
    RequestRejected,
    SessionClosed,
    SessionNotFound,
    StoreError,
)
from seen import of

MODEL = "claude-opus-4-6"
USE = {"type": "tool_use", "id": "t1", "name": "charge_card", "input": {"usd": 5}}
TOOL = {"name": "charge_card", "description": "charges", "input_schema": {"type": "object"}}


@pytest.fixture
def session(tmp_path):
    with Session.open(model=MODEL, directory=tmp_path) as made:
        yield made


def answer(*blocks, id="r1"):
    return {
        "id": id,
        "role": "assistant",
        "model": MODEL,
        "content": list(blocks) or [{"type": "text", "text": "yes"}],
        "stop_reason": "tool_use" if blocks else "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 2},
    }


async def called(session, *ids):
    """Let the model call tools."""
    session.user("go")
    await session.prepare()
    await session.record(answer(*(USE | {"id": id} for id in ids)))


class Colour(enum.StrEnum):
    RED = "red"


class Words(str):
    def __str__(self):
        return "something else"


class Boxed(Mapping):
    def __init__(self, **inside):
        self._inside = inside

    def __getitem__(self, key):
        return self._inside[key]

    def __iter__(self):
        return iter(self._inside)

    def __len__(self):
        return len(self._inside)


TEXT = {"type": "text", "text": "hello"}


@pytest.mark.parametrize(
    "content",
    [
        "hello",
        Words("hello"),
        [TEXT],
        (TEXT,),
        [MappingProxyType(TEXT)],
        Boxed(**TEXT),
        [TextBlock(type="text", text="hello")],
        ["hello"],
        [{"type": "text", "text": Words("hello")}],
    ],
)
async def test_content_is_taken_in_every_form_it_comes_in(session, content):
    session.user(content)
    request = await session.prepare()
    [block] = request.kwargs["messages"][-1]["content"]
    assert (block["type"], block["text"]) == ("text", "hello")
    assert type(block["text"]) is str
    json.dumps(request.kwargs)


async def test_an_enum_of_text_counts_as_its_value(session):
    session.user(Colour.RED)
    assert text_of(of(session, Said)[0].content) == "red"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "content: the content is empty"),
        ("  \n", "content: the content is empty"),
        ([], "content: the content is empty"),
        (None, "content: None is not content"),
        (b"hello", "content: bytes are not JSON; decode them"),
        (5, "content: a int is not content"),
        ([5], r"content\[0\]: a int is not a block"),
        ([{"text": "x"}], r"content\[0\]: a block has no type"),
        ([{"type": "text"}], r"content\[0\]: a block of type 'text' lacks required fields"),
        ([{"type": "image", "source": "x.png"}], r"content\[0\]: a block of type 'image'"),
        ([TEXT | {"weight": float("nan")}], r"content\[0\].weight: nan is not JSON"),
        ([{"type": "custom", 5: 1}], "the key 5 is not text"),
        ([object()], r"content\[0\]: a object is not JSON"),
        ([{"type": "tool_result", "tool_use_id": "t9", "content": "x"}], "no call 't9'"),
    ],
)
async def test_content_that_no_provider_takes_is_refused_and_leaves_nothing(
    session, content, words
):
    with pytest.raises(InvalidArgument, match=words):
        session.user(content)
    assert not of(session, Said)


async def test_results_are_checked_too(session):
    await called(session, "t1")
    for output, words in [
        (None, "output: None is not a result"),
        (b"x", "output: bytes are not JSON"),
        (float("inf"), "output: inf is not JSON"),
        ([{"type": "image"}], "a block of type 'image'"),
    ]:
        with pytest.raises(InvalidArgument, match=words):
            session.tool_result("t1", output)
    with pytest.raises(InvalidArgument, match=r"id: the model made no call 't2'; .* result: t1"):
        session.tool_result("t2", "x")
    session.tool_result("t1", "")
    assert violations(session.view.messages()) == []


async def test_a_request_is_refused_while_calls_are_open(session):
    await called(session, "t1", "t2")
    session.tool_result("t1", "ok")
    with pytest.raises(RequestRejected, match="the calls t2 have no result"):
        await session.prepare()
    session.tool_result("t2", "ok")
    await session.prepare()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": ""}, "model: '' is not a model name"),
        ({"model": None}, "model: None is not a model name"),
        ({"max_tokens": "a"}, "max_tokens: 'a' is not a number of tokens"),
        ({"max_tokens": -1}, "max_tokens: -1 is not a number"),
        ({"window": 0.5}, "window: 0.5 is not a number"),
        ({"tools": {}}, "tools: a dict is not a list"),
        ({"tools": [5]}, r"tools\[0\]: expected an object"),
        ({"tools": [{"name": "x"}]}, r"tools\[0\]: give a definition with name and input_schema"),
        ({"tools": [TOOL, TOOL]}, r"tools\[1\]: a second tool is called 'charge_card'"),
        ({"tools": [Tool(TOOL, kind="magic")]}, r"tools\[0\].*kinds are read"),
        ({"system": 5}, "system: a int is not a list"),
        ({"system": [{"type": "image"}]}, r"system\[0\]: give text"),
        ({"options": {"messages": []}}, "options: the session sets messages"),
        ({"options": {"max_tokens": 5}}, "options: max_tokens is given as max_tokens="),
        ({"options": [1]}, "options: expected an object"),
        ({"id": "../x"}, "id: '../x' is not a session id"),
        ({"id": "newest"}, "id: 'newest' is not a session id"),
    ],
)
def test_opening_says_which_argument_is_wrong(tmp_path, options, words):
    with pytest.raises(InvalidArgument, match=words):
        Session.open(**{"model": MODEL, "directory": tmp_path} | options)
    assert FileStore().sessions() == []


async def test_a_system_prompt_of_blocks_is_taken(tmp_path):
    blocks = [TEXT | {"cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "brief"}]
    with Session.open(model=MODEL, system=blocks, directory=tmp_path) as session:
        session.user("hi")
        request = await session.prepare()
    assert [block["text"] for block in request.kwargs["system"]] == ["hello", "brief"]


async def test_a_closed_session_says_so(tmp_path):
    session = Session.open(model=MODEL, id="mine", directory=tmp_path)
    session.user("hi")
    session.close()
    session.close()
    for use in (
        lambda: session.user("x"),
        lambda: session.tool_result("t", "x"),
        lambda: session.retract(),
        lambda: session.switch("claude-sonnet-5-5"),
    ):
        with pytest.raises(SessionClosed, match=r"the session is closed; Session.resume\('mine'\)"):
            use()
    for call in (session.prepare(), session.record(answer()), session.follow([TEXT])):
        with pytest.raises(SessionClosed):
            await call


def test_an_id_is_the_programs_to_choose(tmp_path):
    with Session.open(model=MODEL, id="user-42", directory=tmp_path) as session:
        assert session.id == "user-42"
    with pytest.raises(StoreError, match="exists already"):
        Session.open(model=MODEL, id="user-42", directory=tmp_path)
    with Session.resume("user-42") as again:
        assert again.id == "user-42"


def test_directories_are_taken_as_text_or_as_paths(tmp_path):
    with Session.open(
        model="claude-sonnet-4-6",
        directory=str(tmp_path),
        store=FileStore(str(tmp_path / "s")),
    ) as session:
        id = session.id
    store = FileStore(tmp_path / "s")
    with Session.resume("newest", directory=tmp_path, store=store) as again:
        assert again.id == id


def test_a_window_that_is_given_again_with_settings_still_holds(tmp_path):
    given = {"window": 20_000, "settings": Settings(), "directory": tmp_path}
    session = Session.open(model=MODEL, **given)
    session.close()
    with Session.resume(session.id, **given) as again:
        assert again.fullness().window.limit_tokens == 20_000


def test_an_id_is_the_whole_id(tmp_path):
    Session.open(id="user-12", model=MODEL, directory=tmp_path).close()
    with pytest.raises(SessionNotFound, match="there is no session"):
        Session.resume("user-1")
    Session.resume("user-12").close()


def test_the_newest_session_is_never_another_directorys(tmp_path, monkeypatch):
    other, here = tmp_path / "other", tmp_path / "here"
    other.mkdir(), here.mkdir()
    Session.open(model=MODEL, directory=other).close()
    monkeypatch.chdir(here)
    with pytest.raises(SessionNotFound, match="has no session; give the id"):
        Session.resume()
    with Session.resume(directory=other) as found:
        assert found._engine.log.header.directory == str(other)


async def test_a_resumed_session_is_set_up_as_it_was(tmp_path):
    settings = Settings(window=WindowSettings(limit_tokens=32_000, auto_line="50%"))
    with Session.open(
        model=MODEL, max_tokens=1_024, settings=settings, dialect="openai", directory=tmp_path
    ) as session:
        session.user("hi")
        before = (await session.prepare()).kwargs
        lines = session.fullness().window
    with Session.resume(session.id) as again:
        assert again.fullness().window == lines
        assert (await again.prepare()).kwargs == before
        assert before["max_tokens"] == 1_024
    with Session.resume(session.id, max_tokens=99, system="Be kind.", tools=[TOOL]) as again:
        after = (await again.prepare()).kwargs
        assert after["max_tokens"] == 99
        assert after["messages"][0] == {"role": "system", "content": "Be kind."}
        assert after["tools"][0]["function"]["name"] == "charge_card"
    with Session.resume(session.id) as again:
        assert (await again.prepare()).kwargs == after


async def test_a_bad_message_can_be_taken_back(session):
    for n in range(3):
        session.user(f"question {n}")
        await session.prepare()
        await session.record(answer(id=f"r{n}"))
    session.user([{"type": "image", "source": {"type": "url", "url": "http://gone/"}}])
    session.retract()
    assert "gone" not in str(session.view.messages())
    session.retract(4)
    assert "question 1" not in str(session.view.messages())
    assert violations(session.view.messages()) == []
    assert any("question 1" in text_of(entry.content) for entry in of(session, Said))
    with pytest.raises(NotInHistory, match="there are"):
        session.retract(99)


async def test_an_answer_with_open_calls_can_be_taken_back(session):
    await called(session, "t1")
    session.retract()
    assert session.view.open_round() is None
    await session.prepare()


async def test_after_a_crash_a_tool_may_have_run(session):
    await called(session, "t1")
    session._engine.log.close()
    with Session.resume(session.id) as again:
        [ran] = of(again, Ran)
        assert ran.content == MAY_HAVE_RUN
        assert "may have run" in ran.content


async def test_after_a_crash_recorded_beginnings_tell_what_ran(session):
    await called(session, "t0")
    with session.running("t0"):
        session.tool_result("t0", "ok")
    await session.prepare()
    await session.record(answer(USE | {"id": "t1"}, USE | {"id": "t2"}, id="r2"))
    session.tool_began("t1")
    session._engine.log.close()
    with Session.resume(session.id) as again:
        assert [entry.content for entry in of(again, Ran)] == ["ok", INTERRUPTED, NOT_RUN]
        assert "may have done all of its work" in INTERRUPTED
    with pytest.raises(SessionClosed):
        session.tool_began("t1")


async def test_one_unrecorded_beginning_leaves_the_rest_unknown(session):
    await called(session, "t0")
    session.tool_result("t0", "ok")
    await session.prepare()
    await session.record(answer(USE | {"id": "t1"}, USE | {"id": "t2"}, id="r2"))
    session.tool_began("t1")
    session._engine.log.close()
    with Session.resume(session.id) as again:
        assert [entry.content for entry in of(again, Ran)] == ["ok", INTERRUPTED, MAY_HAVE_RUN]


async def test_beginning_what_was_not_called_is_an_error(session):
    with pytest.raises(InvalidArgument, match="no call 't7'"):
        session.tool_began("t7")
    assert not of(session, Began)


async def test_an_sdks_answer_can_be_settled_in_every_form(session):
    usage = SdkUsage(input_tokens=5, output_tokens=2)
    blocks = [ToolUseBlock(type="tool_use", id="t1", name="charge_card", input={})]
    whole = Message(
        id="m1",
        type="message",
        role="assistant",
        model=MODEL,
        content=blocks,
        stop_reason="tool_use",
        stop_sequence=None,
        usage=usage,
    )
    session.user("go")
    await session.prepare()
    await session.record(whole)
    session.tool_result("t1", "ok")
    await session.prepare()
    events = [
        {
            "type": "message_start",
            "message": answer(id="m2") | {"content": [], "stop_reason": None},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 3},
        },
        {"type": "message_stop"},
    ]
    await session.record(events)
    assert text_of(session.view.messages()[-1].content) == "hi"

    async def streamed():
        delta = {"index": 0, "delta": {"content": "yo"}, "finish_reason": None}
        yield {"id": "c1", "model": "m", "choices": [delta]}
        yield {
            "id": "c1",
            "model": "m",
            "choices": [delta | {"delta": {}, "finish_reason": "stop"}],
        }

    session.user("again")
    await session.prepare()
    await session.record(streamed())
    assert text_of(session.view.messages()[-1].content) == "yo"
    for nothing in ("text", 5, {}, []):
        with pytest.raises(RequestRejected, match="record got"):
            await session.record(nothing)


@pytest.mark.files
def test_the_descriptor_limit_is_an_error_of_ours(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    made = [Session.open(model=MODEL, directory=tmp_path)]
    free = os.dup(0)  # the lowest number that is free
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 6, hard))
    try:
        with pytest.raises(StoreError, match="too many files are open; close sessions"):
            while True:
                made.append(Session.open(model=MODEL, directory=tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    made[0].user("still here")
    for one in made:
        one.close()


def test_a_missing_package_is_named_with_its_extra():
    code = (
        "import sys; sys.modules['openai'] = None\n"
        "from longhold.core.models import open_model\n"
        "from longhold.errors import ConfigError\n"
        "try: open_model('gpt-6-sol', api_key='x')\n"
        "except ConfigError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs the package 'openai'" in done.stdout
    assert "[openai]'" in done.stdout


def test_the_package_shows_its_names_and_its_version():
    names = [name for name in dir(longhold) if not name.startswith("__")]
    assert names == sorted(longhold.__all__)
    assert longhold.__version__.count(".") >= 2
