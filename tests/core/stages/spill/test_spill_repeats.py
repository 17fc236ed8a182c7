"""Repeated results: found by content, as long as the first is shown."""

from longhold.core.log.entries import Ran, Replied
from longhold.core.messages import Image, Text, ToolUse
from longhold.core.stages.spill.spill import Repeats, key_of
from longhold.core.view import View

PICTURE = Image(source={})


def grown(view, id, content):
    """Let a view take in a call and its result."""
    n = len(view.history) + 1
    use = ToolUse(id=id, name="Read", input={})
    view.apply(Replied(n=n, response_id=f"r{n}", content=(use,)))
    view.apply(Ran(n=n + 1, tool_use_id=id, content=content))
    return view


def test_the_first_with_the_same_content_is_found():
    repeats, view = Repeats(), grown(View(), "a", "same")
    assert repeats.first_of(view, Ran(tool_use_id="b", content="same")).tool_use_id == "a"
    assert repeats.first_of(view, Ran(tool_use_id="c", content="other")) is None
    grown(view, "c", "other")
    assert repeats.first_of(view, Ran(tool_use_id="d", content="other")).tool_use_id == "c"


def test_a_result_does_not_repeat_itself():
    view = grown(View(), "a", "same")
    assert Repeats().first_of(view, Ran(tool_use_id="a", content="same")) is None


def test_equal_keys_are_not_taken_for_equal_contents():
    assert key_of((Text(text="x"),)) == hash(("x",))
    view = grown(View(), "a", (Text(text="x", extra={"n": 1}),))
    assert Repeats().first_of(view, Ran(tool_use_id="b", content=(Text(text="x"),))) is None


def test_what_is_not_only_text_has_no_key():
    assert key_of((Text(text="x"), PICTURE)) is None
    view = grown(View(), "a", (PICTURE,))
    assert Repeats().first_of(view, Ran(tool_use_id="b", content=(PICTURE,))) is None
