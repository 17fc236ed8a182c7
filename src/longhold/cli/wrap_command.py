"""`longhold wrap`: run a command with its context managed."""

import json
import sys

import click

from longhold.cli.output import say
from longhold.core.messages import JsonObject
from longhold.core.messages.text import dollars, pluralize


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: longhold wrap claude",
)
@click.argument("words", metavar="COMMAND...", nargs=-1, type=click.UNPROCESSED, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print the savings to stderr as JSON.")
@click.option(
    "--history/--no-history",
    default=True,
    show_default=True,
    help="Add `longhold mcp` to Claude Code or Codex, so that the model can look up cleared content.",
)
def command(words: tuple[str, ...], as_json: bool, history: bool) -> None:
    """Run a command with its context managed.

    Longhold starts a gateway on a free port and stops it when the command ends. ANTHROPIC_BASE_URL
    and OPENAI_BASE_URL point the command to the gateway, so its configuration does not change.
    `wrap` prints the savings to stderr and exits with the exit code of the command.
    """
    from longhold.gateway.wrapping import wrap  # needs an extra

    wrapped = wrap(words, has_history=history)
    say(json.dumps(wrapped.stats) if as_json else _saved_line(wrapped.stats), err=True)
    sys.exit(wrapped.exit_code)


LEAST_USD = 0.005  # smaller amounts would be printed as $0.00


def _saved_line(stats: JsonObject) -> str:
    totals, sessions = stats.get("totals") or {}, stats.get("sessions") or []
    if not totals and (sent := stats.get("requests")):
        return f"longhold: {pluralize(sent, 'request')} sent, none answered; nothing was billed."
    if not totals:
        return "longhold: the client sent no request that could be managed."
    saved, billed = totals["saved_usd"], totals["billed_usd"]
    verb = "saved" if saved >= 0 else "lost"
    if abs(saved) < LEAST_USD:
        return f"longhold: {pluralize(totals['calls'], 'call')} for {dollars(billed)}; there was nothing to save."
    dearest = max(sessions, key=lambda one: one["billed_usd"])["id"]
    calls = pluralize(totals["calls"], "call")
    return (
        f"longhold: {calls} for {dollars(billed)}, {verb} {dollars(abs(saved))}; "
        f"`longhold explain {dearest}` shows how."
    )
