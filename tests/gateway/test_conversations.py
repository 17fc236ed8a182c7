"""Which conversation a request belongs to."""

import pytest

from gateway_parts import Agent
from longhold.core.log import load
from longhold.core.log.entries import Rewound
from longhold.core.settings import home
from longhold.gateway.conversations import Lineage, choose


def line(known, size, has_answer=False):
    return Lineage(known=known, size=size, has_answer=has_answer)


def logs():
    return sorted(home().glob("projects/*/gw-*.jsonl"))


def test_a_list_that_goes_on_belongs_to_the_longest_one_it_continues():
    assert choose([line(1, 1), line(5, 5), line(3, 3)], is_named=False) == 1


def test_a_list_that_goes_on_comes_before_one_that_was_rewound():
    assert choose([line(9, 12, has_answer=True), line(5, 5)], is_named=True) == 1


def test_conversations_that_only_begin_alike_are_kept_apart():
    assert choose([line(1, 9)], is_named=False) is None


def test_a_client_that_names_its_session_may_rewind_to_its_first_message():
    assert choose([line(1, 9)], is_named=True) == 0


def test_an_answer_in_common_tells_a_rewind():
    assert choose([line(4, 9, has_answer=True)], is_named=False) == 0


def test_nothing_in_common_is_a_new_conversation():
    assert choose([line(0, 4)], is_named=True) is None
    assert choose([], is_named=True) is None


@pytest.fixture
def quick(gateway, upstream):
    """Clients of one gateway whose model answers at once."""
    upstream.simulation.brain.files = 0
    url = gateway().url
    return lambda **headers: Agent(url, **headers)


def test_one_conversation_is_one_log(quick):
    agent = quick()
    for words in ("Hello.", "And now?", "And then?"):
        agent.ask(words)
    assert len(logs()) == 1
    assert len({headers["x-longhold-session"] for headers in agent.headers}) == 1


def test_a_retry_is_the_same_conversation(quick):
    agent = quick()
    agent.ask("Hello.")
    del agent.messages[1:]
    agent.call()
    assert len(logs()) == 1


def test_side_calls_and_sub_agents_have_logs_of_their_own(quick):
    session = {"x-claude-code-session-id": "s-1"}
    main, child = quick(**session), quick(**session, **{"x-claude-code-agent-id": "a-1"})
    main.ask("Hello.")
    child.ask("Hello.")
    side = quick(**session)
    side.ask("Write a title for: Hello.")
    main.ask("Go on.")
    assert len(logs()) == 3
    assert main.headers[0]["x-longhold-session"] == main.headers[1]["x-longhold-session"]
    assert not any(isinstance(e, Rewound) for log in logs() for e in load(log).entries)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"key": "sk-1"}, {"key": "sk-2"}),
        ({"x-claude-code-session-id": "s-1"}, {"x-claude-code-session-id": "s-2"}),
    ],
)
def test_credentials_and_sessions_never_meet(quick, one, other):
    first, second = quick(**one), quick(**other)
    first.ask("Hello.")
    second.ask("Hello.")
    first.ask("Go on.")
    assert len(logs()) == 2


def test_models_are_kept_apart(quick):
    agent = quick()
    agent.ask("Hello.")
    del agent.messages[1:]
    agent.call(model="claude-opus-4-7")
    assert len(logs()) == 2


def test_an_edited_message_rewinds_its_conversation(quick):
    agent = quick(**{"x-claude-code-session-id": "s-1"})
    agent.ask("Hello.")
    agent.ask("Go left.")
    del agent.messages[2:]
    agent.ask("Go right.")
    [log] = logs()
    [rewound] = [entry for entry in load(log).entries if isinstance(entry, Rewound)]
    assert rewound.reason == "edited"


def test_a_client_that_compacts_by_itself_begins_a_new_lineage(quick):
    agent = quick(**{"x-claude-code-session-id": "s-1"})
    agent.ask("Hello.")
    agent.ask("Go left.")
    agent.messages = []
    agent.ask("This session continues from one that ran out of context: we went left.")
    assert len(logs()) == 2
    assert not any(isinstance(e, Rewound) for log in logs() for e in load(log).entries)
