"""`holdfast agents`: the agents of a session, how they stand, and where their logs lie."""

from pathlib import Path

import click

from holdfast.agent.subagents import notices as wording
from holdfast.agent.subagents.registry import AgentRegistry, Known
from holdfast.agent.subagents.supervisor import stop_request
from holdfast.cli.show import json_out, plain
from holdfast.errors import LogLocked
from holdfast.log import Log, load
from holdfast.log.entries import Ended
from holdfast.log.store import FileStore, FoundSession
from holdfast.settings.files import private_directory


@click.command(epilog="Example: holdfast agents newest")
@click.argument("session", default="newest")
@click.option("--stop", "stopped", metavar="AGENT", help="Stop this one, by its id or name.")
@click.option("--log", "shown", metavar="AGENT", help="Print where the log of this one lies.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(session: str, stopped: str | None, shown: str | None, as_json: bool) -> None:
    """List the agents of SESSION (`newest` unless given), the first started first.

    `holdfast explain SESSION/AGENT`, `context` and `history` look into one of them. What is
    stopped here is started again by nobody but you.
    """
    found = FileStore().find(session)
    known = AgentRegistry().follow(load(found.path).entries).known
    if stopped or shown:
        one = _named(known, stopped or shown or "")
        said = _stop(found, one) if stopped else str(_log_of(found, one))
        json_out({"agent": one.id, "done": said}) if as_json else click.echo(said)
    elif as_json:
        json_out([_as_json(found, one) for one in known.values()])
    else:
        lines = [plain(wording.line(one)) for one in known.values()]
        click.echo("\n".join(lines) or f"No agent was started in {found.id}.")


def _named(known: dict[str, Known], name: str) -> Known:
    """Find an agent by its id, else the last one of that name."""
    named = [one for one in known.values() if name in (one.id, one.spawned.name)]
    if not named:
        there = ", ".join(known) or "none"
        raise click.UsageError(f"there is no agent {name!r} in this session; there are: {there}")
    return named[-1]


def _log_of(found: FoundSession, one: Known) -> Path:
    return found.directory / "agents" / f"{one.id}.jsonl"


def _stop(found: FoundSession, one: Known) -> str:
    """Stop an agent: by writing its end where nobody runs the session, else by asking who does."""
    if one.ended is not None:  # a second end would hide the first, and its report with it
        return f"{one.id} has ended already: {one.state}; nothing was changed."
    try:
        with Log.open(found.path) as log:
            log.append(Ended(agent=one.id, state="stopped", by_user=True))
    except LogLocked:
        wish = stop_request(found.path, one.id)
        private_directory(wish.parent)
        wish.touch(mode=0o600)
        return f"{one.id} is being stopped."
    return f"{one.id} is stopped; only you start it again."


def _as_json(found: FoundSession, one: Known) -> dict[str, object]:
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
        "log": str(_log_of(found, one)),
    }
