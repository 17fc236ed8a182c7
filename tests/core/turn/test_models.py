"""The current model: one at a time, replaced in one place."""

from longhold.core.models.scripted import ScriptedModel
from longhold.core.turn.answering import Models


class Closing(ScriptedModel):
    """Notes that it was closed."""

    closed = 0

    async def close(self):
        self.closed += 1


def made(name):
    return Closing("text: x", name=name)


def test_a_fallback_takes_over_once():
    first, second = made("a"), made("b")
    models = Models(first, second)
    assert (models.current(), models.fallback) == (first, second)
    assert models.fall_back() is second
    assert (models.current(), models.fallback) == (second, None)
    assert models.fall_back() is None and models.current() is second


async def test_a_model_that_is_replaced_is_closed():
    first, other = made("a"), made("b")
    models = Models(first)
    await models.switch(other)
    assert (models.current(), first.closed, other.closed) == (other, 1, 0)


async def test_closing_closes_every_model_once():
    first, second = made("a"), made("b")
    models = Models(first, second)
    models.fall_back()
    await models.close()
    assert (first.closed, second.closed) == (1, 1)
