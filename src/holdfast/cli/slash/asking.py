"""Commands that ask the model something beside the conversation."""

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
    agent = context.agent
    agent.abort.clear()
    with context.screen.working(agent.abort.set):
        reply = await unless(agent.abort, agent.ask(ForkRequest(say=BESIDE + rest, source=ASIDE)))
    context.screen.say(reply.text if reply is not None else "Stopped.")


async def dream(context: SlashContext, rest: str) -> None:
    agent = context.agent
    agent.abort.clear()
    with context.screen.working(agent.abort.set):
        done = await unless(agent.abort, agent.dream(is_trial=rest == "try"))
    if done is None:
        context.screen.say("Stopped; nothing was changed.")
        return
    undo = f" `/memory undo {done.commit.id}` undoes it." if done.commit else ""
    context.screen.say(plain(f"{done.line.capitalize()}.{undo}"))
