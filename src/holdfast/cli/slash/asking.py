"""Commands that ask the model something beside the conversation."""

import asyncio

from holdfast.errors import ConfigError
from holdfast.log.own_spending import ASIDE
from holdfast.terminal.slash import SlashContext
from holdfast.terminal.text import plain
from holdfast.turn.abort import unless
from holdfast.turn.fork import ForkRequest

BESIDE = (
    "A question of the user's beside the work; neither it nor the answer becomes part of the "
    "conversation. Answer briefly, from what you know of the conversation, without tools.\n\n"
)


async def ask(context: SlashContext, rest: str) -> None:
    if not rest:
        raise ConfigError("/ask needs a question")
    asked, stop = ForkRequest(say=BESIDE + rest, source=ASIDE), asyncio.Event()
    with context.screen.working(stop.set, what="answering beside"):
        reply = await unless(stop, context.agent.ask(asked))
    if reply is None:
        context.screen.say("Stopped.")
    else:
        context.screen.say(reply.text, "document")


async def dream(context: SlashContext, rest: str) -> None:
    stop = asyncio.Event()
    with context.screen.working(stop.set, what="dreaming"):
        done = await unless(stop, context.agent.dream(is_trial=rest == "try"))
    if done is None:
        context.screen.say("Stopped; nothing was changed.")
        return
    undo = f" `/memory undo {done.commit.id}` undoes it." if done.commit else ""
    context.screen.say(plain(f"{done.line.capitalize()}.{undo}"))
