"""The parts of every request by weight, and the message if they are too large."""

from longhold.core.log.entries import Framed, Pinned, Replied, Said, Section, add_measure
from longhold.core.messages import Text
from longhold.core.policy.threshold import Weight, explain_floor, floor, itemise
from longhold.core.request.frame import weigh_frame
from longhold.core.view import fold
from longhold.core.view.tokens import default_weights, weigh

FRAME = weigh_frame(
    Framed(
        sections=(Section(name="rules", text="word " * 300),),
        tools=({"name": "Read", "description": "word " * 100},),
        instructions="word " * 200,
    )
)


def view():
    """A frame, a pinned message, an answered one, and one that waits."""
    entries = (
        FRAME,
        Said(content=(Text(text="keep " * 50),)),
        Said(content=(Text(text="forget " * 400),)),
        Replied(response_id="r", content=(Text(text="fine"),), stop_reason="end_turn"),
        Pinned(targets=(2,)),
        Said(content=(Text(text="what now?"),)),
    )
    numbered = (add_measure(type(e)(**{**_fields(e), "n": n})) for n, e in enumerate(entries, 1))
    return fold(numbered)


def _fields(entry):
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


def scales(measure):
    return weigh(measure, default_weights("claude-opus-4-6"))


def test_what_stays_is_listed_heaviest_first():
    names = [weight.name for weight in floor(view(), scales)]
    assert names == [
        "system section rules",
        "instructions",
        "tool Read",
        "pinned message #2",
        "message #6, not answered yet",
    ]


def test_the_error_says_what_to_do_about_each():
    weights = floor(view(), scales)
    said = explain_floor(weights, 100)
    total = sum(weight.tokens for weight in weights)
    assert f"about {total:,} tokens and the window's limit is 100" in said
    assert "AGENTS.md" in said
    assert "unpin it" in said
    assert said.endswith("Or use a model with a larger window")


def test_the_error_groups_by_kind_and_sums_up_the_rest():
    tools = [Weight(kind="tools", name=f"tool T{i}", tokens=10, advice="-") for i in range(9)]
    said = itemise([Weight(kind="system", name="rules", tokens=40, advice="cut"), *tools])
    assert said.startswith("By kind: tools 90, system 40. Heaviest: rules 40 (cut); tool T0 10")
    assert said.endswith("; and 4 more: 40")


def test_a_floor_below_the_line_is_not_called_too_high():
    weights = floor(view(), scales)
    total = sum(weight.tokens for weight in weights)
    said = explain_floor(weights, total + 100, total + 200)
    assert "cannot help" not in said
    assert f"about {total + 200:,} tokens are left, {total:,} of them in every request" in said


def test_advice_on_a_tool_says_where_it_comes_from():
    frame = Framed(tools=({"name": "mcp__db__query"}, {"name": "Read"}))
    advice = {w.name: w.advice for w in floor(fold([add_measure(weigh_frame(frame))]), scales)}
    assert advice["tool mcp__db__query"] == "take the MCP server db out"
    assert "fewer tools" in advice["tool Read"]
