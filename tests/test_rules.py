"""What the API demands, one broken list for each demand."""

import pytest
from hypothesis import given

from holdfast.messages import Image, Message, RedactedThinking, Text, Thinking, ToolResult, ToolUse
from holdfast.rules import RULES, legal_cuts, violations
from holdfast.view import fold
from properties.strategies import sequences


def user(*content):
    return Message("user", tuple(Text(text=c) if isinstance(c, str) else c for c in content))


def assistant(*content):
    return Message("assistant", tuple(Text(text=c) if isinstance(c, str) else c for c in content))


def use(id):
    return ToolUse(id=id, name="read", input={})


def result(id):
    return ToolResult(tool_use_id=id, content="ok")


GOOD = [
    user("hi"),
    assistant(Thinking(thinking="hm"), "looking", use("a"), use("b")),
    user(result("b"), result("a"), "and hurry"),
    assistant("done"),
]


def test_a_good_list_breaks_nothing():
    """Neither does an empty one."""
    assert violations(GOOD) == []
    assert violations([]) == []


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([user("hi"), assistant(use("a"))], "tool uses ['a'] are answered by []"),
        ([user("hi"), assistant(use("a")), user("x")], "tool uses ['a'] are answered by []"),
        (
            [user("hi"), assistant(use("a")), user(result("a"), result("a"))],
            "tool uses ['a'] are answered by ['a', 'a']",
        ),
        ([user("hi"), assistant(use("a")), user(result("b"))], "answered by ['b']"),
        ([user(result("a"))], "message 0: tool results without a tool use before them"),
        ([user("hi"), assistant("x"), user(result("a"))], "results without a tool use"),
        (
            [user("hi"), assistant(use("a")), user("x", result("a"))],
            "message 2: a tool result comes after other content",
        ),
        (
            [
                user("1"),
                assistant(use("a")),
                user(result("a")),
                assistant(use("a")),
                user(result("a")),
            ],
            "message 3: tool use id 'a' is used twice",
        ),
        ([assistant("hi")], "message 0: the first message must be the user's"),
        ([user("a"), user("b")], "message 1: two user messages in a row"),
        ([user("a"), assistant("b"), assistant("c")], "message 2: two assistant messages in a row"),
        ([user(use("a"))], "message 0: ToolUse in a message of the user"),
        ([user(Thinking(thinking=""), "x")], "message 0: Thinking in a message of the user"),
        (
            [user("x"), assistant(result("a"))],
            "message 1: ToolResult in a message of the assistant",
        ),
        ([user()], "message 0: no content"),
        ([user("x", " ")], "message 0: an empty text block"),
        (
            [user("x"), assistant(RedactedThinking(data="b"))],
            "message 1: thinking without anything it led to",
        ),
    ],
)
def test_each_demand_is_noticed_when_it_is_broken(messages, says):
    """And told in plain words, with the place."""
    assert any(says in told for told in violations(messages)), violations(messages)


def test_every_rule_has_a_name_of_its_own():
    """Names are what the user reads."""
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_a_list_may_be_cut_anywhere_but_between_a_call_and_its_results():
    """Before the first message and after the last included."""
    assert legal_cuts(GOOD) == [0, 1, 3, 4]
    assert legal_cuts([]) == [0]


def test_a_list_that_ends_in_a_call_may_not_be_cut_there():
    """Its result is still to come."""
    assert legal_cuts([user("hi"), assistant(use("a"))]) == [0, 1]


@given(sequences)
def test_cutting_where_it_is_legal_keeps_every_pair(entries):
    """Neither half of a cut has an unanswered call or an orphaned result."""
    messages = fold(entries).messages()
    for cut in legal_cuts(messages):
        for half in (messages[:cut], messages[cut:]):
            assert not [told for told in violations(half) if "answered at once" in told]


def test_pictures_may_stand_on_the_users_side():
    """A picture alone is content enough."""
    assert violations([user(Image(source={}))]) == []
