"""Killed at any moment of an update: the page is intact, and the next session continues."""

import asyncio
import os
import signal
import time

import pytest

from longhold.core.log.entries import Noted
from longhold.core.log.store import FileStore
from longhold.core.messages import Text, Usage
from longhold.core.models.protocol import Reply
from longhold.core.settings import NotesSettings, Settings, home
from longhold.core.stages.notes.file import NotesFile
from longhold.core.stages.notes.update import template
from longhold.session.session import Session

pytestmark = pytest.mark.slow

SETTINGS = Settings(notes=NotesSettings(first_tokens=100, growth_tokens=50))
TURNS = 200
"""More than there is time for."""


async def turn(session, i):
    """Say something, have it answered, and let the notes be written."""
    session.user(f"Task {i}: " + "set the sail and mind the reef " * 20)
    await session.prepare()
    reply = Reply(
        response_id=f"r{i}",
        model="claude-opus-4-6",
        content=(Text(text=f"Task {i} is done."),),
        stop_reason="end_turn",
        usage=Usage(input_tokens=200 * i + 500, output_tokens=20),
    )
    session._engine.record_reply(reply, session._layers.after_turn)
    await session._layers.notes.wait()


async def work(session):
    for i in range(TURNS):
        await turn(session, i)


def opened(directory, resume=""):
    if resume:
        return Session.resume(resume, settings=SETTINGS)
    return Session.open(model="claude-opus-4-6", directory=directory, settings=SETTINGS)


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.3, 0.45, 0.7, 1.0])
def test_the_page_is_whole_and_the_next_session_goes_on_from_the_cursor(tmp_path, seconds):
    child = os.fork()
    if not child:
        try:
            asyncio.run(work(opened(tmp_path)))
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not FileStore().sessions():
        return  # killed before there was a session
    found = FileStore().sessions()[0]
    page = NotesFile(found.directory, template(home())).read().page
    assert not (page.lead or any(page.get_texts().values())), (
        "nothing that the engine wrote is broken off or taken for an edit"
    )
    with opened(tmp_path, found.id) as session:
        noted = [e for e in session.view.history if isinstance(e, Noted)]
        session._engine.repair()
        asyncio.run(turn(session, TURNS))
        again = [e for e in session.view.history if isinstance(e, Noted)]
    assert len(again) == len(noted) + 1
    assert again[-1].cursor > (noted[-1].cursor if noted else 0)
    page = NotesFile(found.directory, template(home())).read().page
    assert f"Task {TURNS} is done." in page.section("Worklog").log
    assert sorted(p.name for p in found.directory.glob("*notes*")) == ["notes.md"]
