"""A compaction never covers content that the model has not answered yet."""

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.entries import Compacted, Ran, Replied, Said
from longhold.core.messages import Text, ToolUse
from longhold.core.stages.compact.segment import whole_segment
from longhold.core.view import View
from longhold.core.view.items import Round, Spoken

STEPS = st.lists(st.sampled_from(["say", "answer", "call", "result", "compact"]), max_size=40)


def play(steps):
    """Fold a session of these steps, leaving out those that are not possible at their place."""
    view, waiting = View(), []
    for step in steps:
        n = len(view.history) + 1
        if step == "say" and not waiting:
            view.apply(Said(n=n, content=(Text(text=f"request {n}"),)))
        elif step == "answer" and not waiting:
            view.apply(Replied(n=n, response_id=f"r{n}", content=(Text(text="so"),)))
        elif step == "call" and not waiting:
            uses = tuple(ToolUse(id=f"t{n}-{i}", name="Ask", input={}) for i in range(2))
            waiting = [use.id for use in uses]
            view.apply(Replied(n=n, response_id=f"r{n}", content=uses))
        elif step == "result" and waiting:
            view.apply(Ran(n=n, tool_use_id=waiting.pop(0), content=f"result {n}"))
        elif step == "compact" and (segment := whole_segment(view)) is not None:
            compact(view, segment)
    return view


def compact(view, segment):
    summary = (Text(text="a summary"),)
    n = len(view.history) + 1
    view.apply(Compacted(n=n, first=segment.first, last=segment.last, summary=summary))


def protected(view):
    """List the items behind the model's last answer, and that answer if it waits for results."""
    rounds = [i for i, item in enumerate(view.items) if isinstance(item, Round)]
    start = rounds[-1] if rounds else -1
    if rounds and not view.items[start].tool_uses():
        start += 1
    behind = view.items[max(start, 0) :]
    is_said = [item for item in behind if isinstance(item, Spoken) and item.is_asked()]
    return [item for item in behind if isinstance(item, Round)] + is_said


@given(STEPS)
def test_a_compaction_covers_nothing_that_waits_for_an_answer(steps):
    view = play(steps)
    before, segment = protected(view), whole_segment(view)
    if segment is None:
        return
    assert not [item for item in segment.items if item in before]
    compact(view, segment)
    assert [item for item in before if item not in view.items] == []


@given(STEPS)
def test_a_compaction_is_not_repeated_without_new_entries(steps):
    view = play(steps)
    if (segment := whole_segment(view)) is not None:
        compact(view, segment)
        assert whole_segment(view) is None
