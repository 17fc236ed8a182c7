"""The contract of a provider: `longhold.core.models.protocol.Model`."""

from longhold import Session
from longhold.core.models.protocol import BlockFinished, Finished, Request, Started, collect
from longhold.core.models.steady import Patience, guard_stream

HELLO = Request(
    kwargs={
        "model": "any",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello."}]}],
    }
)


async def events(model, request=HELLO):
    return [event async for event in model.stream(request)]


async def test_an_answer_begins_once_and_ends_once(model):
    kinds = [type(event) for event in await events(model)]
    assert kinds[0] is Started
    assert kinds[-1] is Finished
    assert kinds.count(Started) == kinds.count(Finished) == 1


async def test_every_block_is_finished_in_order_and_is_in_the_reply(model):
    seen = await events(model)
    finished = [event for event in seen if isinstance(event, BlockFinished)]
    assert [event.index for event in finished] == list(range(len(finished)))
    assert tuple(event.block for event in finished) == seen[-1].reply.content


async def test_the_reply_is_complete(model):
    reply = await collect(model.stream(HELLO))
    assert reply.response_id
    assert reply.model
    assert reply.stop_reason
    assert reply.usage.prompt_tokens > 0
    assert reply.usage.output_tokens > 0


async def test_answers_have_different_ids(model):
    ids = {(await collect(model.stream(HELLO))).response_id for _ in range(2)}
    assert len(ids) == 2


async def test_a_stream_may_be_left_early(model):
    stream = model.stream(HELLO)
    await anext(stream)
    await stream.aclose()
    assert (await collect(model.stream(HELLO))).content


async def test_the_order_passes_the_engines_checks(model):
    guarded = guard_stream(model.stream(HELLO), Patience())
    assert [event async for event in guarded]


async def test_it_says_how_large_its_window_is(model):
    assert model.name
    assert model.capabilities.window_tokens > 0


async def test_a_count_is_a_number_or_nothing(model):
    count = await model.count(HELLO)
    assert count is None or count > 0


async def test_closing_twice_does_no_harm(model):
    await model.close()
    await model.close()


async def test_a_session_takes_it_as_a_client(model, tmp_path):
    window = model.capabilities.window_tokens
    async with Session.open(model.name, client=model, directory=tmp_path, window=window) as session:
        session.user("Hello.")
        request = await session.prepare()
        assert request.kwargs["messages"]
