"""Turns cancelled at any point: the conversation continues, and the model is told the truth."""

import asyncio
import random

import pytest

from bookkeeping import MODEL
from longhold import Session
from longhold.core.log.entries import Began, Ran
from longhold.core.messages import Text, Usage, text_of
from longhold.core.messages.rules import violations
from longhold.core.models.protocol import Reply
from longhold.errors import RequestRejected, SessionBusy
from seen import of, texts

TOOL = {"name": "lookup", "description": "d", "input_schema": {"type": "object"}}
POINTS = 200


def reply(id, *calls, text="I look."):
    uses = [{"type": "tool_use", "id": one, "name": "lookup", "input": {}} for one in calls]
    return {
        "id": id,
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": text}, *uses],
        "stop_reason": "tool_use" if calls else "end_turn",
        "usage": {"input_tokens": 100, "output_tokens": 5},
    }


@pytest.fixture
def session(tmp_path):
    with Session.open(model=MODEL, directory=tmp_path, tools=[TOOL]) as opened:
        yield opened


async def begin_calls(session, *ids):
    session.user("do it")
    await session.prepare()
    await session.record(reply(f"r-{'-'.join(ids)}", *ids))


async def test_open_calls_are_listed_and_abandoned(session):
    assert session.is_answered and session.open_calls == []
    await begin_calls(session, "t1", "t2", "t3")
    session.tool_result("t1", "a row")
    async with session.arunning("t2"):
        pass
    assert [use.id for use in session.open_calls] == ["t2", "t3"]
    session.user("Never mind.")
    with pytest.raises(RequestRejected, match="abandon"):
        await session.prepare()
    assert session.abandon("the user pressed stop") == ["t2", "t3"]
    request = await session.prepare()
    told = [text_of(entry.content) for entry in of(session, Ran)]
    assert told[0] == "a row"
    assert "the user pressed stop while the tool ran" in told[1]
    assert "may have run" in told[2]
    assert "Never mind." in str(request.kwargs["messages"][-1])
    assert violations(session.view.messages()) == []


@pytest.mark.parametrize("n", [1, 2, 3])
async def test_retract_takes_a_message_back_also_while_calls_are_open(session, n):
    await begin_calls(session, "t1")
    session.user("Never mind.")
    before = len(session.view.items)
    session.retract(n)
    assert len(session.view.items) == before - 1
    if n != 2:
        session.abandon()
    assert violations(session.view.messages()) == [] or n == 3


async def test_a_second_request_while_one_is_out_is_refused(session):
    session.user("one")
    asked, settled = asyncio.Event(), asyncio.Event()

    async def first():
        await session.prepare()
        asked.set()
        await settled.wait()
        await session.record(reply("r1", text="yes"))

    task = asyncio.create_task(first())
    await asked.wait()
    with pytest.raises(SessionBusy, match="another task"):
        await session.prepare()
    with pytest.raises(SessionBusy, match="another task"):
        await session.follow([{"role": "user", "content": "one"}])
    settled.set()
    await task
    assert texts(session) == ["one", "yes"]


async def test_an_answer_that_the_engine_recorded_frees_the_session(session):
    session.user("one")
    await asyncio.create_task(session.prepare())
    asked = asyncio.Event()

    async def first():
        await session.prepare()
        asked.set()
        await asyncio.sleep(30)

    task = asyncio.create_task(first())
    await asked.wait()
    answer = Reply(
        response_id="r1",
        model=MODEL,
        content=(Text(text="yes"),),
        stop_reason="end_turn",
        usage=Usage(),
    )
    session._engine.record_reply(answer)  # as an agent's loop does
    session.user("two")
    assert await session.prepare()
    task.cancel()


async def test_an_answer_to_no_request_is_refused(session):
    session.user("one")
    await session.prepare()
    await session.record(reply("r1", text="yes"))
    await session.record(reply("r1", text="yes"))  # the same once more
    with pytest.raises(SessionBusy, match="did not request this answer"):
        await session.record(reply("r2", text="no"))
    assert texts(session) == ["one", "yes"]


async def test_a_task_that_ended_without_an_answer_holds_nobody_up(session):
    session.user("one")
    task = asyncio.create_task(session.prepare())
    await task
    await session.prepare()
    await session.record(reply("r1", text="yes"))


async def test_a_session_goes_on_after_200_cancellations(session):
    chance = random.Random(7)

    async def tool(id):
        async with session.arunning(id):
            await asyncio.sleep(chance.random() * 0.004)
        session.tool_result(id, f"row of {id}")

    async def turn(n):
        session.user(f"turn {n}")
        await session.prepare()
        await asyncio.sleep(chance.random() * 0.004)
        await session.record(reply(f"a{n}", f"t{n}a", f"t{n}b"))
        await asyncio.gather(tool(f"t{n}a"), tool(f"t{n}b"))
        await session.prepare()
        await asyncio.sleep(chance.random() * 0.004)
        await session.record(reply(f"b{n}", text=f"done {n}"))

    ended = 0
    for n in range(POINTS):
        task = asyncio.create_task(turn(n))
        done, _ = await asyncio.wait([task], timeout=chance.random() * 0.03)
        task.cancel()
        await asyncio.wait([task])
        ended += bool(done)
        session.abandon()
        assert violations(session.view.messages()) == []
    assert 0 < ended < POINTS
    session.user("last")
    await session.prepare()
    await session.record(reply("last", text="here"))
    assert texts(session)[-1] == "here"
    began = {entry.tool_use_id for entry in of(session, Began)}
    for ran in of(session, Ran):
        said = text_of(ran.content)
        if "was not run" in said:
            assert ran.tool_use_id not in began
        if "while the tool ran" in said:
            assert ran.tool_use_id in began
