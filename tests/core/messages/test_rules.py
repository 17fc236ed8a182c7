"""The API's rules, with one invalid list for each."""

import pytest
from hypothesis import given

from longhold.core.messages import (
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    block_to_wire,
)
from longhold.core.messages.rules import violations
from longhold.core.view import fold
from longhold.core.view.items import join
from properties.strategies import sequences


def user(*content):
    return Message("user", tuple(Text(text=c) if isinstance(c, str) else c for c in content))


def assistant(*content):
    return Message("assistant", tuple(Text(text=c) if isinstance(c, str) else c for c in content))


def use(id):
    return ToolUse(id=id, name="read", input={})


def result(id):
    return ToolResult(tool_use_id=id, content="ok")


def held(block):
    """The same block as JSON that nobody looked into."""
    return Opaque(raw=block_to_wire(block))


GOOD = [
    user("hi"),
    assistant(Thinking(thinking="hm"), "looking", use("a"), use("b")),
    user(result("b"), result("a"), "and hurry"),
    assistant("done"),
]


def test_a_good_list_breaks_nothing():
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
        ([user(use("a"))], "message 0: ToolUse in a message with role user"),
        ([user(Thinking(thinking=""), "x")], "message 0: Thinking in a message with role user"),
        (
            [user("x"), assistant(result("a"))],
            "message 1: ToolResult in a message with role assistant",
        ),
        ([user()], "message 0: no content"),
        ([user("x", " ")], "message 0: an empty text block"),
        (
            [user("x"), assistant(RedactedThinking(data="b"))],
            "message 1: contains only thinking",
        ),
    ],
)
def test_each_demand_is_noticed_when_it_is_broken(messages, says):
    assert any(says in told for told in violations(messages)), violations(messages)


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([user("hi"), assistant(held(use("a")))], "tool uses ['a'] are answered by []"),
        ([user(held(result("a")))], "message 0: tool results without a tool use before them"),
        ([user(held(use("a")))], "message 0: ToolUse in a message with role user"),
        ([user(held(Thinking(thinking="hm")))], "message 0: Thinking in a message with role user"),
        (
            [user("x"), assistant(held(RedactedThinking(data="b")))],
            "message 1: contains only thinking",
        ),
        (
            [
                user("hi"),
                assistant(use("a")),
                user(ToolResult(tool_use_id="a", content=(held(use("b")),))),
            ],
            "message 2: ToolUse in a tool result",
        ),
        (
            [user("hi"), assistant(Opaque(raw={"type": "tool_use", "id": 1, "name": "read"}))],
            "message 1: tool_use block with an unexpected shape",
        ),
        (
            [user(Opaque(raw={"type": "text", "text": 5}))],
            "message 0: text block with an unexpected shape",
        ),
        (
            [
                user("hi"),
                assistant(use("a")),
                user(ToolResult(tool_use_id="a", content=(Opaque(raw={"type": "image"}),))),
            ],
            "message 2: image block with an unexpected shape",
        ),
    ],
)
def test_a_block_counts_as_what_its_type_says(messages, says):
    assert any(says in told for told in violations(messages)), violations(messages)


def test_blocks_of_unknown_types_break_nothing():
    strange = Opaque(raw={"type": "tomorrow", "id": 1})
    inside = ToolResult(tool_use_id="a", content=(strange,))
    messages = [user("hi", strange), assistant(strange, use("a")), user(inside)]
    assert violations(messages) == []


def test_a_call_that_is_held_as_json_is_not_parted_from_its_result():
    messages = [user("hi"), assistant(held(use("a"))), user(held(result("a")))]
    assert violations(messages) == []
    assert violations(messages[:2]) != []


def legal_cuts(messages):
    """Anywhere but between a call and its results."""
    calls = [any(isinstance(b, ToolUse) for b in message.content) for message in messages]
    return [0, *(i + 1 for i, is_call in enumerate(calls) if not is_call)]


@given(sequences)
def test_both_sides_of_a_legal_cut_can_be_sent(entries):
    messages = fold(entries).messages()
    for cut in legal_cuts(messages):
        rest = [user("what came before, in short")]
        for message in messages[cut:]:
            join(rest, message)
        assert violations(messages[:cut]) == []
        assert violations(rest) == []


@given(sequences)
def test_a_cut_that_is_not_legal_leaves_something_that_cannot_be_sent(entries):
    messages = fold(entries).messages()
    for cut in set(range(len(messages) + 1)) - set(legal_cuts(messages)):
        assert violations(messages[:cut]) != []


def test_pictures_may_stand_on_the_users_side():
    assert violations([user(Image(source={}))]) == []
