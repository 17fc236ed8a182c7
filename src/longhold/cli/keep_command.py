"""`longhold keep`: a hook for Claude Code and pi, set up by `longhold install`."""

import sys
from pathlib import Path

import click

from longhold.cli.output import say
from longhold.insight.clients.claude_code import keep, read_input


@click.command(epilog="Example: longhold install claude-code")
@click.argument("file", required=False, type=click.Path(exists=True, path_type=Path))
def command(file: Path | None) -> None:
    """Restore facts that a compaction by Claude Code or pi loses.

    Before a compaction, the hook tells Claude Code what its summary must keep: names in use and the
    user's words. After it, the model gets the facts that the summary left out. Claude Code names
    the event on stdin. With a FILE, the command prints what the last compaction in it left out.
    """
    given = {"transcript_path": str(file)} if file else read_input(sys.stdin.buffer.read())
    if said := keep(given):
        say(said)
