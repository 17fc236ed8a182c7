"""`longhold statusline`: the status line of Claude Code and pi."""

import time
from pathlib import Path

import click

from longhold.cli.output import say
from longhold.core.messages.text import clean_text
from longhold.insight.clients import claude_code, pi
from longhold.insight.clients.known_status import read_stdin


@click.command(epilog="Example: longhold install claude-code")
@click.argument("file", required=False, type=click.Path(exists=True, path_type=Path))
def command(file: Path | None) -> None:
    """Print a status line for Claude Code from its JSON on stdin, or for a FILE.

    The line shows how full the context is, how long the cache stays warm, the cost, and the
    avoidable cost.
    """
    if file:
        say(clean_text(pi.status_line(file, time.time())))
        return
    say(clean_text(claude_code.status_line(claude_code.read_input(read_stdin()), time.time())))
