"""The contract of every store, tested with files and a database."""

import threading
import time
from functools import partial

import pytest

from longhold.core.log import Header
from longhold.core.log.entries import Failed, Ran, Replied, Said, Titled
from longhold.core.log.syncing import open_when_free
from longhold.core.messages import Text, ToolUse
from longhold.core.messages.usage import Tally
from longhold.errors import LogLocked, SessionExists, SessionNotFound, StoreError

TICK_SECONDS = 0.02
"""Times of files are only as fine as the kernel's clock."""


def said(text: str, n: int = 0) -> Said:
    return Said(n=n, content=(Text(text=text),))


def texts(loaded) -> list[str]:
    return [one.content[0].text for one in loaded.entries if isinstance(one, Said)]


def made(store, project, id: str, *words: str) -> str:
    with store.create(directory=project, session=id) as log:
        for word in words:
            log.append(said(word))
    return id


async def test_what_is_appended_is_read_back_in_order(store, reopened, project):
    log = store.create(directory=project)
    written = [log.append(said(word)) for word in ("one", "two", "three")]
    await log.wait_for_commit()
    assert [one.n for one in written] == [1, 2, 3]
    assert all(one.at for one in written)
    loaded = reopened().load(log.header.session)
    assert loaded.entries == written
    assert loaded.header == log.header
    assert not loaded.damage
    log.close()


def test_a_closed_log_goes_on_where_it_ended(store, reopened, project):
    made(store, project, "s", "one")
    with reopened().open("s") as log:
        assert texts(log) == ["one"]
        assert log.append(said("two")).n == 2
    assert texts(store.load("s")) == ["one", "two"]


def test_a_writer_learns_that_another_process_waits(store, reopened, project):
    made(store, project, "s", "one")
    log, taken = store.open("s"), []
    assert not log.is_wanted
    wait = partial(open_when_free, partial(reopened().open, "s"), 30)
    waiting = threading.Thread(target=lambda: taken.append(wait()))
    waiting.start()
    while not log.is_wanted:
        time.sleep(TICK_SECONDS)
    log.append(said("two"))
    log.close()
    waiting.join(30)
    [other] = taken
    with other:
        assert texts(other) == ["one", "two"]
        assert not other.is_wanted


def test_an_id_is_given_once(store, reopened, project):
    made(store, project, "s", "one")
    for one in (store, reopened()):
        with pytest.raises(SessionExists):
            one.create(directory=project, session="s")
        with pytest.raises(SessionExists):
            one.add(Header(session="s", directory=str(project)), [said("other", 1)])
    assert texts(store.load("s")) == ["one"]


@pytest.mark.parametrize("id", ["../up", "a/b", "/tmp/a", "..", ".", "a\0b", "a b", "%", "-x"])
def test_an_id_is_a_plain_name(store, project, id):
    with pytest.raises(StoreError, match="is not a session id"):
        store.create(directory=project, session=id)
    with pytest.raises(StoreError, match="is not a session id"):
        store.add(Header(session=id, directory=str(project)), [])
    with pytest.raises(SessionNotFound):
        store.find(id)
    assert not store.sessions()


def test_sessions_are_listed_by_the_beginning_of_their_ids(store, project):
    for id in ("gw-1a", "gw-1b", "gw-2", "gw_1", "other"):
        made(store, project, id, "one")
    assert {one.id for one in store.sessions(project, prefix="gw-1")} == {"gw-1a", "gw-1b"}
    assert [one.id for one in store.sessions(prefix="gw_")] == ["gw_1"]
    assert len(store.sessions(project)) == 5
    assert not store.sessions(project, prefix="none")


def test_a_session_has_one_writer(store, reopened, project):
    log = store.create(directory=project, session="s")
    log.append(said("one"))
    log.flush()
    for other in (store, reopened()):
        with pytest.raises(LogLocked, match="process"):
            other.open("s")
        assert texts(other.load("s")) == ["one"]
    log.close()
    reopened().open("s").close()


def test_only_what_is_new_can_be_read(store, project):
    made(store, project, "s", "one", "two", "three")
    assert texts(store.load("s", after=2)) == ["three"]
    assert store.load("s", after=3).entries == []


def test_a_branch_knows_nothing_that_came_later(store, project):
    with store.create(directory=project, session="s") as log:
        for id in ("early", "late"):
            log.append(Replied(response_id=id, content=(ToolUse(id=id, name="Read", input={}),)))
            body = log.results.body(id, f"the body of {id}", cap_bytes=1_000)
            log.results.keep(body, is_only_copy=True)
            log.append(Ran(tool_use_id=id, content="head", file=str(body.file)))
    with store.branch("s", upto=2) as branch:
        assert [one.n for one in branch.entries] == [1, 2]
        assert (branch.header.parent, branch.header.parent_entry) == ("s", 2)
        assert [body.name for body in branch.results.list_stored()] == ["early.txt"]
        assert branch.results.read("early.txt") == "the body of early"
        assert branch.append(said("elsewhere")).n == 3
    with store.branch("s") as whole:
        assert len(whole.entries) == 4
        assert len(whole.results.list_stored()) == 2
    assert len(store.load("s").entries) == 4


def test_a_session_is_carried_over_whole(store, reopened, project):
    header = Header(session="s", created=123.5, directory=str(project))
    entries = [said("one", 1), said("nine", 9)]
    beside = {"notes.md": b"## Title\nA fine day\n", "tool-results/x.txt": b"\x00\xff body"}
    assert store.add(header, entries, beside) == "s"
    other = reopened()
    loaded = other.load("s")
    assert (loaded.header, loaded.entries) == (header, entries)
    assert other.beside("s") == beside
    with other.open("s") as log:
        assert log.append(said("ten")).n == 10


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "tool-results/../x", "tool-results/", "tool-results/.."]
)
def test_what_lies_beside_a_log_stays_there(store, project, name):
    with pytest.raises(StoreError, match="is not the name of a file"):
        store.add(Header(session="s", directory=str(project)), [], {name: b""})


def test_a_session_is_found_by_a_beginning_of_its_id(store, project):
    for id in ("abc", "abd", "x_y", "xay"):
        made(store, project, id)
    assert store.find("abc").id == "abc"
    assert store.find("x_", by_prefix=True).id == "x_y"
    with pytest.raises(SessionNotFound, match="several"):
        store.find("ab", by_prefix=True)
    for look in (store.find, store.open, store.load, store.branch, store.delete):
        with pytest.raises(SessionNotFound, match="there is no session"):
            look("x_")
    with pytest.raises(SessionNotFound, match="there is no session"):
        store.find("nothing")


def test_sessions_are_listed_newest_first(store, project, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for id, place in (("a", project), ("b", project), ("c", elsewhere)):
        made(store, place, id, "hello")
        time.sleep(TICK_SECONDS)
    with store.open("a") as log:
        log.append(said("again"))
    assert [one.id for one in store.sessions()] == ["a", "c", "b"]
    assert [one.id for one in store.sessions(project)] == ["a", "b"]
    assert [one.id for one in store.sessions(limit=2)] == ["a", "c"]
    newest = store.sessions()[0]
    assert newest.bytes > 50
    assert newest.header.directory == str(project)


def test_a_session_has_a_title(store, project):
    made(store, project, "s", "Fix the login")
    assert store.title(store.find("s")) == "Fix the login"
    with store.open("s") as log:
        log.append(Titled(title="Login repaired"))
    assert store.title(store.find("s")) == "Login repaired"
    with store.open("s") as log:
        log.keep_text("notes.md", "## Title\nAll about logins\n")
    assert store.title(store.find("s")) == "All about logins"


def test_a_deleted_session_is_gone(store, reopened, project):
    made(store, project, "session", "one")
    with store.open("session") as log:
        log.keep_text("notes.md", "something")
        with pytest.raises(LogLocked):
            reopened().delete("session")
    with pytest.raises(SessionNotFound):
        store.delete("sess")
    store.delete("session")
    assert not reopened().sessions()
    made(store, project, "session")
    assert store.beside("session") == {}


def test_reports_are_taken_once_and_in_order(store, reopened, project):
    log = store.create(directory=project, session="s")
    log.close()
    for error in ("first", "second"):
        log.leave(Failed(what="dream", error=error))
    with pytest.raises(TypeError, match="is not a report"):
        log.leave(said("a message"))
    with reopened().open("s") as again:
        taken = again.take(again.entries, again.append)
        assert [one.error for one in taken] == ["first", "second"]
        assert again.take(again.entries, again.append) == []
    assert [one.error for one in store.load("s").entries] == ["first", "second"]


def test_bodies_are_written_once(store, project):
    with store.create(directory=project, session="s") as log:
        body = log.results.body("a/b", "words", cap_bytes=100)
        for _ in range(2):
            log.results.keep(body, is_only_copy=True)
        with pytest.raises(StoreError, match="with other content"):
            log.results.keep(log.results.body("a/b", "other", cap_bytes=100), is_only_copy=True)
        assert log.results.read(body.file.name) == "words"
        [stored] = log.results.list_stored()
        assert (stored.name, stored.bytes) == (body.file.name, 5)
        assert log.results.remove([stored]) == [stored]
        with pytest.raises(StoreError):
            log.results.read(body.file.name)
    with store.open("s") as log:
        assert log.results.list_stored() == []


def test_texts_beside_a_log_are_replaced(store, project):
    with store.create(directory=project, session="s") as log:
        assert log.text("notes.md") == ""
        for text in ("one", "two ☂"):
            log.keep_text("notes.md", text)
        assert log.text("notes.md") == "two ☂"
    with store.open("s") as log:
        assert log.text("notes.md") == "two ☂"


@pytest.mark.parametrize("text", ["\0", "half \ud800 a pair", "\n\r\u2028", "x" * 2_000_000, ""])
def test_any_text_can_be_kept(store, project, text):
    with store.create(directory=project, session="s") as log:
        written = log.append(said(text))
    assert store.load("s").entries == [written]


def test_a_closed_log_takes_nothing(store, project):
    log = store.create(directory=project, session="s")
    log.close()
    log.close()
    assert not log.is_open
    with pytest.raises(StoreError):
        log.append(said("late"))
    assert store.load("s").entries == []


def test_what_is_built_on_a_log_and_fails_closes_it(store, reopened, project):
    log = store.create(directory=project, session="s")
    with pytest.raises(ValueError, match="no"), log.close_on_failure():
        raise ValueError("no")
    reopened().open("s").close()


def test_sessions_share_what_was_spent_today(store, reopened, project, tmp_path):
    one = Tally(usd=0.5, input_tokens=10, output_tokens=2, calls=1)
    with store.create(directory=project) as log:
        assert log.shared.ledger.today() == Tally()
        log.shared.ledger.add(one)
        log.shared.ledger.add(one)
    reopened().shared(tmp_path).ledger.add(one)
    whole = Tally(usd=1.5, input_tokens=30, output_tokens=6, calls=3)
    assert store.shared(project).ledger.today() == whole


def test_what_was_learnt_is_there_for_every_session(store, reopened, project, tmp_path):
    with store.create(directory=project) as log:
        assert log.shared.read("calibration/m.json") == b""
        for data in (b"one", b"two \x00\xff"):
            log.shared.keep("calibration/m.json", data)
    assert reopened().shared(tmp_path).read("calibration/m.json") == b"two \x00\xff"


def test_what_was_said_in_the_sessions_of_a_project_can_be_read(store, project, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for id, place in (("a", project), ("b", project), ("c", elsewhere)):
        made(store, place, id, f"hello from {id} ☂", "again")
        time.sleep(TICK_SECONDS)
    with store.open("b") as log:
        log.append(Titled(title="no words of a user"))
    shared = store.shared(project)
    assert shared.sessions_since(0.0) == ["b", "a"]
    assert shared.sessions_since(store.find("a").modified + TICK_SECONDS / 2) == ["b"]
    assert shared.sessions_since(time.time() + 60) == []
    assert [one.content[0].text for one in shared.read_said("b")] == ["hello from b ☂", "again"]
    assert list(shared.read_said("nothing")) == []


def worked_for(log, id: str, text: str):
    """Let an agent of a session say something in its own log, and a result lie beside that."""
    with log.agent(id).open(log.header, directory=log.header.directory, at=1) as own:
        own.append(said(text))
        own.results.keep(own.results.body("t", text, cap_bytes=1_000), is_only_copy=True)
        if id == "a-1":
            worked_for(own, "b-2", "deeper")


def test_an_agents_log_is_kept_with_its_sessions(store, reopened, project):
    with store.create(directory=project, session="s") as log:
        log.append(said("one"))
        assert not log.agent("a-1").exists()
        worked_for(log, "a-1", "at work")
        assert log.agent("a-1").exists()
        assert [texts(one.load()) for one in log.agents()] == [["at work"], ["deeper"]]
    other = reopened()
    assert other.agents("s") == ["s/a-1", "s/a-1/b-2"]
    assert texts(other.load("s/a-1")) == ["at work"]
    assert other.results("s/a-1/b-2").read("t.txt") == "deeper"
    header = other.load("s/a-1").header
    assert (header.session, header.parent, header.parent_entry) == ("a-1", "s", 1)
    with other.open("s") as log, log.agent("a-1").open(log.header, directory="", at=9) as own:
        assert own.append(said("more")).n == 2
        with pytest.raises(LogLocked):
            store.open("s/a-1")
    assert texts(store.load("s/a-1")) == ["at work", "more"]
    assert [one.id for one in store.sessions()] == ["s"]
    assert store.find("s").id == "s"
    assert store.shared(project).sessions_since(0) == ["s"]
    for name in ("s/none", "none/a-1", "s/", "/a-1", "s/../s", "s/agents/a-1"):
        with pytest.raises((SessionNotFound, StoreError)):
            other.load(name)


def test_an_agents_log_goes_where_its_session_goes(store, reopened, project):
    with store.create(directory=project, session="s") as log:
        log.append(said("one"))
        time.sleep(TICK_SECONDS)
        worked_for(log, "a-1", "at work")
        log.append(said("two"))
    with store.branch("s") as whole, store.branch("s", upto=1) as early:
        assert [texts(one.load()) for one in whole.agents()] == [["at work"], ["deeper"]]
        assert not list(early.agents())
        ids = {whole.header.session, early.header.session}
    with pytest.raises(SessionNotFound):
        store.delete("s/a-1")
    store.delete("s")
    assert {one.id for one in store.sessions()} == ids
    with reopened().create(directory=project, session="s") as log:
        assert not log.agent("a-1").exists()


def test_an_id_is_taken_in_the_whole_store(store, project, tmp_path):
    made(store, project, "user-7")
    with pytest.raises(SessionExists):
        store.create(directory=tmp_path / "another release", session="user-7")
