"""Compactions of an agent: hooks, frame, files, and stopping."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from longhold.agent.build import build_agent
from longhold.core.log.entries import Compacted, Failed, Framed
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import (
    ClearSettings,
    MemorySettings,
    NotesSettings,
    Settings,
    WindowSettings,
    home,
)
from longhold.core.turn.loop import Stopped

MODEL = "claude-opus-4-6"
TITLES = {
    1: "Request and intent",
    2: "Technical concepts",
    4: "Errors and fixes",
    5: "Problem solving",
    7: "Pending tasks",
    8: "Current work",
    9: "Next step",
}
SUMMARY = "text: <summary>\n" + "\n".join(
    f"  ## {n}. {t}\n  All is well." for n, t in TITLES.items()
)
SHORT = 'tool: Read {"file_path": "long.txt"}\n---\ntext: read ' + "word " * 7_000
READ = 'tool: Read {"file_path": "long.txt"}\n---\ntext: read ' + "word " * 8_000
SMALL = Settings(
    window=WindowSettings(limit_tokens=22_000),
    clear=ClearSettings(on=False),
    notes=NotesSettings(on=False),
    memory=MemorySettings(on=False),
)

ADDS = (
    """echo '{"hookSpecificOutput": {"hookEventName": "PostCompact", """
    """"additionalContext": "The branch is frozen."}}'"""
)


@pytest.fixture
def project(tmp_path):
    """A directory with a long file and a line of instructions."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "long.txt").write_text("word word word\n" * 1_500)
    (place / "AGENTS.md").write_text("Speak softly.")
    return place


@asynccontextmanager
async def agent(project, *scripts, hooks=(), settings=SMALL, source="run"):
    """An agent with a scripted model and the user's hooks, closed at the end."""
    model = ScriptedModel("\n---\n".join(scripts), name=MODEL)
    given = {}
    for event, command, *more in hooks:
        one = {"type": "command", "command": command, **(more[0] if more else {})}
        given.setdefault(event, []).append({"hooks": [one]})
    home().mkdir(parents=True, exist_ok=True)
    (home() / "hooks.json").write_text(json.dumps({"hooks": given}))
    opened = await build_agent(
        model, directory=project, mode="bypass", settings=settings, source=source
    )
    try:
        yield opened
    finally:
        await opened.close()


async def run(opened, prompt="read the file"):
    """Let it work; give the end."""
    events = [event async for event in opened.run(prompt)]
    assert violations(opened.session.view.messages()) == []
    return events[-1]


def compacted(opened):
    return [e for e in opened.session.view.history if isinstance(e, Compacted)]


FULL = [READ, SUMMARY, "text: done"]
"""A long reading and a long answer fill the window; the next prompt compacts first."""


async def filled(one):
    """Fill the window."""
    await run(one)
    full = one.session.fullness()
    assert full.used_tokens >= full.window.auto_tokens
    assert compacted(one) == []


async def test_the_window_fills_and_the_work_goes_on(project):
    async with agent(project, *FULL) as one:
        await filled(one)
        assert await run(one, "and now?") == Stopped(reason="completed", text="done")
        (entry,) = compacted(one)
        assert entry.by == "model"
        assert entry.why in one.notices.take()
        assert "The History tool opens any message" in text_of(entry.summary)
        assert any(tool["name"] == "History" for tool in one.engine.frame.tools)


async def test_hooks_see_it_before_and_after(project, tmp_path):
    seen = tmp_path / "seen.json"
    hooks = (
        ("PreCompact", "echo Mention the weather."),
        ("SessionStart", "echo Hello again."),
        ("PostCompact", f"cat > {seen}; {ADDS}"),
    )
    async with agent(project, *FULL, hooks=hooks) as one:
        await filled(one)
        await run(one, "and now?")
        assert "Mention the weather." in str(one.model.requests[-2].kwargs["messages"][-1])
        assert "Mention the weather." not in str(one.model.requests[-1].kwargs["messages"])
        assert "Hello again." in str(one.model.requests[-1].kwargs["messages"])
        told = json.loads(seen.read_text())
        assert (told["trigger"], told["hook_event_name"]) == ("auto", "PostCompact")
        assert told["compact_summary"] == text_of(compacted(one)[0].summary)
        assert "The branch is frozen." in str(one.model.requests[-1].kwargs["messages"])
        assert compacted(one)[0].focus == "Mention the weather."


@pytest.mark.parametrize(("source", "is_alone"), [("run", True), ("chat", False)])
async def test_who_works_alone_is_told_so_behind_the_summary(project, source, is_alone):
    async with agent(project, *FULL, source=source) as one:
        await filled(one)
        await run(one, "and now?")
        text = text_of(compacted(one)[0].summary)
        assert ("You are working by yourself" in text) is is_alone
        assert ("Go on with the work" in text) is not is_alone


async def test_a_hook_that_says_no_skips_it_and_the_request_goes_out(project):
    hooks = (("PreCompact", "echo not today >&2; exit 2"),)
    async with agent(project, READ, "text: done", hooks=hooks) as one:
        await filled(one)
        assert (await run(one, "and now?")).reason == "completed"
        assert compacted(one) == []
        assert "not compacted: not today" in one.notices.take()


async def test_a_hook_that_says_no_to_an_overflow_fails_the_request(project):
    hooks = (("PreCompact", "echo not today >&2; exit 2"),)
    async with agent(project, SHORT, "error: too-long 40000 22000", hooks=hooks) as one:
        await run(one)
        assert (await run(one, "and now?")).reason == "prompt_too_long"
        assert compacted(one) == []


async def test_a_hook_that_fails_or_hangs_stops_nothing(project):
    hooks = (
        ("PreCompact", "exit 1"),
        ("PostCompact", "no-such-command"),
        ("PreCompact", "sleep 30", {"timeout": 0.2}),
    )
    async with agent(project, *FULL, hooks=hooks) as one:
        await filled(one)
        await run(one, "and now?")
        assert compacted(one)[0].by == "model"
        told = "\n".join(one.notices.take())
        assert "was stopped after 0.2 s" in told
        assert "ended with status 1" in told


async def test_instructions_are_read_again_and_undo_brings_the_old_back(project):
    async with agent(project, *FULL) as one:
        await filled(one)
        (project / "AGENTS.md").write_text("Speak up.")
        before = one.engine.frame
        await run(one, "and now?")
        assert "Speak up." in one.engine.frame.instructions
        frames = [e for e in one.session.view.history if isinstance(e, Framed)]
        assert frames[-1].rests_on == (compacted(one)[0].n,)
        one.session.undo()
        assert one.engine.frame == before


async def test_an_overflow_is_recovered_once_in_a_turn(project):
    script = [SHORT, "error: too-long 40000 22000", SUMMARY, "text: done"]
    async with agent(project, *script) as one:
        await run(one)
        assert (await run(one, "and now?")).text == "done"
        assert compacted(one)[0].trigger == "reactive"
    script = [SHORT, "error: too-long 40000 22000", SUMMARY, "error: too-long 40000 22000"]
    async with agent(project, *script) as one:
        await run(one)
        assert (await run(one, "and now?")).reason == "prompt_too_long"
        assert len(compacted(one)) == 1


async def test_stopping_leaves_everything_as_it_was(project):
    stalled = "text: half\nerror: stalled"
    async with agent(project, READ, stalled, stalled) as one:
        await filled(one)
        for work in (lambda: run(one, "and now?"), lambda: one.compact("x")):
            length = len(one.model.requests)
            doing = asyncio.create_task(work())
            while len(one.model.requests) == length:  # noqa: ASYNC110 - the model has no event for it
                await asyncio.sleep(0.01)
            before = one.session.view.messages()
            one.abort.set()
            ended = await asyncio.wait_for(doing, 5)
            assert ended is None or ended.reason == "aborted_streaming"
            assert one.session.view.messages() == before
            assert compacted(one) == []
        assert not [e for e in one.session.view.history if isinstance(e, Failed)]


async def test_the_user_compacts_with_a_focus(project):
    async with agent(project, READ, SUMMARY) as one:
        await run(one)
        entry = await one.compact("the second line")
        assert entry.trigger == "manual"
        assert "the second line" in str(one.model.requests[-1].kwargs["messages"][-1])
