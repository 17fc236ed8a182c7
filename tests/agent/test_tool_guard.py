"""Calls that a session allows without asking: by rules, mode and hooks. Others are denied."""

import json
from contextlib import asynccontextmanager

import pytest

from longhold.agent.build import build_agent
from longhold.agent.tools.standard import STANDARD
from longhold.core.messages import ToolUse
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import home
from longhold.core.turn.round import Allowed, Denied


@asynccontextmanager
async def agent(project, mode="ask"):
    opened = await build_agent(ScriptedModel("text: x"), directory=project, mode=mode)
    try:
        yield opened
    finally:
        await opened.close()


async def judge(opened, name, readable=(), **given):
    permit = opened.parts.guard.permit_unasked(readable)
    return await permit(
        ToolUse(id="t", name=name, input=given),
        next(tool for tool in STANDARD if tool.name == name),
    )


@pytest.mark.parametrize("mode", ["ask", "plan", "bypass"])
async def test_what_lies_inside_may_be_read(tmp_path, mode):
    (tmp_path / "a.py").write_text("x")
    async with agent(tmp_path, mode) as one:
        assert isinstance(await judge(one, "Read", file_path=str(tmp_path / "a.py")), Allowed)


@pytest.mark.parametrize("mode", ["ask", "accept_edits", "bypass"])
async def test_what_would_be_asked_is_denied(tmp_path, mode):
    async with agent(tmp_path, mode) as one:
        verdict = await judge(one, "Read", file_path="/etc/hostname")
        assert isinstance(verdict, Denied) and "outside" in verdict.reason


async def test_a_link_that_leads_out_is_outside(tmp_path):
    (tmp_path / "secret").write_text("x")
    project = tmp_path / "project"
    project.mkdir()
    (project / "link").symlink_to(tmp_path / "secret")
    async with agent(project) as one:
        assert isinstance(await judge(one, "Read", file_path=str(project / "link")), Denied)


async def test_what_is_handed_to_it_may_be_read_besides(tmp_path):
    project, logs = tmp_path / "project", tmp_path / "logs"
    project.mkdir()
    logs.mkdir()
    (logs / "a.jsonl").write_text("x")
    async with agent(project) as one:
        path = str(logs / "a.jsonl")
        assert isinstance(await judge(one, "Read", (logs,), file_path=path), Allowed)
        assert isinstance(await judge(one, "Read", (logs,), file_path=str(tmp_path)), Denied)


async def test_a_hooks_no_holds_beside_the_conversation_too(tmp_path):
    command = {"type": "command", "command": "echo 'not that one' >&2; exit 2"}
    home().mkdir(parents=True, exist_ok=True)
    (home() / "settings.json").write_text(
        json.dumps({"hooks": {"PreToolUse": [{"hooks": [command]}]}})
    )
    (tmp_path / "a.py").write_text("x")
    async with agent(tmp_path) as one:
        verdict = await judge(one, "Read", file_path=str(tmp_path / "a.py"))
        assert isinstance(verdict, Denied) and "not that one" in verdict.reason
