"""Background jobs: one at a time, the newest replaces the queued one, none raises."""

import asyncio

from longhold.core.messages import Usage
from longhold.core.models.protocol import Finished, Reply
from longhold.core.turn.background import Background, Job, watch_forks
from longhold.core.turn.fork.asking import ForkRequest


def noting(done, name, gate=None):
    """Work that notes its name, once it may."""

    async def work():
        if gate is not None:
            await gate.wait()
        done.append(name)

    return work


async def test_while_one_runs_only_the_newest_wish_is_kept():
    done, gate, job = [], asyncio.Event(), Job("notes")
    for name in ("first", "second", "third", "fourth"):
        job.begin(noting(done, name, gate))
        await asyncio.sleep(0)
    gate.set()
    assert await job.drain(1.0)
    assert done == ["first", "fourth"]


async def test_what_fails_is_told_and_the_next_wish_is_done():
    heard, done = [], []
    job = Job("notes", lambda name, error: heard.append((name, str(error))))

    async def fail():
        raise ValueError("no luck")

    job.begin(fail)
    job.begin(noting(done, "next"))
    assert await job.drain(1.0)
    assert (heard, done) == ([("notes", "no luck")], ["next"])


async def test_what_takes_too_long_is_stopped_and_named():
    background, done = Background(), []
    background.job("slow").begin(noting(done, "slow", asyncio.Event()))
    background.job("slow").begin(noting(done, "waiting"))
    background.job("quick").begin(noting(done, "quick"))
    assert await background.drain(0.05) == ["slow"]
    assert done == ["quick"]
    assert not background.job("slow").is_busy


async def test_failures_reach_the_callback():
    heard = []
    background = Background(on_failure=lambda name, error: heard.append(name))
    job = background.job("memory")

    async def fail():
        raise RuntimeError

    job.begin(fail)
    assert await background.drain(1.0) == []
    assert heard == ["memory"]


async def test_stopped_it_can_begin_again():
    job, done = Job("dream"), []
    job.begin(noting(done, "killed", asyncio.Event()))
    await job.stop()
    job.begin(noting(done, "again"))
    assert await job.drain(1.0)
    assert done == ["again"]


async def test_whoever_looks_on_sees_what_is_under_way():
    background, gate = Background(), asyncio.Event()
    job = background.job("dream")
    job.begin(noting([], "x", gate))
    await asyncio.sleep(0)
    first = job.progress
    assert background.busy == [job]
    gate.set()
    await job.drain(1.0)
    assert background.busy == []
    job.begin(noting([], "y"))
    await job.drain(1.0)
    assert job.progress is not first


async def test_what_is_stopped_for_a_reason_is_reported_once():
    heard, cleaned, is_going = [], asyncio.Event(), asyncio.Event()
    background = Background(on_failure=lambda name, error: heard.append((name, str(error))))

    async def slow_to_stop():
        is_going.set()
        try:
            await asyncio.Event().wait()
        finally:
            await cleaned.wait()

    job = background.job("dream")
    job.begin(slow_to_stop)
    await is_going.wait()
    background.cancel("the user left")
    await asyncio.sleep(0)
    background.cancel("the user left")
    cleaned.set()
    await job.stop("the session ended")
    assert heard == [("dream", "the user left")]
    job.begin(asyncio.Event().wait)
    await job.stop()
    assert len(heard) == 1


async def test_only_what_a_job_asks_is_counted_for_it():
    reply = Reply(
        response_id="r",
        model="claude-opus-4-6",
        content=(),
        stop_reason="end_turn",
        usage=Usage(output_tokens=7),
    )

    async def ask(request):
        if request.on_event is not None:
            request.on_event(Finished(reply=reply))
        return request.source

    asking, gate, job = watch_forks(ask), asyncio.Event(), Job("dream")

    async def work():
        await asking(ForkRequest(say="x", source="dream"))
        await gate.wait()

    job.begin(work)
    await asyncio.sleep(0)
    assert await asking(ForkRequest(say="y", source="compact")) == "compact"
    gate.set()
    await job.drain(1.0)
    assert (job.progress.answers, job.progress.spent.output_tokens) == (1, 7)


async def test_only_the_named_jobs_are_waited_for():
    background = Background()
    background.job("notes").begin(asyncio.Event().wait)
    assert await background.drain(0.1, "memory", "dream") == []
    assert background.job("notes").is_busy
    await background.job("notes").stop()
