"""The current model of a session, and the budget check for overhead calls.

The loop, forks and sub-agents all ask `current()`. Only this module replaces it, by a fallback or
by the user's choice.
"""

from longhold.core.log.spending import COMPACT
from longhold.core.messages import Usage
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import price_call
from longhold.core.models.protocol import Model
from longhold.core.turn.engine import Engine

SUMMARY = Usage(input_tokens=3_000, output_tokens=5_000)
"""A typical summary call. Its question and the last answer are not cached yet."""
OTHER = (Usage(input_tokens=3_000, output_tokens=500),) * 2
"""Notes and memories: one call that edits and one that ends."""


def own_refusal(engine: Engine, source: str) -> str:
    """Return why a layer may not call the model now; '' if it may."""
    prompt = Usage(cache_read_tokens=engine.fullness().used_tokens)
    calls = (SUMMARY,) if source == COMPACT else OTHER
    expected = sum((price_call(engine.model, prompt + call) for call in calls), Tally())
    own = engine.own.follow(engine.view.history)
    return own.refusal(engine.settings.budget, source, expected.usd)


class Models:
    def __init__(self, model: Model, fallback: Model | None = None) -> None:
        self._current = model
        self._fallback = fallback
        self._retired: list[Model] = []

    def current(self) -> Model:
        return self._current

    @property
    def fallback(self) -> Model | None:
        return self._fallback

    def fall_back(self) -> Model | None:
        if self._fallback is None:
            return None
        self._retired.append(self._current)
        self._current, self._fallback = self._fallback, None
        return self._current

    async def switch(self, model: Model) -> None:
        await self._current.close()
        self._current = model

    async def close(self) -> None:
        for model in (self._current, self._fallback, *self._retired):
            if model is not None:
                await model.close()
