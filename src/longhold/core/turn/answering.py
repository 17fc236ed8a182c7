"""The current model of a session, and the budget check for overhead calls."""

from collections.abc import Sequence

from longhold.core.log.spending import COMPACT
from longhold.core.messages import Usage
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import price_call
from longhold.core.models.protocol import Model
from longhold.core.turn.engine import Engine
from longhold.core.view.window import COST, scale_tokens

ASKING_TOKENS = 3_000  # uncached tokens of an overhead call: its question and the last answer
SUMMARY_TOKENS, OTHER_TOKENS = 5_000, 500  # typical output of summaries, and of notes per 200K
OTHER_CALLS = 2  # notes take two calls: one to edit and one to end
SUGGESTION = "suggestion"
SHORT = Usage(input_tokens=150, output_tokens=20)  # of a suggestion: one line on the prompt


def own_refusal(engine: Engine, source: str) -> str:
    """Return why a layer may not call the model now, or '' if it may."""
    own = engine.own.follow(engine.view.history)
    expected = _expect_usd(engine, own.layers.get(source), source)
    # A threshold chosen by cost already includes the price of each summary.
    if source == COMPACT and engine.settings.window.auto_line == COST:
        expected = 0.0
    return own.refusal(engine.settings.budget, source, expected)


def _expect_usd(engine: Engine, done: Tally | None, source: str) -> float:
    """Estimate the price of a call from earlier calls of its kind, or use a typical price."""
    calls = 1 if source in (COMPACT, SUGGESTION) else OTHER_CALLS
    if done is not None and done.calls:
        return calls * done.usd / done.calls
    full, usage = engine.fullness(), SHORT
    if source != SUGGESTION:
        output = SUMMARY_TOKENS if source == COMPACT else OTHER_TOKENS
        asked, written = (
            scale_tokens(tokens, full.window.limit_tokens) for tokens in (ASKING_TOKENS, output)
        )
        usage = Usage(input_tokens=asked, output_tokens=written)
    read = Usage(cache_read_tokens=full.used_tokens)
    return calls * price_call(engine.model, read + usage).usd


class Models:
    def __init__(
        self, model: Model, fallback: Model | None = None, *, lent: Sequence[Model] = ()
    ) -> None:
        """Models in `lent` belong to the caller, who closes them."""
        self._current = model
        self._fallback = fallback
        self._lent = lent
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
        await self._close(self._current)
        self._current = model

    async def close(self) -> None:
        for model in (self._current, self._fallback, *self._retired):
            if model is not None:
                await self._close(model)

    async def _close(self, model: Model) -> None:
        if not any(model is one for one in self._lent):
            await model.close()
