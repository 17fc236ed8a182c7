"""When the last event of a stream is complete, for any chunking."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.gateway.answer import PassingAnswer
from longhold.gateway.endpoints import ENDPOINTS

LAST = {
    "/v1/messages": b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    "/v1/chat/completions": b"data: [DONE]\n\n",
    "/v1/responses": b'event: response.completed\ndata: {"type":"response.completed"}\n\n',
}
BEFORE = b'event: ping\ndata: {"type":"ping"}\n\n: data: [DONE] in a comment\n\n'


def finished_at(path, stream, cuts):
    """Return how much of a stream had come when its last event was found whole; None if never."""
    answer, start = PassingAnswer(ENDPOINTS[path].ends, is_stream=True), 0
    for stop in [*sorted(cuts), len(stream)]:
        if answer.feed(stream[start:stop]):
            return stop
        start = stop
    return None


@pytest.mark.parametrize("path", LAST)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@given(data=st.data())
def test_the_last_event_is_found_with_its_last_byte(path, ending, data):
    stream = (BEFORE + LAST[path]).replace(b"\n", ending)
    cuts = set(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    assert finished_at(path, stream, cuts | {len(stream)}) == len(stream)
    assert finished_at(path, stream[:-1], cuts & set(range(len(stream)))) is None


@pytest.mark.parametrize("path", LAST)
def test_a_provider_that_repeats_the_last_line_takes_no_longer(path):
    line = LAST[path].partition(b"\n")[0] + b"\n"
    stream = line * (500_000 // len(line)) + b"\n"
    assert finished_at(path, stream, range(0, len(stream), 1_000)) == len(stream)
