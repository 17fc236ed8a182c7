"""What the engine may spend on calls of its own: a share of what the session spends."""

from holdfast.log.own_spending import COMPACT
from holdfast.log.spending import spent_on
from holdfast.messages import Usage
from holdfast.turn.engine import Engine

SUMMARY_TOKENS = 5_000
"""Of a typical summary."""
ANSWER_TOKENS = 1_000
"""Of any other answer the engine asks for."""


def own_refusal(engine: Engine, source: str) -> str:
    """Say why a layer may not ask the model now, and takes its free way; '' if it may."""
    usage = Usage(
        cache_read_tokens=engine.fullness().used_tokens,
        output_tokens=SUMMARY_TOKENS if source == COMPACT else ANSWER_TOKENS,
    )
    own = engine.own.follow(engine.view.history)
    return own.refusal(engine.settings.budget, source, spent_on(engine.model, usage).usd)
