"""A session alone, for a program with its own loop."""

import json

import pytest

from longhold import Session
from longhold.core.log import load
from longhold.core.log.entries import Compacted, Failed, Noted, Ran, Replied, Said, Switched
from longhold.core.log.stores import default_store
from longhold.core.messages import text_of
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import ClearSettings, NotesSettings, Settings, WindowSettings, home
from longhold.core.turn.fork.asking import ForkRequest
from longhold.core.turn.pin import list_pinned
from longhold.errors import ConfigError, ModelUnavailable, PromptTooLong, RequestRejected
from seen import of

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
        made.append(Session.open(model=MODEL, system="Be kind.", directory=tmp_path, **options))
        return made[-1]

    yield open
    for one in made:
        one.close()


def answer(text="yes", id="r1", use=None, used=10):
    content = [{"type": "text", "text": text}, *([use] if use else [])]
    return {
        "id": id,
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": "tool_use" if use else "end_turn",
        "usage": {"input_tokens": used, "output_tokens": 2},
    }


USE = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.py"}}


def _call(session, n):
    use = USE | {"id": f"t{n}"}
    return answer(id=f"r{n}", use=use, used=session.fullness().used_tokens)


async def worked(session, n):
    """A turn with one tool call and a long result."""
    session.user(f"task {n}: look at module {n}")
    await session.prepare()
    await session.record(_call(session, n))
    session.tool_result(f"t{n}", f"line {n} of it\n" * 300)
    await session.prepare()
    await session.record(answer(id=f"end{n}", used=session.fullness().used_tokens))


async def test_words_are_in_the_log_before_a_request_is_made(opened):
    session = opened()
    session.user("hello")
    assert [text_of(entry.content) for entry in of(session, Said)] == ["hello"]
    request = await session.prepare()
    assert "hello" in str(request.kwargs["messages"][-1])


async def test_there_is_nothing_to_prepare_before_somebody_spoke(opened):
    with pytest.raises(RequestRejected, match=r"user\(\) or tool_result\(\)"):
        await opened().prepare()


async def test_an_answer_is_settled_once(opened):
    session = opened()
    session.user("hello")
    await session.prepare()
    await session.record(answer())
    await session.record(answer())
    assert len(of(session, Replied)) == 1


async def test_tool_results_among_a_users_blocks_are_results(opened):
    session = opened()
    session.user("hello")
    await session.prepare()
    await session.record(answer(use=USE))
    session.user(
        [
            {"type": "tool_result", "tool_use_id": "t1", "content": "print(1)"},
            {"type": "text", "text": "that is all"},
        ]
    )
    assert [entry.content for entry in of(session, Ran)] == ["print(1)"]
    assert [text_of(entry.content) for entry in of(session, Said)][-1] == "that is all"


async def test_a_resumed_session_answers_what_a_dead_process_left_open(opened, tmp_path):
    session = opened()
    session.user("hello")
    await session.prepare()
    await session.record(answer(use=USE))
    session._engine.log.close()  # as a killed process leaves it
    with Session.resume(session.id) as again:
        [ran] = of(again, Ran)
        assert ran.is_error and ran.tool_use_id == "t1"
        assert (await again.prepare()).kwargs["messages"]


async def test_a_resumed_session_takes_in_reports_that_waited(opened):
    session = opened()
    session.user("hello")
    session.close()
    session._engine.report(Failed(what="notes", error="late"))
    with Session.resume(session.id) as again:
        assert [entry.error for entry in of(again, Failed)] == ["late"]
        assert again._engine.log.take((), again._engine.record) == []


async def test_what_passes_is_waited_out_and_what_stays_is_raised(tmp_path):
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    with Session.open(model=MODEL, directory=tmp_path) as first:
        log = first._engine.log
        session = Session(first._engine, first._layers, sleep=sleep)
        await session.recover(ModelUnavailable("overloaded"))
        assert len(waited) == 1
        with pytest.raises(RequestRejected):
            await session.recover(RequestRejected("no"))
        with pytest.raises(KeyError):
            await session.recover(KeyError("not ours"))
        assert log.is_open


async def test_an_overflow_is_recovered_from_once_in_a_turn(opened):
    session = opened(settings=SMALL)
    for n in range(8):
        await worked(session, n)
    session.user("and now?")
    error = PromptTooLong("too long", needed_tokens=30_000, allowed_tokens=20_000)
    await session.recover(error)
    assert of(session, Compacted)
    with pytest.raises(PromptTooLong):
        await session.recover(error)


async def test_what_changes_the_view_is_told_in_a_line(opened):
    told = []
    session = opened(settings=SMALL, notify=told.append)
    for n in range(12):
        await worked(session, n)
    assert of(session, Compacted)
    assert any(line.startswith("compacted") for line in told)


async def test_without_a_client_nobody_is_asked(opened):
    assert opened()._ask is None
    session = opened(client=ScriptedModel("text: a summary", name=MODEL))
    session.user("hello")
    reply = await session._ask(ForkRequest(say="Sum up.", source="notes", is_wanted=True))
    assert reply.text == "a summary"


def test_a_client_that_cannot_be_used_is_refused_before_a_log_is_made(tmp_path):
    with pytest.raises(ConfigError, match="the anthropic or openai SDK"):
        Session.open(model=MODEL, directory=tmp_path, client=object())


async def test_notes_are_kept_after_answers(opened):
    session = opened(settings=Settings(notes=NotesSettings(first_tokens=1)))
    session.user("hello " * 50)
    await session.prepare()
    await session.record(answer())
    await session._layers.notes.wait()
    assert of(session, Noted)


async def test_undo_and_redo_say_what_they_did(opened):
    session = opened(settings=SMALL)
    for n in range(4):
        await worked(session, n)
    before = session.view.messages()
    entry = await session.compact("the tasks")
    assert session.view.messages() != before
    assert f"#{entry.n}" in session.undo()
    assert session.view.messages() == before
    assert f"#{entry.n}" in session.redo()


def test_another_model_answers_from_here_on(opened):
    session = opened()
    full = session.switch("claude-sonnet-5-5", "cheaper")
    assert [entry.model for entry in of(session, Switched)] == [MODEL, "claude-sonnet-5-5"]
    assert full.window.limit_tokens > 0


def test_settings_that_cannot_be_read_leave_no_session_and_no_lock(tmp_path):
    with Session.open(model=MODEL, directory=tmp_path) as session:
        id = session.id
    place = tmp_path / ".longhold" / "settings.toml"
    place.parent.mkdir()
    place.write_text("[window]\nlimit_tokens = 'abc'\n")
    with pytest.raises(ConfigError):
        Session.open(model=MODEL, directory=tmp_path)
    assert [found.header.session for found in default_store().sessions()] == [id]
    with pytest.raises(ConfigError):
        Session.resume(id)
    place.unlink()
    with Session.resume(id) as again:
        assert again.id == id


def _damaged(session):
    """Flip one bit of what the user said first."""
    path = session._engine.log.path
    path.write_bytes(path.read_bytes().replace(b"never touch prod", b"never\x00touch prod"))


@pytest.mark.files
def test_damage_is_told_once_when_a_session_goes_on(tmp_path):
    with Session.open(model=MODEL, directory=tmp_path) as session:
        session.user("never touch prod")
        session.user("fix the bug")
    _damaged(session)
    told = []
    with Session.resume(session.id, notify=told.append) as resumed:
        assert [text_of(m.content) for m in resumed.view.messages()] == ["fix the bug"]
    assert len(told) == 1
    assert "the log is damaged, and the model may lack messages: line 5" in told[0]
    history = load(session._engine.log.path).entries
    assert [entry.error for entry in history if isinstance(entry, Failed)] == told
    with Session.resume(session.id, notify=told.append):
        pass
    assert len(told) == 1


@pytest.mark.files
async def test_a_session_closes_its_log_whatever_else_fails(tmp_path):
    session = Session.open(model=MODEL, directory=tmp_path)
    session.user("hello")
    await session.record(answer())
    (home() / "calibration").parent.mkdir(parents=True, exist_ok=True)
    (home() / "calibration").write_text("in the way")
    session.close()
    entries = default_store().load(session.id).entries
    assert [entry.what for entry in entries if isinstance(entry, Failed)] == ["calibration"]
    Session.resume(session.id).close()


async def test_a_request_that_was_made_stays_as_it_is(opened):
    session = opened()
    await worked(session, 1)
    session.user("task 2")
    request = await session.prepare()
    made = json.dumps(request.kwargs)
    await session.record(answer(id="r2"))
    session.user("task 3")
    later = await session.prepare()
    assert json.dumps(request.kwargs) == made
    request.kwargs["messages"].clear()
    await session.record(answer(id="r3"))
    session.user("task 4")
    assert len((await session.prepare()).kwargs["messages"]) == len(later.kwargs["messages"]) + 2


async def test_a_pinned_message_is_kept_word_for_word_by_a_compaction(opened):
    session = opened(settings=SMALL)
    for n in range(1, 6):
        await worked(session, n)
    n = next(entry.n for entry in of(session, Said))
    session.pin(n)
    await session.compact()
    first = session.view.messages()[0]
    assert text_of(first.content).startswith("task 1: look at module 1\n")
    session.pin(n, off=True)
    assert list_pinned(session.view) == []


def test_an_unknown_option_is_refused_with_the_nearest(tmp_path):
    with pytest.raises(TypeError, match="'max_token'; did you mean 'max_tokens'"):
        Session.open(model="claude-sonnet-5-5", directory=tmp_path, max_token=5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'source'"):
        Session.resume("x", directory=tmp_path, source="run")


def test_failures_and_changes_of_the_view_are_logged_with_ids(tmp_path, caplog):
    caplog.set_level("INFO", logger="longhold")
    with Session.open(model=MODEL, directory=tmp_path) as session:
        session.user("one")
        session._engine.record(Failed(what="notes", error="no space left"))
        failed_at = session.view.history[-1].n
        session.user("two")
        session.retract(2)
    failed, changed = caplog.records[:2]
    assert (failed.levelname, failed.session, failed.entry) == ("WARNING", session.id, failed_at)
    assert failed.getMessage() == f"session {session.id}: notes: no space left"
    assert (changed.levelname, changed.kind) == ("INFO", "Snipped")
    assert session.id in changed.getMessage()
