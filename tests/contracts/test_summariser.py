"""What a summariser promises: `longhold.core.stages.compact.summary.Summariser`."""

import asyncio
import copy
from dataclasses import replace

from longhold.core.stages.compact.summary import SummaryRequest
from longhold.core.view.tokens import estimate_tokens


def request(rounds=20, max_tokens=4_000):
    messages = []
    for number in range(rounds):
        asked = f"Please change file{number}.py so that test {number} passes. " * 20
        done = f"[called Edit with {{'file_path': 'file{number}.py'}}] Test {number} passes. " * 20
        messages += [
            {"role": "user", "content": [{"type": "text", "text": asked}]},
            {"role": "assistant", "content": [{"type": "text", "text": done}]},
        ]
    return SummaryRequest(
        messages=tuple(messages),
        instructions="Summarise the conversation.",
        max_tokens=max_tokens,
        model="claude-sonnet-5-5",
    )


async def test_it_returns_text(summariser):
    text = await summariser(request())
    assert isinstance(text, str)
    assert text.strip()


async def test_the_summary_is_shorter_than_the_conversation(summariser):
    given = request(60)
    text = await summariser(given)
    assert estimate_tokens(text) < estimate_tokens(str(given.messages)) / 2


async def test_the_summary_keeps_to_its_limit(summariser):
    assert estimate_tokens(await summariser(request(60, 500))) <= 500


async def test_a_single_message_is_enough(summariser):
    one = request(1)
    assert (await summariser(replace(one, messages=one.messages[:1]))).strip()


async def test_the_messages_stay_as_they_are(summariser):
    given = request()
    before = copy.deepcopy(given.messages)
    await summariser(given)
    assert given.messages == before


async def test_it_works_for_two_sessions_at_the_same_time(summariser):
    texts = await asyncio.gather(summariser(request(3)), summariser(request(4)))
    assert all(map(str.strip, texts))


async def test_it_can_be_cancelled(summariser):
    task = asyncio.create_task(summariser(request()))
    await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=5)
    assert done
