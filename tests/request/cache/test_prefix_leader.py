"""Calls that share a prefix: one goes ahead, the others follow when it has begun."""

import asyncio

from holdfast.request.cache.prefix_leader import Vanguard


class Clock:
    now = 1_000.0

    def __call__(self):
        return self.now


async def settled():
    """Let everything that can run, run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def waiting(vanguard, *keys):
    """Let calls come in; give those that still wait."""
    tasks = [asyncio.create_task(vanguard.wait(key)) for key in keys]
    await settled()
    return tasks


async def test_the_first_goes_ahead_and_the_others_wait_for_its_first_byte():
    """Then all of them go."""
    vanguard = Vanguard()
    assert await vanguard.wait("a") is not None
    second, third = await waiting(vanguard, "a", "a")
    assert not second.done()
    vanguard.began("a", 300.0)
    assert await second is await third is None


async def test_other_prefixes_do_not_wait():
    """Each has one of its own that goes ahead."""
    vanguard = Vanguard()
    assert await vanguard.wait("a") is not None
    assert await vanguard.wait("b") is not None


async def test_when_the_one_ahead_gives_up_exactly_one_takes_its_place():
    """The rest go on waiting, for that one."""
    vanguard = Vanguard()
    ahead = await vanguard.wait("a")
    second, third = await waiting(vanguard, "a", "a")
    vanguard.gave_up("a", ahead)
    await settled()
    assert (second.done(), third.done()) == (True, False)
    assert second.result() is not None
    vanguard.began("a", 300.0)
    assert await third is None


async def test_one_that_gave_up_before_does_not_speak_for_its_successor():
    """Giving up twice lets nobody else go ahead."""
    vanguard = Vanguard()
    ahead = await vanguard.wait("a")
    vanguard.gave_up("a", ahead)
    assert await vanguard.wait("a") is not None
    vanguard.gave_up("a", ahead)
    (third,) = await waiting(vanguard, "a")
    assert not third.done()
    third.cancel()


async def test_what_has_begun_counts_for_its_lifetime():
    """After that somebody has to go ahead again."""
    clock = Clock()
    vanguard = Vanguard(clock)
    vanguard.began("a", 300.0)
    assert await vanguard.wait("a") is None
    clock.now += 301.0
    assert await vanguard.wait("a") is not None


async def test_nobody_waits_for_ever():
    """A call that does not begin is not worth waiting for."""
    vanguard = Vanguard(wait_seconds=0.01)
    await vanguard.wait("a")
    assert await vanguard.wait("a") is None


async def test_one_who_is_cancelled_while_waiting_holds_up_nobody():
    """Those behind wait for the one ahead, not for each other."""
    vanguard = Vanguard()
    await vanguard.wait("a")
    second, third = await waiting(vanguard, "a", "a")
    second.cancel()
    vanguard.began("a", 300.0)
    assert await third is None


def test_old_prefixes_are_forgotten():
    """A long session has many."""
    clock = Clock()
    vanguard = Vanguard(clock)
    for i in range(100):
        vanguard.began(f"{i}", 300.0)
        clock.now += 60.0
    assert len(vanguard._until) <= 5
