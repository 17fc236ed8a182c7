"""The command line: one file per command, each a thin layer over the library.

Commands are imported when they are asked for, so that `holdfast --help` is quick. What goes
wrong is one line on stderr that says what to do, with an exit code by kind of error;
`--debug` shows the traceback.
"""

import importlib
import sys
from collections.abc import Sequence

import click

from holdfast.errors import HoldfastError, StoreError

COMMANDS = {
    "agents": "the agents of a session: how they stand, their logs; stop one",
    "cache": "what came from the prompt cache, call by call, and why it broke",
    "chat": "talk to the agent, line by line",
    "compact": "let history become a summary, having looked at it first",
    "config": "every setting, its value and its reason",
    "context": "what fills the window of a session or a transcript",
    "cost": "what was spent on what, and what resuming costs",
    "demo": "the main job, offline, in a minute",
    "doctor": "what works here, and the fix for what does not",
    "dream": "put memories in order, as one commit that can be undone",
    "explain": "turn by turn, what was done to the context and what it saved",
    "export": "write a session in another format",
    "history": "search and open what happened, also what the model no longer sees",
    "import": "take in a transcript of another agent",
    "memory": "what is remembered: log, diff, undo, show, search, edit, forget, export, inbox",
    "model": "list models, install local ones, try one",
    "pin": "keep messages word for word through every compaction",
    "redo": "bring back what was taken back",
    "notes": "where a session stands and what was learnt; edit it, rebuild it",
    "run": "give the agent one task and let it work",
    "sessions": "list, branch and remove sessions",
    "trust": "look at what a project wants to run or allow, and vouch for it",
    "simulator": "a local API with a faithful prompt cache",
    "undo": "take back what changed the view of a session",
}
"""Name and one line for each command; its module is `cli/<name>_command.py`."""


class _Commands(click.Group):
    """Finds a command's module by its name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"holdfast.cli.{name}_command")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(
    cls=_Commands, epilog="Try: holdfast demo", context_settings={"max_content_width": 100}
)
@click.version_option(package_name="holdfast", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Keep an LLM agent working past its context window, without losing anything."""


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line; every expected failure is one line and an exit code."""
    words = sys.argv[1:] if words is None else words
    debug = "--debug" in words
    try:
        cli.main(list(words), standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except KeyboardInterrupt:
        click.echo("Stopped.", err=True)
        sys.exit(130)
    except HoldfastError as error:
        if debug:
            raise
        click.echo(f"holdfast: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        if debug:
            raise
        what = f"{error.filename}: " if error.filename else ""
        click.echo(
            f"holdfast: {what}{error.strerror or error}; check the path and its permissions",
            err=True,
        )
        sys.exit(StoreError.exit_code)
