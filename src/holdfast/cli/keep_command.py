"""`holdfast keep`: a hook of Claude Code's; `holdfast install` sets it up."""

import sys

import click

from holdfast.adapters.claude_code import keep, read_input
from holdfast.cli.output import say


@click.command(epilog="Example: holdfast install claude-code")
def command() -> None:
    """Keep what a compaction of Claude Code's is about to lose.

    Before it, the client learns what its summary must keep: names in use and the user's words.
    After it, the model is given what the summary left out all the same.
    """
    if said := keep(read_input(sys.stdin.buffer.read())):
        say(said)
