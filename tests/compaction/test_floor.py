"""What every request holds, by weight, and what is said when that is too much."""

from holdfast.compaction.floor import floor, told
from holdfast.entries import Framed, Pinned, Replied, Said, Section, measured
from holdfast.framing import weighed
from holdfast.messages import Text
from holdfast.tokens import default_weights, weigh
from holdfast.view import fold

FRAME = weighed(
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
    numbered = (measured(type(e)(**{**_fields(e), "n": n})) for n, e in enumerate(entries, 1))
    return fold(numbered)


def _fields(entry):
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


def scales(measure):
    return weigh(measure, default_weights("claude-opus-4-6"))


def test_what_stays_is_listed_heaviest_first():
    """The frame by its parts, what is pinned, what waits; nothing that can be compacted."""
    names = [weight.name for weight in floor(view(), scales)]
    assert names == [
        "system section rules",
        "instructions",
        "tool Read",
        "pinned message #2",
        "message #6, not answered yet",
    ]


def test_the_error_says_what_to_do_about_each():
    """In numbers and in words."""
    weights = floor(view(), scales)
    said = told(weights, 100)
    total = sum(weight.tokens for weight in weights)
    assert f"about {total:,} tokens and the line is at 100" in said
    assert "AGENTS.md" in said
    assert "unpin it" in said
    assert said.endswith("Or use a model with a larger window")
