"""Retries. No test here waits."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import Text
from longhold.core.models.protocol import BlockFinished, Request, Restarted
from longhold.core.models.retry import MAX_ATTEMPTS, Retries, stream_with_retries, wait_seconds
from longhold.core.models.scripted import ScriptedModel
from longhold.errors import (
    AuthenticationFailed,
    ConfigError,
    ModelRefused,
    ModelUnavailable,
    PromptTooLong,
    RequestRejected,
    StreamBroken,
)

REQUEST = Request(kwargs={"model": "m", "max_tokens": 1, "messages": []})


class Naps:
    """Remembers how long it was asked to sleep, and does not."""

    def __init__(self):
        self.seconds = []

    async def __call__(self, seconds):
        self.seconds.append(seconds)


async def run(script, **options):
    naps = Naps()
    model = ScriptedModel(script)
    events = stream_with_retries(model, REQUEST, sleep=naps, dice=random.Random(1), **options)
    return [event async for event in events], naps, model


async def test_trouble_that_passes_is_ridden_out():
    events, naps, model = await run("error: 529\n---\nerror: 500\n---\ntext: Hi")
    assert events[-1].reply.content == (Text(text="Hi"),)
    assert [event.attempt for event in events if isinstance(event, Restarted)] == [1, 2]
    assert len(naps.seconds) == 2
    assert len(model.requests) == 3


async def test_the_same_request_is_sent_again():
    _, _, model = await run("error: 529\n---\ntext: Hi")
    assert model.requests == [REQUEST, REQUEST]


async def test_a_broken_answer_is_begun_again():
    events, _, _ = await run("text: Ha\nerror: broken\n---\ntext: Hi")
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["Started", "TextDelta", "BlockFinished", "Restarted", *kinds[4:]]
    assert events[-1].reply.content == (Text(text="Hi"),)


async def test_no_retry_after_a_tool_was_handed_on():
    with pytest.raises(StreamBroken):
        await run('tool: Bash {"command": "rm x"}\nerror: broken\n---\ntext: Hi')


async def test_no_retry_if_the_caller_says_no():
    with pytest.raises(ModelUnavailable):
        await run("error: 529\n---\ntext: Hi", may_retry=lambda error: False)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("400", RequestRejected),
        ("401", AuthenticationFailed),
        ("too-long 9 8", PromptTooLong),
        ("refused", ModelRefused),
    ],
)
async def test_what_cannot_pass_is_raised_at_once(error, kind):
    with pytest.raises(kind):
        await run(f"error: {error}\n---\ntext: Hi")


async def test_attempts_have_an_end():
    with pytest.raises(ModelUnavailable):
        await run("error: 529\n---\n" * 5 + "text: Hi", retries=Retries(attempts=5))


async def test_the_providers_wait_is_obeyed():
    _, naps, _ = await run("error: 429 retry-after=17\n---\ntext: Hi")
    assert naps.seconds == [17.0]


async def test_a_wait_nobody_would_sit_through_is_an_error():
    with pytest.raises(ModelUnavailable) as caught:
        await run("error: 429 retry-after=3600\n---\ntext: Hi")
    assert caught.value.retry_after_seconds == 3600


@given(st.integers(1, MAX_ATTEMPTS - 1), st.integers())
def test_waits_grow_and_stay_in_their_bounds(attempt, seed):
    retries = Retries(attempts=MAX_ATTEMPTS)
    wait = wait_seconds(ModelUnavailable("x"), attempt, retries, random.Random(seed))
    full = min(8.0, 0.5 * 2 ** (attempt - 1))
    assert 0.75 * full <= wait <= full


@pytest.mark.parametrize("attempts", [0, MAX_ATTEMPTS + 1])
def test_the_number_of_attempts_is_checked(attempts):
    with pytest.raises(ConfigError):
        Retries(attempts=attempts)


async def test_a_finished_text_block_does_not_forbid_a_retry():
    events, _, _ = await run("text: Ha\nerror: 529\n---\ntext: Hi")
    assert sum(isinstance(event, BlockFinished) for event in events) == 2


@pytest.mark.parametrize(("asked", "attempts"), [(299, 3), (59, 10), (301, 1)])
async def test_a_provider_is_waited_for_ten_minutes_in_all(asked, attempts):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    model = ScriptedModel("\n---\n".join([f"error: 429 retry-after={asked}"] * 20), name="m")
    with pytest.raises(ModelUnavailable):
        async for _ in stream_with_retries(model, REQUEST, sleep=sleep):
            pass
    assert len(waits) == attempts - 1
    assert sum(waits) <= 600
