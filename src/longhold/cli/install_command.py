"""`longhold install`: install Longhold into a client, or remove it."""

import click

from longhold.cli import options
from longhold.cli.output import ask_yes_no, json_out, say
from longhold.core.settings.installation import install_words, is_installed
from longhold.insight.clients.install import CLIENTS, plan

RESTART = "The client reads these files when it starts; `--undo` removes the changes."


@click.command(epilog="Example: longhold install claude-code")
@click.argument("client", type=click.Choice(CLIENTS))
@click.option("--undo", is_flag=True, help="Remove what an earlier install added.")
@click.option("--yes", is_flag=True, help="Do not ask before files are changed.")
@options.as_json
def command(client: str, undo: bool, yes: bool, as_json: bool) -> None:
    """Add Longhold to a client: status line, history, memory, compaction hook.

    The command first shows what would change in which file. Claude Code gets a status line
    (context, cache warmth, cost, avoidable cost), an MCP server with the history and the project's
    memories, and a hook that saves facts a compaction would lose. Codex gets the server. pi gets an
    extension that shows a status line, searches the history, and restores facts that a compaction
    lost. If Longhold moves, run the command again. --undo restores the original files.
    """
    changes = plan(client, undo=undo)
    for change in changes:
        say(f"{change.path}", err=as_json)
        for line in change.lines:
            say(f"  {line}", err=as_json)
    if not changes:
        say(
            "Longhold is not installed there." if undo else "Longhold is already installed there.",
            err=as_json,
        )
    elif not yes:
        ask_yes_no("Change these files?", is_required=True, err=as_json)
    for change in changes:
        change.apply(undo=undo)
    if not undo and client != "pi" and not is_installed("mcp"):
        say(
            f"The history server was not added. To install what it needs: {install_words('mcp')}",
            err=as_json,
        )
    if changes and not undo:
        say(RESTART, err=as_json)
    if as_json:
        json_out([{"path": str(change.path), "changes": change.lines} for change in changes])
