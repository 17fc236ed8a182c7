"""The recipient of a message."""

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
    Unsent,
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


def _refused(to, body, around):
    with pytest.raises(Unsent) as refusal:
        route(to, body, around)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("a1", ("a1",)),
        ("a2", ("a2",)),
        ("finder", ("a2",)),
        ("writer", ("a4",)),
        ("ada", ("a6",)),
        ("session:20250101-1-ab", ("session:20250101-1-ab",)),
    ],
)
def test_an_address_means_one_place(to, expected):
    assert route(to, NOTE, AROUND) == expected


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("tester", "The user stopped tester"),
        ("a5", "only the user starts it again"),
        ("nobody", "No other agent here is called 'nobody'"),
        ("main", "No other agent here"),
        ("../../etc/passwd", "is not an address"),
        ("ada\nben", "is not an address"),
        ("session:../x", "is not a session id"),
        ("session:", "is not a session id"),
        ("lead", "No other agent here"),
    ],
)
def test_what_leads_nowhere_is_refused_with_the_reason(to, why):
    assert why in _refused(to, NOTE, AROUND)


@pytest.mark.parametrize("to", ["all", "*", "All"])
def test_all_are_those_who_run(to):
    assert route(to, NOTE, AROUND) == ("a2", "a6")
    assert _refused(to, NOTE, Around(me="main"))


def test_two_running_agents_of_one_name_are_told_apart_by_id():
    around = Around(me="main", peers=(Peer(id="a1", name="x"), Peer(id="a2", name="x")))
    assert "a1, a2" in _refused("x", NOTE, around)


def test_a_sub_agent_reaches_the_main_one():
    assert route("main", NOTE, Around(me="a1", has_main=True)) == ("main",)


@pytest.mark.parametrize("body", STRUCTURED)
@pytest.mark.parametrize("to", ["all", "session:s1", "a2", "writer"])
def test_structured_messages_stay_within_the_team(body, to):
    assert _refused(to, body, AROUND)


def test_the_main_agent_asks_and_a_teammate_answers():
    ben = Peer(id="a7", name="ben", is_teammate=True)
    member = Around(me="ada", peers=(ben,), has_main=True, is_teammate=True)
    asks, answer = ShutdownRequest(request_id="r"), ShutdownAnswer(request_id="r", approve=True)
    agrees = PlanAnswer(request_id="r", approve=True)
    assert route("ada", asks, AROUND) == ("a6",)
    assert route("main", answer, member) == ("main",)
    assert _refused("ben", asks, member)
    assert _refused("ben", agrees, member)
    assert _refused("main", agrees, member)
    assert _refused("ben", answer, member)
    assert _refused("ben", PlanRequest(request_id="r", plan="p"), member)


def test_who_is_no_teammate_answers_and_asks_nothing():
    eve = Around(me="eve", has_main=True, peers=(Peer(id="a6", name="ada", is_teammate=True),))
    assert _refused("ada", ShutdownRequest(request_id="r"), eve)
    assert _refused("main", PlanRequest(request_id="r", plan="p"), eve)


def test_a_no_comes_with_its_reason():
    assert _refused("ada", PlanAnswer(request_id="r", approve=False), AROUND) == "Say why not."


@given(to=st.text(max_size=20), state=st.sampled_from(["running", "stopped", "stopped_by_user"]))
def test_any_address_goes_where_it_is_known_to_or_nowhere(to, state):
    around = Around(me="main", peers=(Peer(id="a1", name="x", state=state),))
    try:
        routes = route(to, NOTE, around)
    except Unsent:
        return
    if not to.startswith("session:"):
        assert routes == ("a1",) and state != "stopped_by_user"
