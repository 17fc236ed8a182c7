"""Injected faults, and how retries handle them."""

import random

import pytest

from chaos_model import KINDS, ChaosModel
from longhold.core.messages import Text
from longhold.core.models.protocol import Request, Restarted, collect
from longhold.core.models.retry import Retries, stream_with_retries
from longhold.core.models.scripted import ScriptedModel
from longhold.core.models.steady import Patience
from longhold.errors import ModelError

ANSWERS = 40
SCRIPT = "\n---\n".join(f"think: hm\ntext: answer {number}" for number in range(ANSWERS))
QUICK = Patience(first_event_seconds=0.05, stall_seconds=0.05)


def request(number):
    return Request(kwargs={"model": "m", "messages": [{"role": "user", "content": str(number)}]})


async def no_sleep(seconds):
    return None


def answers(model, number):
    return stream_with_retries(
        model,
        request(number),
        retries=Retries(attempts=15),
        patience=QUICK,
        sleep=no_sleep,
        dice=random.Random(0),
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_each_fault_ends_in_an_answer_or_an_error(kind):
    model = ChaosModel(ScriptedModel(SCRIPT), seed=1, rate=1.0, kinds=(kind,))
    try:
        reply = await collect(answers(model, 0))
    except ModelError:
        assert kind not in {"repeated", "empty"}
        assert model.injected == [kind] * 15
    else:
        whole = (reply.content[-1],) if reply.content else ()
        assert whole in {(), (Text(text="answer 0"),)}
        assert (kind, len(reply.content)) in {("repeated", 2), ("empty", 0)}


async def test_a_session_survives_any_mix_of_faults():
    kinds = tuple(kind for kind in KINDS if kind != "empty")
    model = ChaosModel(ScriptedModel(SCRIPT), seed=7, rate=0.3, kinds=kinds)
    texts = [(await collect(answers(model, number))).content[-1].text for number in range(ANSWERS)]
    assert texts == [f"answer {number}" for number in range(ANSWERS)]
    assert set(model.injected) == set(kinds)


async def test_the_same_seed_injects_the_same_faults():
    async def injected(seed):
        model = ChaosModel(ScriptedModel(SCRIPT), seed=seed, rate=0.5)
        for number in range(ANSWERS // 2):
            await collect(answers(model, number))
        return model.injected

    assert await injected(3) == await injected(3)
    assert await injected(3) != await injected(4)


async def test_no_faults_at_rate_zero():
    model = ChaosModel(ScriptedModel(SCRIPT), seed=1, rate=0.0)
    events = [event async for event in answers(model, 0)]
    assert not any(isinstance(event, Restarted) for event in events)
    assert model.injected == []
