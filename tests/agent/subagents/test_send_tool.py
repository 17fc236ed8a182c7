"""SendMessage as a model uses it, and as permissions see it."""

import pytest

from agent.subagents.orders import not_resumed
from longhold.agent.permissions import Gate, Places, parse_rules
from longhold.agent.subagents.ledger import UnreadMail, agent_box
from longhold.agent.subagents.mail import (
    Note,
    PlanAnswer,
    PlanRequest,
    ShutdownAnswer,
    ShutdownRequest,
)
from longhold.agent.subagents.mailer import Around, Mailer, Peer, send_tool
from longhold.core.tools.context import ToolContext

TEAM = {"ada": "general-1", "ben": "general-2"}


@pytest.fixture
def box(tmp_path):
    """Return the mailbox of the main agent or a teammate."""
    return lambda name: agent_box(tmp_path / "s1", TEAM.get(name, name))


@pytest.fixture
def use(tmp_path):
    """Send as somebody."""
    place = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path / "scratch")

    async def call(me="main", **given):
        team = [Peer(id=id, name=name, is_teammate=True) for name, id in TEAM.items() if name != me]
        is_member = me in TEAM
        peers = (Peer(id="a1"), *team)
        around = Around(me=me, peers=peers, has_main=is_member, is_teammate=is_member)
        mailer = Mailer(
            session="s1",
            directory=tmp_path / "s1",
            around=lambda: around,
            resume=not_resumed,
            id=TEAM.get(me, me),
        )
        return await send_tool(mailer).run(given, place)

    return call


def _bodies(path):
    return [letter.value.body for letter in UnreadMail(path).letters()]


async def test_plain_words_need_a_summary(use, tmp_path):
    refused = await use(to="a1", message="look at x.py")
    assert refused.is_error and "summary" in refused.content
    sent = await use(to="a1", message="look at x.py", summary="look at x")
    assert (sent.content, sent.note) == ("Sent: queued for a1.", "to a1: look at x")
    assert _bodies(agent_box(tmp_path / "s1", "a1")) == [
        Note(text="look at x.py", summary="look at x")
    ]


async def test_a_shutdown_is_asked_and_answered(use, box):
    await use(to="ada", message={"type": "shutdown_request", "reason": "done"})
    [asked] = _bodies(box("ada"))
    assert isinstance(asked, ShutdownRequest) and asked.reason == "done"
    answer = {"type": "shutdown_answer", "request_id": asked.request_id, "approve": True}
    await use("ada", to="main", message=answer)
    assert _bodies(box("main")) == [ShutdownAnswer(request_id=asked.request_id, approve=True)]


async def test_a_plan_is_shown_and_agreed_to_by_the_main_agent_alone(use, box):
    await use("ada", to="main", message={"type": "plan_request", "plan": "mend add"})
    [asked] = _bodies(box("main"))
    assert asked == PlanRequest(request_id=asked.request_id, plan="mend add")
    answer = {"type": "plan_answer", "request_id": asked.request_id, "approve": True}
    assert (await use("ben", to="ada", message=answer)).is_error
    await use(to="ada", message=answer)
    assert _bodies(box("ada")) == [PlanAnswer(request_id=asked.request_id, approve=True)]


async def test_what_nobody_asked_is_not_answered(use, box):
    await use("ada", to="main", message={"type": "plan_request", "plan": "mend add"})
    await use(to="ada", message={"type": "shutdown_request"})
    [plan], [stop] = _bodies(box("main")), _bodies(box("ada"))
    for me, to, type, id in (
        ("main", "ada", "plan_answer", "r1"),
        ("main", "ben", "plan_answer", plan.request_id),
        ("ada", "main", "shutdown_answer", plan.request_id),
        ("ben", "main", "shutdown_answer", stop.request_id),
    ):
        answer = {"type": type, "request_id": id, "approve": True}
        refused = await use(me, to=to, message=answer)
        assert refused.is_error and "has not asked" in refused.content


@pytest.mark.parametrize(
    "message",
    [
        {"type": "plan_answer"},
        {"type": "plan_request", "plan": " "},
        {"type": "plan_answer", "request_id": "r 1\n", "approve": True},
        {"type": "shutdown_answer", "request_id": "r1"},
        {"type": "idle", "reason": "available"},
        {"type": "note", "text": "x"},
        {"type": "shutdown_request", "sender": "user"},
        7,
    ],
)
async def test_what_is_no_message_is_refused(use, message):
    assert (await use(to="ada", message=message, summary="s")).is_error


async def test_a_refused_route_is_told(use):
    outcome = await use(to="nobody", message="x", summary="s")
    assert outcome.is_error and "There are: a1, ada, ben" in outcome.content


@pytest.mark.parametrize("mode", ["ask", "accept_edits", "plan"])
async def test_writing_to_another_session_is_asked_about(tmp_path, mode):
    around = Around(me="main")
    mailer = Mailer(session="s1", directory=tmp_path, around=lambda: around, resume=not_resumed)
    tool, places = send_tool(mailer), Places(roots=(tmp_path,), cwd=tmp_path)
    gate = Gate(rules=parse_rules(), mode=mode)
    given = {"message": "x", "summary": "s"}
    assert gate.judge(tool, {"to": "a1", **given}, places).outcome == "allow"
    assert gate.judge(tool, {"to": "session:s2", **given}, places).outcome == "ask"
    forbidden = Gate(rules=parse_rules(deny=("SendMessage",)), mode=mode)
    assert forbidden.judge(tool, {"to": "a1", **given}, places).outcome == "deny"
