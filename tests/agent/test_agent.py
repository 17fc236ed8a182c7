"""The whole agent: real tools in a real directory, permissions, hooks, resuming."""

import asyncio
import json
import subprocess
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from longhold.agent.build import build_agent
from longhold.agent.permissions import Answer
from longhold.core.log import Log
from longhold.core.log.entries import Ran, Said
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import home, load_settings
from longhold.core.turn.fork.asking import ForkRequest
from longhold.core.turn.loop import Stopped

MODEL = "claude-opus-4-6"
FIX = """text: Let me look.
tool: Read {"file_path": "add.py"}
---
tool: Edit {"file_path": "add.py", "old_string": "a - b", "new_string": "a + b"}
---
tool: Bash {"command": "python3 -c 'import add; print(add.add(2, 3))'"}
---
text: Fixed.
"""


@pytest.fixture
def project(tmp_path):
    """A small repository with a bug."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "add.py").write_text("def add(a, b):\n    return a - b\n")
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    return place


@asynccontextmanager
async def agent(project, script, **options):
    """An agent with a scripted model, closed at the end."""
    opened = await build_agent(ScriptedModel(script, name=MODEL), directory=project, **options)
    try:
        yield opened
    finally:
        await opened.close()


async def run(opened, prompt="fix add"):
    """Let it work; give all events."""
    events = [event async for event in opened.run(prompt)]
    assert violations(opened.session.view.messages()) == []
    return events


def results(opened):
    return [text_of(e.content) for e in opened.session.view.history if isinstance(e, Ran)]


async def test_a_task_is_done_with_real_tools(project):
    async with agent(project, FIX, mode="bypass") as one:
        events = await run(one)
        assert events[-1] == Stopped(reason="completed", text="Fixed.")
        assert "return a + b" in (project / "add.py").read_text()
        assert "5" in results(one)[-1]


async def test_without_anyone_to_ask_what_is_not_allowed_is_denied(project):
    async with agent(project, FIX) as one:
        await run(one)
        assert "return a - b" in (project / "add.py").read_text()
        assert results(one)[1].startswith("Not allowed: ")


async def test_the_users_no_ends_the_turn(project):
    async def no(question):
        return Answer(choice="no", reason="not today")

    async with agent(project, FIX, ask=no) as one:
        events = await run(one)
        assert events[-1].reason == "denied"
        assert results(one)[-1] == "Not allowed: not today."
        ran = [entry for entry in one.session.view.history if isinstance(entry, Ran)]
        assert ran[-1].refused == "not today"


async def test_the_users_yes_lets_it_pass(project):
    async def yes(question):
        return Answer(choice="once")

    async with agent(project, FIX, ask=yes) as one:
        assert (await run(one))[-1].reason == "completed"
        assert "return a + b" in (project / "add.py").read_text()


def hook(home_settings, event, command):
    home_settings.parent.mkdir(parents=True, exist_ok=True)
    home_settings.write_text(
        json.dumps({"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]}})
    )


async def test_a_hook_can_stop_a_tool_and_its_word_reaches_the_model(
    project, tmp_path, monkeypatch
):
    home = tmp_path / "home"
    monkeypatch.setenv("LONGHOLD_HOME", str(home))
    hook(home / "settings.json", "PreToolUse", "echo 'no edits on Sundays' >&2; exit 2")
    async with agent(project, FIX, mode="bypass") as one:
        await run(one)
        assert all("no edits on Sundays" in text for text in results(one))
    hook(home / "settings.json", "UserPromptSubmit", "echo 'the branch is main'")
    async with agent(project, "text: ok", mode="bypass") as one:
        await run(one)
        hidden = [
            text_of(e.content) for e in one.session.view.history if isinstance(e, Said) and e.hidden
        ]
        assert hidden == ["the branch is main"]


async def test_a_projects_own_hooks_are_not_run_before_they_are_trusted(project, tmp_path):
    hook(project / ".longhold" / "hooks.json", "SessionStart", f"touch {tmp_path}/ran")
    async with agent(project, "text: ok") as one:
        assert not (tmp_path / "ran").exists()
        assert any("until you trust it" in notice for notice in one.notices.take())


async def test_a_session_goes_on_where_it_stopped(project):
    async with agent(project, FIX.split("---\n")[0] + "---\nerror: 400 gone", mode="bypass") as one:
        assert (await run(one))[-1].reason == "model_error"
        id = one.session.id
    rest = FIX.partition("---\n")[2]
    async with agent(project, rest, mode="bypass", resume=id) as again:
        events = await run(again, "")
        assert events[-1].reason == "completed"
        said = [text_of(e.content) for e in again.session.view.history if isinstance(e, Said)]
        assert said == ["fix add"]


async def test_a_fallback_that_took_over_stays(project):
    primary = ScriptedModel("error: 529 retry-after=9999", name=MODEL)
    fallback = ScriptedModel("text: I can\n---\ntext: still here", name="claude-haiku-4-5")
    one = await build_agent(primary, directory=project, fallback=fallback)
    assert (await run(one))[-1].text == "I can"
    assert (await run(one, "again"))[-1].text == "still here"
    assert [request.kwargs["model"] for request in fallback.requests] == ["claude-haiku-4-5"] * 2
    await one.close()


async def test_nothing_is_sent_when_there_is_nothing_to_go_on_with(project):
    async with agent(project, "text: done") as one:
        await run(one)
        id = one.session.id
    async with agent(project, "text: never", resume=id) as again:
        events = [event async for event in again.run()]
        assert [event.reason for event in events] == ["completed"]
        assert "nothing left" in events[0].detail


async def test_what_hooks_say_reaches_the_user(project, tmp_path, monkeypatch):
    monkeypatch.setenv("LONGHOLD_HOME", str(tmp_path / "home"))
    words = json.dumps({"systemMessage": "look here"})
    hook(tmp_path / "home" / "settings.json", "Stop", f"echo '{words}'")
    async with agent(project, "text: ok") as one:
        await run(one)
        assert one.notices.take() == ["look here"]
        assert one.notices.take() == []


async def test_an_abort_ends_a_hook_that_takes_its_time(project, tmp_path, monkeypatch):
    monkeypatch.setenv("LONGHOLD_HOME", str(tmp_path / "home"))
    hook(tmp_path / "home" / "settings.json", "Stop", "sleep 60")
    async with agent(project, "text: ok") as one:
        asyncio.get_running_loop().call_later(0.3, one.abort.set)
        await asyncio.wait_for(run(one), 10)


async def test_a_session_resumed_inside_a_plan_goes_on_planning(project):
    async with agent(project, "tool: EnterPlan {}\n---\ntext: planning", mode="bypass") as one:
        await run(one, "plan it")
        id = one.session.id
    write = 'tool: Write {"file_path": "x.txt", "content": "x"}\n---\ntext: done'
    async with agent(project, write, mode="bypass", resume=id) as again:
        await run(again, "now write")
        assert not (project / "x.txt").exists()


async def test_the_model_is_told_which_skills_there_are(project):
    place = project / ".longhold" / "skills" / "release"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(
        "---\nname: release\ndescription: how we ship\n---\nTag, then push.\n"
    )
    async with agent(
        project, 'tool: Skill {"skill": "release"}\n---\ntext: ok', mode="bypass"
    ) as one:
        texts = {section.name: section.text for section in one.engine.frame.sections}
        assert "how we ship" in texts["skills"]
        await run(one)
        assert "Tag, then push." in results(one)[0]


async def test_forks_of_an_agent_are_asked_and_paid_like_itself(project):
    script = "text: Done.\n---\ntext: A summary.\n---\ntext: Another."
    async with agent(project, script, mode="bypass") as one:
        await run(one)
        spent = one.budget.session.calls
        reply = await one.ask(ForkRequest(say="Sum up.", source="notes"))
        assert reply.text == "A summary."
        assert one.budget.session.calls == spent + 1
        one.abort.set()
        assert (await one.ask(ForkRequest(say="Again.", source="notes"))).text == "Another."


async def test_a_fork_asks_the_fallback_once_that_answers(project):
    other = ScriptedModel("text: Done.\n---\ntext: A summary.", name="claude-opus-4-5")
    async with agent(project, "text: unused", mode="bypass", fallback=other) as one:
        before = one.model
        assert one.parts.models.fall_back() is other
        one.engine.switch(other.name, "fallback")
        one.session.user("hello")
        assert (await one.ask(ForkRequest(say="Sum up.", source="notes"))).text == "Done."
        assert before.requests == []


def hooks_in_home(hooks):
    """Configure hooks: commands by event."""
    home().mkdir(parents=True, exist_ok=True)
    groups = {
        event: [{"hooks": [{"type": "command", "command": command}]}]
        for event, command in hooks.items()
    }
    (home() / "settings.json").write_text(json.dumps({"hooks": groups}))


async def test_hooks_that_are_not_supported_are_named(project):
    home().mkdir(parents=True, exist_ok=True)
    groups = {"Stop": [{"hooks": [{"type": "prompt", "prompt": "is it done?"}]}], "Landing": []}
    (home() / "settings.json").write_text(json.dumps({"hooks": groups}))
    async with agent(project, "text: ok") as one:
        told = "\n".join(one.notices.take())
        assert "only hooks of type 'command' are run, not 'prompt'" in told
        assert "no event Landing" in told


def decided(**decision):
    return json.dumps({"hookSpecificOutput": {"decision": decision}})


WRITE = 'tool: Write {"file_path": "new.txt", "content": "x"}\n---\ntext: ok'


async def test_a_hook_answers_a_question_in_the_users_place(project, tmp_path):
    yes = decided(behavior="allow")
    hooks_in_home({"PermissionRequest": f"cat > {tmp_path}/asked; echo '{yes}'"})
    async with agent(project, WRITE) as one:
        await run(one)
        assert (project / "new.txt").read_text() == "x"
    asked = json.loads((tmp_path / "asked").read_text())
    assert (asked["tool_name"], asked["tool_input"]["content"]) == ("Write", "x")
    [suggestion] = asked["permission_suggestions"]
    assert suggestion["rules"] == [{"toolName": "Edit", "ruleContent": f"{project}/new.txt"}]


async def test_a_hook_that_is_asked_can_say_no_or_leave_it_to_the_user(project):
    asked = []

    async def yes(question):
        asked.append(question.tool)
        return Answer(choice="once")

    no = decided(behavior="deny", message="not on a Friday")
    hooks_in_home({"PermissionRequest": f"echo '{no}'"})
    async with agent(project, WRITE, ask=yes) as one:
        assert (await run(one))[-1].reason == "completed"
        assert results(one) == ["Not allowed: not on a Friday."]
    stop = decided(behavior="deny", message="enough", interrupt=True)
    hooks_in_home({"PermissionRequest": f"echo '{stop}'"})
    async with agent(project, WRITE, ask=yes) as one:
        assert (await run(one))[-1].reason == "denied"
    assert asked == []
    hooks_in_home({"PermissionRequest": "echo no >&2; exit 2"})
    async with agent(project, WRITE, ask=yes) as one:
        await run(one)
        assert asked == ["Write"]


async def test_what_a_hook_makes_of_a_call_is_held_against_the_rules(project):
    changed = decided(behavior="allow", updatedInput={"file_path": "kept.txt", "content": "x"})
    hooks_in_home({"PermissionRequest": f"echo '{changed}'"})
    settings = json.loads((home() / "settings.json").read_text())
    settings["permissions"] = {"deny": ["Edit(kept.txt)"]}
    (home() / "settings.json").write_text(json.dumps(settings))
    async with agent(project, WRITE) as one:
        await run(one)
        assert results(one)[0].startswith("Not allowed: ")
        assert not (project / "kept.txt").exists() and not (project / "new.txt").exists()


@pytest.mark.parametrize("glob", ["", ".env"])
async def test_a_search_leaves_out_what_a_rule_denies(project, glob):
    (project / ".env").write_text("TOKEN=secret\n")
    (project / "open.txt").write_text("TOKEN=public\n")
    home().mkdir(exist_ok=True)
    (home() / "settings.json").write_text('{"permissions": {"deny": ["Read(.env)"]}}')
    given = json.dumps({"pattern": "TOKEN", "output_mode": "content", "glob": glob})
    async with agent(project, f"tool: Grep {given}\n---\ntext: done") as one:
        await run(one)
        assert "secret" not in results(one)[0]
        assert ("public" in results(one)[0]) == (not glob)


async def test_only_the_main_session_begins_and_ends_for_hooks(project, tmp_path):
    events = ("SessionStart", "SessionEnd", "SubagentStart", "SubagentStop")
    hooks_in_home({event: f"echo {event} >> {tmp_path}/fired" for event in events})
    script = 'tool: Agent {"description": "d", "prompt": "p"}\n---\ntext: mine\n---\ntext: done'
    async with agent(project, script, mode="bypass") as one:
        await run(one)
    fired = (tmp_path / "fired").read_text().split()
    assert fired == ["SessionStart", "SubagentStart", "SubagentStop", "SessionEnd"]


async def test_closing_twice_is_closing_once(project, tmp_path):
    hooks_in_home({"SessionEnd": f"cat >> {tmp_path}/ended"})
    async with agent(project, "text: ok") as one:
        await one.close("clear")
    assert (tmp_path / "ended").read_text().count('"reason":"clear"') == 1


class BrokenMemory:
    async def close(self):
        raise OSError("the disk is gone")


async def test_whatever_fails_at_the_end_the_other_steps_are_taken(project, tmp_path):
    hooks_in_home({"SessionEnd": f"cat >> {tmp_path}/ended"})
    opened = await build_agent(ScriptedModel("text: ok", name=MODEL), directory=project)
    await opened.memory.close()
    with pytest.raises(OSError, match="the disk is gone"):
        await replace(opened, memory=BrokenMemory()).close("clear")
    assert '"reason":"clear"' in (tmp_path / "ended").read_text()
    Log.open(opened.engine.log.path).close()


async def test_near_the_line_the_user_is_warned_once(project):
    settings = load_settings(project)
    window = replace(settings.window, limit_tokens=40_000, warning_buffer_tokens=60_000)
    (project / "long.txt").write_text("a line of words to fill the window\n" * 1_500)
    pages = [f'tool: Read {{"file_path": "long.txt", "offset": {n}}}' for n in (1, 400, 800)]
    script = "\n---\n".join((*pages, "text: a", "text: b"))
    async with agent(
        project, script, mode="bypass", settings=replace(settings, window=window)
    ) as one:
        for words in ("read", "again"):
            await run(one, words)
        line = one.engine.fullness().window.auto_tokens
        told = [said for said in one.notices.take() if "near the compaction threshold" in said]
        assert len(told) == 1
        assert f" of {line:,} tokens; older history" in told[0]
        assert "the window has 40,000" in told[0]
