"""A preview of what a compaction would do."""

import pytest

from longhold.core.log.entries import Ran, Replied, Said, add_measure
from longhold.core.messages import Image, Text, Thinking, ToolUse
from longhold.core.settings import Settings
from longhold.core.stages.compact.compose import Manner
from longhold.core.stages.compact.owner import CompactRequest
from longhold.core.view import fold
from longhold.session.preview import natural_seams, preview
from longhold.session.scratch_session import draft_compaction, open_scratch
from longhold.session.session import Session

BODY = "\n".join(f"value_{i} = compute(value_{i - 1}, {i})" for i in range(400))
MANUAL = CompactRequest(trigger="manual", by_model=False)


def turns(*starts: float):
    """One turn for each time it begins at: a request, a tool call with its result, an answer."""
    entries: list = []
    for number, at in enumerate(starts):
        n = len(entries)
        use = ToolUse(id=f"t{number}", name="Read", input={"file_path": f"/p/{number}.py"})
        thought = Thinking(thinking="hm", signature="s")
        entries += [
            Said(n=n + 1, at=at, content=(Text(text=f"request number {number}"),)),
            Replied(n=n + 2, at=at + 1, response_id=f"a{n}", content=(thought, use)),
            Ran(n=n + 3, at=at + 2, tool_use_id=use.id, content=BODY),
            Replied(n=n + 4, at=at + 3, response_id=f"b{n}", content=(Text(text="done"),)),
        ]
    return [add_measure(entry) for entry in entries]


async def shown(paper: Session):
    return preview(paper, await draft_compaction(paper, MANUAL, Manner()))


async def test_what_goes_is_counted_and_what_stays_too():
    with open_scratch(turns(1, 100, 200), Settings(), model="claude-opus-4-6") as paper:
        told = await shown(paper)
    assert (told.covered, told.kept, told.first, told.last) == (9, 0, 1, 12)
    assert (told.gone.said, told.gone.verbatim, told.gone.answers) == (3, 3, 6)
    assert told.gone.results == {"Read": 3}
    assert told.after_tokens < told.before_tokens
    assert told.by == "digest"


async def test_pictures_are_counted_wherever_they_stand():
    picture = Image(source={"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="})
    entries = turns(1, 100)
    entries[0] = add_measure(Said(n=1, at=1, content=(Text(text="look"), picture)))
    entries[2] = add_measure(Ran(n=3, at=3, tool_use_id="t0", content=(Text(text=BODY), picture)))
    with open_scratch(entries, Settings(), model="claude-opus-4-6") as paper:
        assert (await shown(paper)).gone.pictures == 2


async def test_prices_are_those_of_the_model_and_unknown_where_none_is_published():
    with open_scratch(turns(1, 100), Settings(), model="claude-opus-4-6") as paper:
        price = (await shown(paper)).price
    assert price is not None
    assert 0 < price.call_after < price.call_before < price.asking
    with open_scratch(turns(1, 100), Settings(), model="nobody-knows-me") as paper:
        assert (await shown(paper)).price is None


@pytest.mark.parametrize(("most", "starts"), [(1, [9]), (2, [5, 9])])
def test_seams_are_new_requests_after_the_longest_pauses(most, starts):
    found = natural_seams(fold(turns(0, 60, 9_000, 9_010)), most)
    assert [seam.start for seam in found] == starts
    assert found[-1].pause_seconds == 9_000 - 63
    assert (found[-1].up_to, found[-1].said) == (8, "request number 2")


def test_without_times_the_seam_nearest_the_middle_comes_first():
    entries = [type(entry)(**{**_fields(entry), "at": 0.0}) for entry in turns(1, 2, 3, 4, 5)]
    (seam,) = natural_seams(fold(entries), 1)
    assert seam.start in (9, 13)
    assert seam.pause_seconds == 0


def _fields(entry):
    return {name: getattr(entry, name) for name in entry.__struct_fields__}
