"""Where a message goes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.subagents.mail import (
    IdleNotice,
    Note,
    PlanAnswer,
    PlanRequest,
    ShutdownAnswer,
    ShutdownRequest,
)
from longhold.agent.subagents.mailer import (
    Around,
    Peer,
    Refusal,
    ToAgent,
    ToSession,
    route,
)

NOTE = Note(text="hi", summary="hi")
STRUCTURED = (
    ShutdownRequest(request_id="r"),
    ShutdownAnswer(request_id="r", approve=True),
    PlanRequest(request_id="r", plan="p"),
    PlanAnswer(request_id="r", approve=True),
    IdleNotice(reason="available"),
)
AROUND = Around(
    me="main",
    peers=(
        Peer(id="a1", name="finder", state="stopped"),
        Peer(id="a2", name="finder", state="running"),
        Peer(id="a3", name="writer", state="stopped"),
        Peer(id="a4", name="writer", state="stopped"),
        Peer(id="a5", name="tester", state="stopped_by_user"),
        Peer(id="a6", name="ada", is_teammate=True),
    ),
)


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("a1", (ToAgent(id="a1"),)),
        ("a2", (ToAgent(id="a2"),)),
        ("finder", (ToAgent(id="a2"),)),
        ("writer", (ToAgent(id="a4"),)),
        ("ada", (ToAgent(id="a6"),)),
        ("session:20250101-1-ab", (ToSession(session="20250101-1-ab"),)),
    ],
)
def test_an_address_means_one_place(to, expected):
    assert route(to, NOTE, AROUND) == expected


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("tester", "The user stopped tester"),
        ("a5", "only the user starts it again"),
        ("nobody", "No agent here is called 'nobody'"),
        ("main", "yourself"),
        ("../../etc/passwd", "is not an address"),
        ("ada\nben", "is not an address"),
        ("session:../x", "is not a session id"),
        ("session:", "is not a session id"),
        ("lead", "No agent here"),
    ],
)
def test_what_leads_nowhere_is_refused_with_the_reason(to, why):
    refusal = route(to, NOTE, AROUND)
    assert isinstance(refusal, Refusal) and why in refusal.why


@pytest.mark.parametrize("to", ["all", "*", "All"])
def test_all_are_those_who_run(to):
    assert route(to, NOTE, AROUND) == (ToAgent(id="a2"), ToAgent(id="a6"))
    assert isinstance(route(to, NOTE, Around(me="main")), Refusal)


def test_two_running_agents_of_one_name_are_told_apart_by_id():
    around = Around(me="main", peers=(Peer(id="a1", name="x"), Peer(id="a2", name="x")))
    refusal = route("x", NOTE, around)
    assert isinstance(refusal, Refusal) and "a1, a2" in refusal.why


def test_a_sub_agent_reaches_the_main_one():
    assert route("main", NOTE, Around(me="a1", has_main=True)) == (ToAgent(id="main"),)


@pytest.mark.parametrize("body", STRUCTURED)
@pytest.mark.parametrize("to", ["all", "session:s1", "a2", "writer"])
def test_structured_messages_stay_within_the_team(body, to):
    assert isinstance(route(to, body, AROUND), Refusal)


def test_the_main_agent_asks_and_a_teammate_answers():
    ben = Peer(id="a7", name="ben", is_teammate=True)
    member = Around(me="ada", peers=(ben,), has_main=True, is_teammate=True)
    asks, answer = ShutdownRequest(request_id="r"), ShutdownAnswer(request_id="r", approve=True)
    agrees = PlanAnswer(request_id="r", approve=True)
    assert route("ada", asks, AROUND) == (ToAgent(id="a6"),)
    assert route("main", answer, member) == (ToAgent(id="main"),)
    assert isinstance(route("ben", asks, member), Refusal)
    assert isinstance(route("ben", agrees, member), Refusal)
    assert isinstance(route("main", agrees, member), Refusal)
    assert isinstance(route("ben", answer, member), Refusal)
    assert isinstance(route("ben", PlanRequest(request_id="r", plan="p"), member), Refusal)


def test_who_is_no_teammate_answers_and_asks_nothing():
    eve = Around(me="eve", has_main=True, peers=(Peer(id="a6", name="ada", is_teammate=True),))
    assert isinstance(route("ada", ShutdownRequest(request_id="r"), eve), Refusal)
    assert isinstance(route("main", PlanRequest(request_id="r", plan="p"), eve), Refusal)


def test_a_no_comes_with_its_reason():
    refusal = route("ada", PlanAnswer(request_id="r", approve=False), AROUND)
    assert refusal == Refusal(why="Say why not.")


@given(to=st.text(max_size=20), state=st.sampled_from(["running", "stopped", "stopped_by_user"]))
def test_any_address_goes_where_it_is_known_to_or_nowhere(to, state):
    around = Around(me="main", peers=(Peer(id="a1", name="x", state=state),))
    routes = route(to, NOTE, around)
    if isinstance(routes, Refusal) or to.startswith("session:"):
        return
    assert routes == (ToAgent(id="a1"),) and state != "stopped_by_user"
