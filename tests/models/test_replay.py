"""Tests of recorded answers."""

import pytest

from holdfast.errors import RequestRejected
from holdfast.messages import Text, Usage
from holdfast.models import Reply, Request, collect
from holdfast.models.replay import ReplayModel

REQUEST = Request(kwargs={"model": "m", "messages": []})
REPLIES = tuple(
    Reply(
        response_id=f"m{number}",
        model="x",
        content=(Text(text=str(number)),),
        stop_reason="end_turn",
        usage=Usage(input_tokens=number),
    )
    for number in range(2)
)


async def test_recorded_answers_come_back_whole():
    """Each request gets the next recorded reply, field for field."""
    model = ReplayModel(REPLIES)
    assert [await collect(model.stream(REQUEST)) for _ in REPLIES] == [*REPLIES]
    assert model.requests == [REQUEST, REQUEST]


async def test_the_end_of_the_recording_is_said():
    """A request too many is an error."""
    with pytest.raises(RequestRejected, match="over after 0 answers"):
        await collect(ReplayModel(()).stream(REQUEST))
