"""What the engine may spend on calls of its own: a share of what the session spends."""

from holdfast.log.own_spending import COMPACT
from holdfast.log.spending import Spent, spent_on
from holdfast.messages import Usage
from holdfast.turn.engine import Engine

SUMMARY = Usage(input_tokens=3_000, output_tokens=5_000)
"""A typical summary, in one call: the question and the last answer are not cached yet."""
OTHER = (Usage(input_tokens=3_000, output_tokens=500),) * 2
"""Notes and memories: a call that edits, and one that ends."""


def own_refusal(engine: Engine, source: str) -> str:
    """Say why a layer may not ask the model now, and takes its free way; '' if it may."""
    prompt = Usage(cache_read_tokens=engine.fullness().used_tokens)
    calls = (SUMMARY,) if source == COMPACT else OTHER
    expected = sum((spent_on(engine.model, prompt + call) for call in calls), Spent())
    own = engine.own.follow(engine.view.history)
    return own.refusal(engine.settings.budget, source, expected.usd)
