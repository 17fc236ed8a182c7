"""Calls that share a prefix: one leads, the others start when it is answered."""

import asyncio

from longhold.core.turn.fork.run import PrefixLeader


class Clock:
    now = 1_000.0

    def __call__(self):
        return self.now


async def settled():
    """Let everything that can run, run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def waiting(leader, *keys):
    """Let calls come in; give those that still wait."""
    tasks = [asyncio.create_task(leader.wait(key)) for key in keys]
    await settled()
    return tasks


async def test_the_first_goes_ahead_and_the_others_wait_for_its_first_byte():
    leader = PrefixLeader()
    assert await leader.wait("a") is not None
    second, third = await waiting(leader, "a", "a")
    assert not second.done()
    leader.began("a", 300.0)
    assert await second is await third is None


async def test_other_prefixes_do_not_wait():
    leader = PrefixLeader()
    assert await leader.wait("a") is not None
    assert await leader.wait("b") is not None


async def test_when_the_one_ahead_gives_up_exactly_one_takes_its_place():
    leader = PrefixLeader()
    ahead = await leader.wait("a")
    second, third = await waiting(leader, "a", "a")
    leader.give_up("a", ahead)
    await settled()
    assert (second.done(), third.done()) == (True, False)
    assert second.result() is not None
    leader.began("a", 300.0)
    assert await third is None


async def test_one_that_gave_up_before_does_not_speak_for_its_successor():
    leader = PrefixLeader()
    ahead = await leader.wait("a")
    leader.give_up("a", ahead)
    assert await leader.wait("a") is not None
    leader.give_up("a", ahead)
    (third,) = await waiting(leader, "a")
    assert not third.done()
    third.cancel()


async def test_what_has_begun_counts_for_its_lifetime():
    clock = Clock()
    leader = PrefixLeader(clock)
    leader.began("a", 300.0)
    assert await leader.wait("a") is None
    clock.now += 301.0
    assert await leader.wait("a") is not None


async def test_a_clock_that_was_set_back_lets_somebody_go_ahead_again():
    clock = Clock()
    leader = PrefixLeader(clock)
    leader.began("a", 300.0)
    clock.now -= 100_000
    assert await leader.wait("a") is not None


async def test_nobody_waits_for_ever():
    leader = PrefixLeader(wait_seconds=0.01)
    await leader.wait("a")
    assert await leader.wait("a") is None


async def test_one_who_is_cancelled_while_waiting_holds_up_nobody():
    leader = PrefixLeader()
    await leader.wait("a")
    second, third = await waiting(leader, "a", "a")
    second.cancel()
    leader.began("a", 300.0)
    assert await third is None


def test_old_prefixes_are_forgotten():
    clock = Clock()
    leader = PrefixLeader(clock)
    for i in range(100):
        leader.began(f"{i}", 300.0)
        clock.now += 60.0
    assert len(leader._until) <= 5
