"""After several failures, no model is called for a while, also in a resumed session."""

import pytest

from compacting import SUMMARY
from longhold.core.log.entries import Compacted, Failed, Withheld
from longhold.core.messages import Text
from longhold.core.stages.compact.thrash import is_broken
from longhold.session.session import Session

NOW = 1_000_000.0


def failed(way="fork", ago=10.0):
    return Failed(what=f"compact: {way}", error="overloaded", at=NOW - ago)


def compacted(by="digest"):
    return Compacted(first=1, last=2, summary=(Text(text="so it was"),), by=by)


def tried(times, ago=10.0):
    return [entry for _ in range(times) for entry in (failed(ago=ago), compacted())]


@pytest.mark.parametrize(
    ("history", "broken"),
    [
        ([], False),
        (tried(2), False),
        (tried(3), True),
        ([*tried(2), failed(), compacted("model"), *tried(2)], False),
        ([compacted()] * 9, False),
        ([*[failed("ahead"), compacted()] * 9], False),
        ([*[failed("budget"), compacted()] * 9], False),  # as earlier versions told a refusal
        ([*[Withheld(what="compact: fork", why="over its share"), compacted()] * 9], False),
        (tried(3, ago=1_801), False),
        (tried(3, ago=-1_801), False),  # by a clock that was set back since
        ([*tried(3), *[compacted()] * 4], True),
        ([*tried(3), *[compacted()] * 5], False),
        ([*tried(3), *[compacted()] * 5, *tried(1)], True),
    ],
)
def test_it_opens_after_failures_in_a_row_and_closes_with_time_or_work(history, broken):
    assert is_broken(history, NOW) is broken


async def test_a_resumed_session_does_not_pay_for_the_same_failures_again(talk):
    one = talk(*["error: 529"] * 3, SUMMARY)
    for _ in range(3):
        await one.fill().prepare()
        one.answered()
    one.session.close()
    with Session.resume(one.engine.log.header.session, settings=one.settings) as again:
        assert is_broken(again.view.history, again.view.history[-1].at)
