"""What the user might say next: one short question on the warm prefix, within the engine's own share."""

import time

from holdfast.agent.agent import Agent
from holdfast.errors import HoldfastError
from holdfast.terminal.status import cache_seconds
from holdfast.terminal.text import one_line
from holdfast.turn.fork import ForkRequest
from holdfast.turn.own_calls import own_refusal

SOURCE = "suggestion"
MOST_CHARS = 100
"""A suggestion is read at a glance; a longer answer is none."""
NONE = "NONE"
QUESTION = (
    "The user is about to say something. What will it most likely be? Answer with exactly those "
    "words and nothing else: at most twelve, in the user's language, as they would type them. "
    f"If nothing is likely, answer {NONE}."
)


def may_suggest(agent: Agent) -> bool:
    """True if the question would be read from the cache, and the engine may still spend on itself."""
    engine = agent.engine
    is_warm = cache_seconds(engine.view, engine.frame.lifetime, time.time()) > 0
    return engine.settings.terminal.suggest and is_warm and not own_refusal(engine, SOURCE)


async def next_words_of(agent: Agent) -> str:
    """Ask the model; '' if it has no idea, or cannot be asked."""
    try:
        reply = await agent.ask(ForkRequest(say=QUESTION, source=SOURCE, is_wanted=False))
    except HoldfastError:
        return ""
    words = one_line(reply.text.strip().strip('"'), MOST_CHARS + 1)
    return "" if NONE in words or len(words) > MOST_CHARS else words
