"""`holdfast statusline`: what Claude Code shows below the prompt; `holdfast install` sets it up."""

import sys
import time

import click

from holdfast.adapters.claude_code import read_input, status_line
from holdfast.cli.output import plain, say


@click.command(epilog="Example: holdfast install claude-code")
def command() -> None:
    """Print Claude Code's status line from what it sends on stdin.

    It shows how full the context is, how long the cache stays warm, what was spent, and what of
    that was avoidable.
    """
    say(plain(status_line(read_input(sys.stdin.buffer.read()), time.time())))
