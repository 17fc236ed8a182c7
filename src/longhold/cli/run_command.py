"""`longhold run`: give the agent one task and let it work, without a screen."""

import asyncio
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import click
from msgspec import structs

from longhold.agent.permissions.decide import SESSIONS_OWN
from longhold.cli import options
from longhold.cli.agent_options import AgentOptions, agent_options
from longhold.cli.output import json_line, json_out, one_line, say
from longhold.cli.rendering import INPUT_CHARS, event_json, make_renderer, show_notices, show_where
from longhold.core.log.entries import AnyEntry
from longhold.core.log.spending import sum_spending
from longhold.core.messages import JsonObject, ToolUse, text_of
from longhold.core.messages.text import pluralize
from longhold.core.messages.usage import Tally
from longhold.core.tools.protocol import Tool
from longhold.core.turn.loop import LoopEvent, Stopped
from longhold.core.turn.round import ToolRan

NOT_COMPLETED = 8
NOTHING_DONE = 9
"""Exit code of a run whose calls were denied, so that nothing was changed."""
DENIED_SHOWN = 10
"""Enough to see what is missing; --json has all."""


@click.command(epilog='Example: longhold run --offline -p "add a docstring to main.py"')
@click.option("-p", "--prompt", default="", help="The task; a resumed session needs none.")
@agent_options
@options.as_json
@click.option("--stream-json", "as_stream", is_flag=True, help="Print one JSON object per event.")
def command(chosen: AgentOptions, prompt: str, as_json: bool, as_stream: bool) -> None:
    """Give the agent one task and let it work.

    Answers go to stdout, what the tools do to stderr. Questions cannot be asked: a tool call that
    needs permission is denied unless a rule or --mode allows it. The exit code is 0 if the task was
    completed, 9 if calls were denied and nothing was changed, 8 if the work ended otherwise.
    """
    if not prompt and not chosen.resume:
        raise click.UsageError("give a task with -p, or a session to resume with --resume")
    if as_json and as_stream:
        raise click.UsageError("--json and --stream-json exclude each other; choose one")
    done = asyncio.run(_work(chosen, prompt, quiet=as_json, as_stream=as_stream))
    if as_json:
        json_out(
            {
                "session": done.session,
                "reason": done.end.reason,
                "detail": done.end.detail,
                "text": done.end.text,
                "denied": list(map(_denied_json, done.denied)),
                "spent": done.spent.to_json(),
                "simulated": chosen.offline,
            }
        )
    elif not as_stream:
        price = "simulated" if chosen.offline else f"${done.spent.usd:.4f}"
        say(f"session {done.session}, {price}", err=True)
    if done.is_nothing:
        say("\n".join(_denied_lines(done.denied)), err=True, fg="red")
    sys.exit(done.exit_code)


@dataclass(slots=True, kw_only=True)
class RunReport:
    session: str
    end: Stopped = field(default_factory=lambda: Stopped(reason="aborted_streaming"))
    spent: Tally = field(default_factory=Tally)
    denied: list[ToolRan] = field(default_factory=list)
    has_changed: bool = False
    """A call that may change something was run."""

    @property
    def is_nothing(self) -> bool:
        return bool(self.denied) and not self.has_changed

    @property
    def exit_code(self) -> int:
        if self.end.reason != "completed":
            return NOT_COMPLETED
        return NOTHING_DONE if self.is_nothing else 0

    def take(self, event: LoopEvent, tools: Mapping[str, Tool]) -> None:
        match event:
            case Stopped():
                self.end = event
            case ToolRan(outcome=outcome) if outcome.is_denied:
                self.denied.append(event)
            case ToolRan(use=use, outcome=outcome) if not outcome.is_error:
                tool = tools.get(use.name)
                is_outside = use.name == "Agent" or use.name not in SESSIONS_OWN
                changes = tool is not None and is_outside and not tool.is_read_only(use.input)
                self.has_changed = self.has_changed or changes

    def count(self, history: Sequence[AnyEntry], *, is_simulated: bool) -> None:
        spent = sum_spending(history)
        self.spent = structs.replace(spent, usd=0.0) if is_simulated else spent


def _denied_json(ran: ToolRan) -> JsonObject:
    return {"name": ran.use.name, "input": ran.use.input, "reason": text_of(ran.outcome.content)}


def _denied_lines(denied: Sequence[ToolRan]) -> list[str]:
    names = sorted({ran.use.name for ran in denied})
    rule = json.dumps({"permissions": {"allow": names}})
    return [
        f"Nothing was changed: {pluralize(len(denied), 'call')} denied.",
        *(f"  {ran.use.name} {_shown_input(ran.use)}" for ran in denied[:DENIED_SHOWN]),
        "Allow edits with --mode accept_edits and everything with --mode bypass, or single tools by",
        f"a rule in .longhold/settings.json: {rule}",
    ]


def _shown_input(use: ToolUse) -> str:
    return one_line(" ".join(map(str, use.input.values())), INPUT_CHARS)


async def _work(chosen: AgentOptions, prompt: str, *, quiet: bool, as_stream: bool) -> RunReport:
    async with chosen.running() as agent:
        done = RunReport(session=agent.session.id)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, agent.abort.set)
        if chosen.resume and not (quiet or as_stream):
            show_where(agent)
        show_notices(agent)
        if as_stream:
            json_line({"type": "session", "id": agent.session.id})
        show = make_renderer()
        async for event in agent.work(prompt):
            done.take(event, agent.parts.known)
            if as_stream:
                line = event_json(event)
                if line is not None:
                    json_line(line)
            elif not quiet:
                show(event)
        done.count(agent.session.view.history, is_simulated=chosen.offline)
        if as_stream:
            json_line({"type": "spent", "spent": done.spent.to_json(), "simulated": chosen.offline})
        return done
