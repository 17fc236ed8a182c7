"""Commands about who works and how: agents, jobs, the model, the mode."""

import asyncio
from typing import get_args

from longhold.agent.terminal.slash import SlashContext
from longhold.core.log.spending import ASIDE
from longhold.core.messages.text import clean_text, tokens
from longhold.core.models import open_model
from longhold.core.models.capabilities import known_models
from longhold.core.policy.advice import window_at_cost
from longhold.core.settings import Mode
from longhold.core.turn.abort import run_unless_aborted
from longhold.core.turn.fork import ForkRequest
from longhold.errors import ConfigError

BESIDE = (
    "A question of the user's beside the work; neither it nor the answer becomes part of the "
    "conversation. Answer briefly, from what you know of the conversation, without tools.\n\n"
)


async def ask(context: SlashContext, rest: str) -> None:
    if not rest:
        raise ConfigError("/ask needs a question")
    asked, stop = ForkRequest(say=BESIDE + rest, source=ASIDE), asyncio.Event()
    with context.screen.working(stop.set, what="answering beside"):
        reply = await run_unless_aborted(stop, context.agent.ask(asked))
    if reply is None:
        context.screen.say("Stopped.")
    else:
        context.screen.say(reply.text, "document")


async def dream(context: SlashContext, rest: str) -> None:
    stop = asyncio.Event()
    with context.screen.working(stop.set, what="dreaming"):
        done = await run_unless_aborted(stop, context.agent.dream(is_trial=rest == "try"))
    if done is None:
        context.screen.say("Stopped; nothing was changed.")
        return
    undo = f" `/memory undo {done.commit.id}` undoes it." if done.commit else ""
    context.screen.say(clean_text(f"{done.line.capitalize()}.{undo}"))


_MODES = {
    "ask": "ask before anything that is not proved harmless",
    "accept_edits": "edit files of the project without asking",
    "plan": "read and plan only",
    "bypass": "ask nothing",
}


async def agents(context: SlashContext, rest: str) -> None:
    supervisor = context.agent.supervisor
    running = supervisor.lines() if supervisor else []
    context.screen.say("\n".join(map(clean_text, running)) or "No agent is running.")


async def stop(context: SlashContext, rest: str) -> None:
    supervisor = context.agent.supervisor
    is_stopped = bool(rest and supervisor and await supervisor.stop(rest, by_user=True))
    context.screen.say(f"{clean_text(rest)} {'was stopped' if is_stopped else 'is not running'}.")


async def jobs(context: SlashContext, rest: str) -> None:
    agent = context.agent
    verb, _, which = rest.partition(" ")
    if verb in ("kill", "stop") and which.strip():
        job = await agent.jobs.stop(which.strip())
        context.screen.say(f"{job.name} was stopped.")
    for job in agent.jobs.running():
        context.screen.say("\n   ".join(map(clean_text, (job.line(), *job.doing))))
    if not agent.jobs.running():
        context.screen.say("No job is running.")


async def mode(context: SlashContext, rest: str) -> None:
    gate, screen = context.agent.gate, context.screen
    names: tuple[Mode, ...] = get_args(Mode)
    if rest not in names:
        picked = await screen.choose("Mode", [f"{name:<14}{_MODES[name]}" for name in names])
        if picked is None:
            return
        rest = names[picked]
    gate.switch_mode(next(name for name in names if name == rest))
    screen.say(f"mode: {rest}")


async def model(context: SlashContext, rest: str) -> None:
    """Change the model; ask first if what is in use does not fit its window."""
    agent, screen = context.agent, context.screen
    if not rest:
        names = known_models()
        picked = await screen.choose(f"Model (now {agent.model.name})", names)
        if picked is None:
            return
        rest = names[picked]
    full, settings = agent.session.fullness(), agent.engine.settings
    window = window_at_cost(rest, settings.window, settings.cost, agent.engine.frame)
    if window.level(full.used_tokens) in ("auto", "blocking"):
        question = (
            f"{rest} has a window of {tokens(window.limit_tokens)} tokens, and "
            f"{tokens(full.used_tokens)} are in use. Switch? [y/N] "
        )
        if (await screen.answer(question)).strip().lower() not in ("y", "yes"):
            return
    await agent.use_model(open_model(rest), "the user asked for it")
    screen.say(f"{rest} answers from now on.")
