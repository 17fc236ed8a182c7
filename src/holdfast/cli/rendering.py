"""What `run`, `chat` and `demo` share: opening a model, and showing an agent at work."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import click

from holdfast.agent.agent import Agent
from holdfast.agent.build import build_agent
from holdfast.cli.show import harmless, plain
from holdfast.errors import HoldfastError
from holdfast.messages import JsonObject, text_of
from holdfast.models import Finished, Model, Restarted, TextDelta, ThinkingDelta, open_model
from holdfast.settings import Settings
from holdfast.stages.notes.pages import shown, where_you_were
from holdfast.tools.permissions import AskUser, Mode
from holdfast.turn.loop import Continued, LoopEvent, Stopped
from holdfast.turn.round import ToolBegan, ToolRan

OFFLINE_MODEL = "simulated/claude-sonnet-5-5"
"""Answered by the simulator's digest brain: it explores, edits and tests without a model."""
INPUT_CHARS = 90
"""One line of a tool's input tells what it is about."""


def read_system(file: Path | None, resume: str) -> str:
    """Read a system prompt of the user's own; a session that exists keeps the one it began with."""
    if file is None:
        return ""
    if resume:
        raise click.UsageError("--system is for a new session; a resumed one keeps its prompt")
    try:
        text = file.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--system {file}: {error}") from error
    if not text:
        raise click.UsageError(f"--system {file}: it is empty")
    return text


@contextmanager
def opened_model(
    name: str, base_url: str, offline: bool, test_command: str = ""
) -> Iterator[Model]:
    """Open a model by name, or the simulator's for work without a network."""
    with ExitStack() as stack:
        if offline:
            from holdfast.simulator import running
            from holdfast.simulator.brains.digest import TEST_COMMAND, DigestBrain

            brain = DigestBrain(test_command or TEST_COMMAND)
            url = stack.enter_context(running(brain)).url
            yield open_model(OFFLINE_MODEL, base_url=url, api_key="offline")
        else:
            yield open_model(name, base_url=base_url or None)


@asynccontextmanager
async def working_agent(
    model: Model,
    settings: Settings,
    *,
    directory: Path,
    resume: str = "",
    mode: Mode | None = None,
    ask: AskUser | None = None,
    system: str = "",
    source: str = "run",
) -> AsyncIterator[Agent]:
    """Open an agent and close it whatever happens."""
    name = settings.model.fallback
    agent = await build_agent(
        model,
        directory=directory,
        resume=resume,
        mode=mode,
        ask=ask,
        settings=settings,
        fallback=open_model(name) if name else None,
        system=system,
        source=source,
    )
    agent.notices.listen(say)
    try:
        yield agent
    finally:
        await agent.close()


def show_where(agent: Agent) -> None:
    """Show somebody who comes back to a session where they were, as its notes tell it."""
    try:
        file = agent.session.layers.notes.file(agent.engine)
        page = shown(file, agent.session.view.history, agent.engine.settings.notes)
    except HoldfastError:
        return  # notes that cannot be read are no reason not to go on
    lines = where_you_were(page)
    if lines:
        click.secho("\n".join(map(plain, ("Where you were:", *lines))), err=True, dim=True)


def tell(agent: Agent) -> None:
    """Tell the user what hooks and the set-up had to say before anybody listened."""
    for notice in agent.notices.take():
        say(notice)


def say(notice: str) -> None:
    """Tell the user one thing, beside the answers."""
    click.secho(plain(notice), err=True, fg="yellow")


def show(event: LoopEvent) -> None:
    """Show an event to a person: answers on stdout, what is done for them on stderr."""
    match event:
        case TextDelta(text=text):
            click.echo(harmless(text), nl=False)
        case Finished(reply=reply):
            if text_of(reply.content):
                click.echo()
        case ToolBegan(use=use):
            click.secho(f"· {use.name} {_brief(use.input)}", err=True, dim=True)
        case ToolRan(use=use, outcome=outcome) if outcome.is_error:
            click.secho(f"  {use.name}: {_first(text_of(outcome.content))}", err=True, fg="yellow")
        case Restarted(wait_seconds=seconds, error=error):
            click.secho(f"{error}; trying again in {seconds:.1f} s", err=True, fg="yellow")
        case Continued(reason=reason, detail=detail) if reason != "next_turn":
            click.secho(detail or reason.replace("_", " "), err=True, fg="yellow")
        case Stopped(reason=reason, detail=detail) if reason != "completed":
            because = f": {detail}" if detail else "."
            click.secho(f"Stopped ({reason.replace('_', ' ')}){because}", err=True, fg="red")


def as_json(event: LoopEvent) -> JsonObject | None:
    """Give an event as one JSON object, or nothing where it carries no news."""
    match event:
        case TextDelta(text=text):
            return {"type": "text", "text": text}
        case ThinkingDelta(text=text):
            return {"type": "thinking", "text": text}
        case ToolBegan(use=use):
            return {"type": "tool_began", "id": use.id, "name": use.name, "input": use.input}
        case ToolRan(use=use, outcome=outcome, seconds=seconds):
            return {
                "type": "tool_ran",
                "id": use.id,
                "name": use.name,
                "is_error": outcome.is_error,
                "text": text_of(outcome.content),
                "seconds": round(seconds, 3),
            }
        case Finished(reply=reply):
            return {"type": "answer", "id": reply.response_id, "stop_reason": reply.stop_reason}
        case Restarted(attempt=attempt, wait_seconds=seconds, error=error):
            return {"type": "retry", "attempt": attempt, "seconds": seconds, "error": str(error)}
        case Continued(reason=reason, detail=detail):
            return {"type": "continued", "reason": reason, "detail": detail}
        case Stopped(reason=reason, detail=detail, text=text):
            return {"type": "stopped", "reason": reason, "detail": detail, "text": text}
    return None


def _brief(given: JsonObject) -> str:
    text = " ".join(str(value) for value in given.values())
    text = plain(" ".join(text.split()))
    return text if len(text) <= INPUT_CHARS else text[: INPUT_CHARS - 1] + "…"


def _first(text: str) -> str:
    return plain(text.strip().partition("\n")[0][:200])
