"""Notes that replace history: when they are tried, what stays, and the fallbacks."""

import asyncio
import time
from dataclasses import replace

import pytest

from casting import idle
from compacting import BINDS, SUMMARY
from longhold.core.log.entries import Compacted, Directed, Forked, Noted, Undone
from longhold.core.messages import Text, text_of
from longhold.core.messages.rules import violations
from longhold.core.settings import NotesSettings, home
from longhold.core.stages.compact.draft import FILLED_RATIO
from longhold.core.stages.compact.owner import Before, CompactRequest
from longhold.core.stages.notes.file import NotesFile
from longhold.core.stages.notes.update import template
from longhold.core.view.items import Round, Spoken

KEPT = NotesSettings(keep_tokens=10_000, keep_messages=2)
"""In a window of 20,000 that is 1,000 tokens."""


def full(one):
    """Fill a session's window up to the line."""
    i = 0
    while one.used < one.line:
        one.turn(f"Task {i}: see /src/{i}.py")
        i += 1


def noted(one, text="The mast is up.", upto=-1, by="model"):
    """Write notes up to a message."""
    file = NotesFile(one.engine.log.path.with_suffix(""), template(home()))
    found = file.read()
    file.write(found.page.with_written({"Current state": text}), found)
    cursor = one.view.items[upto].id
    one.engine.record(Noted(cursor=cursor, by=by, context_tokens=one.used))
    return file, cursor


def with_notes(talk, *scripts, asks=True, **settings):
    """Begin a session with notes."""
    return talk(*scripts, asks=asks, notes=replace(KEPT, **settings))


@pytest.fixture
def one(talk):
    """A session with a model that would summarise."""
    return with_notes(talk, SUMMARY, SUMMARY)


async def test_notes_of_a_model_stand_for_history_without_a_call(one):
    full(one)
    noted(one)
    last = one.view.items[-1]
    await one.stage(one.engine)
    (entry,) = one.compacted
    assert (entry.by, entry.usage, one.calls) == ("notes", None, [])
    assert "The mast is up." in text_of(entry.summary)
    assert "Task 0" in text_of(entry.summary), "what the log knows is told beside it"
    assert one.view.items[-1] == last
    assert entry.kept is not None and entry.kept[1] == last.id
    assert one.used < one.line
    assert violations(one.view.messages()) == []
    assert "from the notes" in one.told[-1]


async def test_what_the_notes_do_not_cover_stays_word_for_word(one):
    for i in range(8):
        one.turn(f"Task {i}")
    noted(one)
    first = len(one.view.items)
    full(one)
    later = list(one.view.items[first:])
    await one.stage(one.engine)
    assert list(one.view.items[-len(later) :]) == later


async def test_enough_of_the_latest_talk_stays(talk):
    one = with_notes(talk, SUMMARY, keep_messages=6)
    full(one)
    noted(one)
    await one.stage(one.engine)
    kept = [i for i in one.view.items if isinstance(i, Spoken | Round)][1:]
    texts = [
        i for i in kept if isinstance(i, Spoken) or any(isinstance(b, Text) for b in i.content)
    ]
    assert len(texts) >= 6


async def test_by_hand_too_unless_something_particular_is_wanted(one):
    full(one)
    noted(one)
    assert (await one.session.compact()).by == "notes"
    full(one)
    noted(one)
    assert (await one.session.compact("the cookie")).by == "model"


async def test_a_hook_that_wants_something_particular_is_heard(one):
    full(one)
    noted(one)
    asked = []

    async def before(trigger, focus):
        asked.append(trigger)
        return Before(focus=("dwell on the cookie",))

    one.hooks.before = before
    await one.stage(one.engine)
    assert (one.compacted[0].by, asked) == ("model", ["auto"])


async def test_a_hook_may_say_no(one):
    full(one)
    noted(one)

    async def before(trigger, focus):
        return Before(blocked="not now")

    one.hooks.before = before
    await one.stage(one.engine)
    assert one.compacted == []


@pytest.mark.parametrize("stand_in", ["off", "model", "always"])
async def test_which_notes_come_before_a_model_is_a_setting(talk, stand_in):
    one = with_notes(talk, SUMMARY, SUMMARY, stand_in=stand_in)
    full(one)
    await one.stage(one.engine)
    assert one.compacted[0].by == ("digest" if stand_in == "always" else "model")
    assert (one.compacted[0].kept is not None) == (stand_in == "always")


async def test_without_a_model_the_log_tells_it_and_the_latest_stays(talk):
    one = with_notes(talk, asks=False)
    full(one)
    last = one.view.items[-1]
    await one.stage(one.engine)
    assert one.compacted[0].by == "digest" and one.view.items[-1] == last
    assert "Task 0" in text_of(one.compacted[0].summary)


async def test_what_a_person_wrote_stands_beside_what_the_log_tells(talk):
    one = with_notes(talk, asks=False)
    full(one)
    noted(one, "Mind the reef.", by="person")
    await one.stage(one.engine)
    summary = text_of(one.compacted[0].summary)
    assert one.compacted[0].by == "notes"
    assert "Mind the reef." in summary and "Task 0" in summary


async def test_an_empty_page_gives_way(one):
    full(one)
    noted(one, "")
    await one.stage(one.engine)
    assert one.compacted[0].by != "notes"


async def test_notes_that_would_leave_too_much_give_way(one):
    one.turn("First")
    noted(one)
    full(one)
    await one.stage(one.engine)
    assert one.compacted[0].by == "model"


async def test_notes_whose_end_was_compacted_give_way(one):
    full(one)
    noted(one)
    await one.stage.compact(one.engine, CompactRequest(trigger="manual", focus="x"))
    full(one)
    await one.stage(one.engine)
    assert [entry.by for entry in one.compacted] == ["model", "model"]


async def test_a_page_that_cannot_be_read_gives_way(one):
    full(one)
    file, _ = noted(one)
    file.path.unlink()
    file.path.symlink_to("/dev/null")
    await one.stage(one.engine)
    assert one.compacted[0].by == "model"


async def test_notes_leave_the_room_that_any_summary_leaves(one):
    full(one)
    noted(one, "The mast is up. " * 100)
    await one.stage(one.engine)
    assert one.compacted[0].by == "notes"
    assert one.used <= FILLED_RATIO * one.line


async def test_notes_that_would_fill_the_window_themselves_give_way(one):
    full(one)
    file, _ = noted(one)
    found = file.read()
    long = {section.heading: "The mast is up. " * 2_000 for section in found.page.sections}
    file.write(found.page.with_written(long), found)
    await one.stage(one.engine)
    assert one.compacted[0].by == "model"
    assert one.used <= FILLED_RATIO * one.line


async def test_it_waits_for_an_update_under_way(one):
    full(one)
    notes = one.session._layers.notes

    async def update():
        await idle()
        noted(one, "Just written.")

    notes._job.begin(update)
    notes._began = time.monotonic()
    noted(one, "Older.", upto=-3)
    await one.stage(one.engine)
    assert "Just written." in text_of(one.compacted[0].summary)


@pytest.mark.parametrize(("asks", "by"), [(True, "notes"), (False, "model")])
async def test_the_first_notes_of_a_model_are_waited_for_too(one, asks, by):
    full(one)
    notes = one.session._layers.notes

    async def update():
        await idle()
        noted(one, "Just written.", by="model" if asks else "engine")

    notes._job.begin(update)
    notes._began, notes._asks = time.monotonic(), asks
    await one.stage(one.engine)
    assert one.compacted[0].by == by


async def test_it_does_not_wait_for_an_update_that_hangs(one):
    full(one)
    noted(one, "Older.")
    notes = one.session._layers.notes
    notes._job.begin(lambda: asyncio.sleep(3_600))
    notes._began = time.monotonic() - 61
    async with asyncio.timeout(5):
        await one.stage(one.engine)
    assert one.compacted[0].by == "notes"


async def test_bound_thinking_waits_for_the_end_of_the_turn(talk):
    one = talk(SUMMARY, model=BINDS, auto_line="50%", notes=KEPT)
    full(one)
    noted(one)
    one.engine.say("go on")
    one.turn_open("think", words=10, thought=True)
    await one.stage(one.engine)
    assert one.compacted == []
    one.answered("done")
    await one.stage(one.engine)
    assert one.compacted[0].by == "notes"


async def test_undo_gives_the_view_back(one):
    full(one)
    noted(one)
    before = one.view.messages()
    await one.stage(one.engine)
    one.engine.record(Undone(target=one.compacted[0].n))
    assert one.view.messages() == before


async def test_directives_are_carried_word_for_word(one):
    full(one)
    one.engine.record(Directed(message=one.view.items[0].id, state="cancelled"))
    noted(one)
    await one.stage(one.engine)
    summary = text_of(one.compacted[0].summary)
    assert "Task 3: see /src/3.py" in summary and "(cancelled)" in summary


async def test_a_long_session_goes_on_from_its_notes_again_and_again(one):
    for i in range(5):
        full(one)
        noted(one, f"Leg {i}.")
        await one.stage(one.engine)
        assert one.used < one.line
    assert [entry.by for entry in one.compacted] == ["notes"] * 5
    assert one.of(Forked) == []
    assert "Task 0" in text_of(one.of(Compacted)[-1].summary)
