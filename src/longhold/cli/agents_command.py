"""`longhold sessions agents`: the agents of a session, their states and logs."""

import click

from longhold.agent.subagents.registry import AgentRegistry, Known, render_line
from longhold.agent.subagents.supervisor import Wish, request_file
from longhold.cli import options
from longhold.cli.output import report
from longhold.cli.target import open_target
from longhold.core.log.entries import Ended
from longhold.core.log.log import AGENTS
from longhold.core.log.store import FoundSession, Store, StoredSession
from longhold.core.log.stores import default_store
from longhold.core.messages.text import clean_line, clean_text
from longhold.core.settings.private_files import private_directory
from longhold.errors import ConfigError, LogLocked
from longhold.insight.foreign_agents import ForeignAgent, foreign_agents


@click.command(epilog="Example: longhold sessions agents newest")
@click.argument("session", default="newest")
@click.option("--stop", "stopped", metavar="AGENT", help="Stop an agent, by its id or name.")
@click.option(
    "--background", "sent_back", metavar="AGENT", help="Let the session continue without waiting."
)
@click.option("--log", "shown", metavar="AGENT", help="Print where an agent's log is.")
@options.as_json
def command(
    session: str, stopped: str | None, sent_back: str | None, shown: str | None, as_json: bool
) -> None:
    """List a session's agents, find their logs, stop one.

    SESSION is an id, a file, or `newest`, the default. `longhold explain SESSION/AGENT` shows what
    a Longhold agent did, as do `context` and `history`. Only you can restart a stopped agent.
    """
    opened = open_target(session)
    known = AgentRegistry().follow(opened.history).known
    named = stopped or sent_back or shown
    if not known and not named:
        theirs = list(foreign_agents(opened.history))
        none = f"No agent was started in {clean_text(opened.name)}."
        report(as_json, theirs, [_foreign_line(one) for one in theirs] or [none])
        return
    store = default_store()
    found = store.find(opened.name, by_prefix=True)
    if named:
        one = _find_agent(known, named)
        said = _log_of(found, one)
        if stopped:
            said = _stop(store, found, one)
        elif sent_back:
            said = _send_back(found, one)
        report(as_json, {"agent": one.id, "done": said}, [said])
        return
    lines = [clean_text(render_line(one)) for one in known.values()]
    report(as_json, [_as_json(one, _log_of(found, one)) for one in known.values()], lines)


def _foreign_line(one: ForeignAgent) -> str:
    took = f", {one.seconds:.0f} s" if one.seconds else ""
    return clean_text(f"#{one.n}  {one.kind or 'agent'}  {one.state}{took}: {clean_line(one.task)}")


def _find_agent(known: dict[str, Known], name: str) -> Known:
    named = [one for one in known.values() if name in (one.id, one.spawned.name)]
    if not named:
        there = ", ".join(known) or "none"
        raise click.UsageError(f"no agent {name!r} in this session; there are: {there}")
    return named[-1]


def _log_of(found: StoredSession, one: Known) -> str:
    if isinstance(found, FoundSession):
        return str(found.directory / AGENTS / f"{one.id}.jsonl")
    return f"{found.id}/{one.id}"


def _stop(store: Store, found: StoredSession, one: Known) -> str:
    """Record the agent's end, or ask the process that holds the log to stop it."""
    if one.ended is not None:  # a second `Ended` would hide the first and its report
        return f"{one.id} has ended already: {one.state}; nothing was changed."
    try:
        with store.open(found.id) as log:
            log.append(Ended(agent=one.id, state="stopped", by_user=True))
    except LogLocked:
        if not isinstance(found, FoundSession):
            raise
        _request(found, one, "stop")
        return f"{one.id} is being stopped."
    return f"{one.id} is stopped; only you can start it again."


def _send_back(found: StoredSession, one: Known) -> str:
    """Ask the process that holds the log to continue without waiting for an agent."""
    if one.ended is not None or one.spawned.is_background:
        where = f"has ended already: {one.state}" if one.ended else "is in the background already"
        return f"{one.id} {where}; nothing was changed."
    if not isinstance(found, FoundSession):
        raise ConfigError(
            f"only the machine that runs {found.id} sends its agents to the background"
        )
    _request(found, one, "background")
    return f"{one.id} continues in the background if its session is running."


def _request(found: FoundSession, one: Known, wish: Wish) -> None:
    request = request_file(found.path, one.id, wish)
    private_directory(request.parent)
    request.touch(mode=0o600)


def _as_json(one: Known, log: str) -> dict[str, object]:
    ended = one.ended
    return {
        "id": one.id,
        "name": one.spawned.name,
        "kind": one.spawned.kind,
        "task": one.spawned.task,
        "state": one.state,
        "by_user": bool(ended and ended.by_user),
        "is_read": one.is_told,
        "started": one.spawned.at,
        "ended": ended.at if ended else None,
        "worktree": one.spawned.worktree,
        "branch": one.spawned.branch,
        "output": ended.file if ended else "",
        "log": log,
    }
