"""The files of a branch: as they were at its last entry, without later content."""

import os
import socket
import time
from contextlib import chdir

import pytest

from longhold.agent.subagents.ledger import Mailbox, UnreadMail
from longhold.agent.subagents.mail import Mail, Note
from longhold.agent.subagents.tasks import TaskList
from longhold.core.log import Header, Log, load
from longhold.core.log.entries import Ran, Replied, Said, Titled
from longhold.core.log.store import FileStore
from longhold.core.log.titles import title_of
from longhold.core.messages import Text, ToolUse


def word(text):
    return Said(content=(Text(text=text),))


def call(id):
    use = ToolUse(id=id, name="Read", input={})
    return Replied(response_id=id, model="m", content=(use,)), Ran(tool_use_id=id, content="x")


def mail(text):
    note = Note(text=text)
    return Mail(id=text.replace(" ", "-"), sender="ada", to="main", body=note, at=time.time())


@pytest.fixture
def session(tmp_path):
    """A session with files beside it, from before entry 4 and from after it."""
    store = FileStore()
    with store.create(directory=tmp_path, session="abc") as log:
        beside = log.path.with_suffix("")
        box, tasks = Mailbox(beside / "mail" / "main.jsonl"), TaskList(beside / "tasks.jsonl")
        for part in ("mail", "agents", "tool-results"):
            (beside / part).mkdir(parents=True)
        with Log.create(beside / "agents" / "early.jsonl", Header(session="early")) as agent:
            log.append(word("one"))
            box.send(mail("early mail"))
            tasks.create("early task", by="main")
            agent.append(word("early step"))
            for entry in call("t1"):
                log.append(entry)
            (beside / "tool-results" / "t1.txt").write_text("early result")
            (beside / "plan.txt").write_text("early plan")
            log.append(word("two"))
            (beside / "notes.md").write_text("## Title\nThe later title\n")
            os.utime(beside / "notes.md", (time.time() + 5, time.time() + 5))
            box.send(mail("later mail"))
            tasks.create("later task", by="main")
            agent.append(word("later step"))
            for entry in call("t2"):
                log.append(entry)
            (beside / "tool-results" / "t2.txt").write_text("later result")
            log.append(Titled(title="The later title"))
        header = Header(session="late", created=time.time() + 5)
        Log.create(beside / "agents" / "late.jsonl", header).close()
    return store


def found(path):
    return sorted(str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())


def test_a_branch_at_an_entry_has_no_future_in_it(session):
    with session.branch("abc", upto=4) as log:
        beside = log.path.with_suffix("")
        assert found(beside) == [
            "agents/early.jsonl",
            "mail/main.jsonl",
            "plan.txt",
            "tasks.jsonl",
            "tool-results/t1.txt",
        ]
        letters = UnreadMail(beside / "mail" / "main.jsonl").letters()
        assert [letter.value.body.text for letter in letters] == ["early mail"]
        subjects = [task.subject for task in TaskList(beside / "tasks.jsonl").tasks().values()]
        assert subjects == ["early task"]
        [step] = load(beside / "agents" / "early.jsonl").entries
        assert step.content[0].text == "early step"
        assert title_of(log.path) == "one"


def test_a_whole_branch_has_all_of_it_but_the_socket_of_a_running_session(session):
    beside = session.find("abc").directory
    before = found(beside)
    listener = socket.socket(socket.AF_UNIX)
    with chdir(beside):  # the path of a socket must be short
        listener.bind("mail.sock")
    with session.branch("abc") as log:
        assert found(log.path.with_suffix("")) == before
        assert title_of(log.path) == "The later title"
    listener.close()


def test_what_comes_after_the_cut_goes_on_from_there(session):
    with session.branch("abc", upto=4) as log:
        box = log.path.with_suffix("") / "mail" / "main.jsonl"
        reader = UnreadMail(box)
        [letter] = reader.letters()
        reader.mark_delivered(letter)
        Mailbox(box).send(mail("another"))
        assert [one.value.body.text for one in reader.letters()] == ["another"]
