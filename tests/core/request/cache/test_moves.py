"""The differences between two requests, in prefix order."""

from longhold.core.models.protocol import Request
from longhold.core.request.cache.fingerprint import DIFF_LINES, find_change, fingerprint, moves


def taken(betas=(), **kwargs):
    return fingerprint(Request(kwargs=kwargs, betas=betas))


def say(*texts):
    return [{"role": "user", "content": [{"type": "text", "text": text}]} for text in texts]


def test_nothing_moves_when_history_grows():
    before = taken(model="m", messages=say("a", "b"))
    assert moves(before, taken(model="m", messages=say("a", "b", "c"), max_tokens=5)) == []
    longer = say("a", "b")
    longer[1]["content"] = [*longer[1]["content"], {"type": "text", "text": "more"}]
    assert moves(before, taken(model="m", messages=longer)) == []


def test_the_earliest_in_the_prefix_comes_first():
    before = taken(
        ("x",), model="m", tools=[{"name": "T"}], system="s", thinking={"a": 1}, messages=say("a")
    )
    after = taken(
        ("y",),
        model="n",
        tools=[{"name": "T", "k": 1}],
        system="t",
        thinking={"a": 2},
        messages=say("b"),
    )
    assert [move.what for move in moves(before, after)] == [
        "model",
        "tool",
        "section",
        "thinking",
        "beta",
        "message",
    ]


def test_the_block_that_changed_is_named_by_what_it_is():
    use = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "old"}

    def history(use, result):
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]

    before = taken(messages=[*history(use, result), *say("next")])
    [move] = moves(
        before, taken(messages=[*history(use, result | {"content": "new"}), *say("next")])
    )
    assert move.detail == "the result of t1 in message 2 of 3 (user) changed"
    assert move.diff().splitlines()[-2:] == ["-old", "+new"]
    [move] = moves(before, taken(messages=[*history(use | {"input": {}}, result), *say("next")]))
    assert move.detail == "the call of Read in message 1 of 3 (assistant) changed"


def test_a_history_that_became_shorter_names_what_is_gone():
    [move] = moves(taken(messages=say("a", "b", "c")), taken(messages=say("a")))
    assert move.detail == "the text in message 2 of 3 (user) is gone"


def test_tools_in_another_order_have_moved():
    tools = [{"name": "A"}, {"name": "B"}]
    [move] = moves(taken(tools=tools), taken(tools=tools[::-1]))
    assert move.detail == "tool B moved"


def test_names_are_compared_in_the_order_sent():
    assert find_change({"a": "1", "b": "2"}, {"a": "1", "b": "2"}) == ("", "")
    assert find_change({"a": "1", "b": "2"}, {"a": "9", "b": "2", "c": "3"}) == ("a", "changed")
    assert find_change({"a": "1", "b": "2"}, {"b": "2"}) == ("a", "gone")
    assert find_change({"b": "2"}, {"a": "1", "b": "2"}) == ("a", "new")
    assert find_change({"a": "1", "b": "2"}, {"a": "1"}) == ("b", "gone")


def test_a_diff_is_small():
    before = taken(system="\n".join(f"line {i}" for i in range(1_000)))
    after = taken(system="\n".join(f"row {i}" + "x" * 500 for i in range(1_000)))
    lines = moves(before, after)[0].diff().splitlines()
    assert len(lines) == DIFF_LINES
    assert max(map(len, lines)) <= 160


def test_a_marker_that_came_is_no_move():
    mark = {"type": "ephemeral"}
    system = [{"type": "text", "text": "s"}]
    one, other = taken(system=system), taken(system=[system[0] | {"cache_control": mark}])
    assert moves(one, other) == []
    assert [move.what for move in moves(other, one)] == ["marker"]
