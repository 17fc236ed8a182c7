"""A teammate in plan mode, over HTTP: it changes nothing before the lead approves its plan."""

import re

from casting import entries
from lazy import needs
from longhold.agent.build import build_agent
from longhold.core.log.entries import Ran, Spawned
from longhold.core.messages import text_of
from longhold.core.models import open_model
from longhold.core.settings import home
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use

needs("anthropic")

BUILDER = """---
name: builder
description: Builds what it planned.
permissionMode: plan
---
You build things.
"""
TEAMMATE = {"description": "d", "agent": "builder", "name": "ada", "teammate": True}
WRITE = {"file_path": "mast.txt", "content": "of pine"}


class Yard:
    """A lead that answers each plan with the next of these verdicts, and a builder."""

    def __init__(self, *verdicts):
        self.verdicts = list(verdicts)
        self.briefing = ""
        self.is_approved = False

    def answer(self, request: BrainRequest) -> BrainAnswer:
        said = "\n".join(block.get("text", "") for block in request.messages[-1]["content"])
        call = self._building(request, said) if "You build" in str(request.system) else None
        call = call or self._leading(said)
        return BrainAnswer(blocks=(call or text("All right."),))

    def _leading(self, said):
        if said == "start":
            return tool_use("Agent", TEAMMATE | {"prompt": "Build it."})
        if asked := re.search(r'type "plan_answer" with request_id "([^"]+)"', said):
            verdict = {"approve": self.verdicts.pop(0), "reason": "make it of oak"}
            message = {"type": "plan_answer", "request_id": asked[1], **verdict}
            return tool_use("SendMessage", {"to": "ada", "message": message})
        return None

    def _building(self, request, said):
        if said == "Build it.":
            self.briefing = str(request.system)
            return tool_use("Write", WRITE)
        if "It approves the plan" in said:
            self.is_approved = True
            return tool_use("Write", WRITE)
        plan = {"type": "plan_request", "plan": "Write mast.txt."}
        is_denied = "Not allowed" in str(request.messages[-1]) and not self.is_approved
        if "It does not approve the plan" in said or is_denied:
            return tool_use("SendMessage", {"to": "main", "message": plan})
        return text("I wait.")


async def built(directory, brain, mode):
    """Let the lead and its builder work; give what came of the builder's calls."""
    (home() / "agents").mkdir(parents=True)
    (home() / "agents" / "builder.md").write_text(BUILDER)
    with run_simulator(brain) as simulator:
        model = open_model("simulated/claude-sonnet-5-5", base_url=simulator.url, api_key="x")
        agent = await build_agent(model, directory=directory, mode=mode)
        try:
            async for _ in agent.work("start"):
                pass
            [spawned] = entries(agent, Spawned)
            log = agent.supervisor.log_of(spawned.agent).load().entries
        finally:
            await agent.close()
    return [text_of(entry.content).partition(":")[0] for entry in log if isinstance(entry, Ran)]


async def test_a_teammate_in_plan_mode_waits_for_the_leads_approval(tmp_path):
    brain = Yard(False, True)
    results = await built(tmp_path, brain, "bypass")
    assert results[:3] == ["Not allowed", "Sent", "Sent"]
    assert len(results) == 4 and not results[3].startswith("Not allowed")
    assert (tmp_path / "mast.txt").read_text() == "of pine"
    assert "plan_request" in brain.briefing


async def test_an_approval_never_widens_beyond_the_lead(tmp_path):
    results = await built(tmp_path, Yard(True), "ask")
    assert [one for one in results if one != "Sent"] == ["Not allowed", "Not allowed"]
    assert not (tmp_path / "mast.txt").exists()
