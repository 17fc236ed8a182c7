"""The command line: one module per command, a thin layer over the library.

A command's module is imported when it is called, so that `longhold --help` is quick. An expected
error prints one line on stderr and sets an exit code by kind.
"""

import importlib
import io
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from longhold.errors import LongholdError, StoreError

COMMANDS = {
    "agents": "List a session's agents, find their logs, stop one.",
    "cache": "Show how well the prompt cache was used, and why it broke.",
    "chat": "Talk to the agent.",
    "compact": "Summarise a session (`--preview` to look first).",
    "config": "List every setting with its value, source and reason.",
    "context": "Show what fills the context window.",
    "cost": "Show what was spent on what, and what resuming would cost.",
    "demo": "Watch the agent fix a small repository, offline.",
    "doctor": "Check this installation and say how to fix what is broken.",
    "dream": "Tidy the project's memories in one commit.",
    "explain": "Show turn by turn what changed the context and what that saved.",
    "export": "Write a session in another format.",
    "gateway": "Manage the context of clients that know nothing of Longhold.",
    "history": "Search all sessions, or the whole history of one, or open a part of it.",
    "install": "Add Longhold to a client: status line, history and memory, kept words.",
    "inspect": "Write a page about a session: context, cache, money, changes.",
    "import": "Import another agent's transcript as a session.",
    "keep": "Keep what a compaction of Claude Code's or pi's is about to lose.",
    "mcp": "Offer a session's history, notes and memories to an MCP client.",
    "memory": "Show, search, edit, undo and export memories.",
    "model": "List models, install local ones, test one.",
    "notes": "Show, edit or rebuild a session's notes.",
    "pin": "Keep messages word for word through every compaction.",
    "redo": "Re-apply an undone change.",
    "replay": "Show what another policy would have cost on sessions you already have.",
    "report": "Show what your sessions cost, and what would have saved most.",
    "run": "Give the agent one task and let it work.",
    "serve": "Show sessions live in the browser, on this machine only.",
    "sessions": "List, branch, delete and prune sessions.",
    "store": "Move, check and migrate where sessions are kept.",
    "simulator": "Serve a local API with a faithful prompt cache.",
    "statusline": "Print a status line for Claude Code from what it sends on stdin, or for a FILE.",
    "status": "Show in one line how full, how warm and how dear a session is.",
    "trust": "Review what a project wants to run or allow, and trust it.",
    "undo": "Undo a change to what the model sees.",
    "worker": "Run jobs on sessions in a database: resumed turns, memories, notes.",
    "wrap": "Run a command with its context managed.",
}
"""Commands with the first sentence of their help, in modules `cli/<name>_command.py`."""


JOBS = {
    "Look back": (
        *("report", "cost", "context", "cache", "explain", "history", "inspect", "serve"),
        *("replay", "status"),
    ),
    "Compact better": ("compact", "undo", "redo", "pin", "notes", "import", "export"),
    "Work with it": (
        *("chat", "run", "agents", "sessions", "memory", "dream"),
        *("gateway", "wrap", "mcp", "install", "statusline", "keep"),
    ),
    "Look after it": (
        *("config", "doctor", "model", "trust", "store", "worker", "simulator", "demo"),
    ),
}
"""Commands by purpose; a command without a group is listed last."""


MARKS = (".git", "AGENTS.md", "CLAUDE.md")
"""Files that make a directory and those below it a project."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command = importlib.import_module(f"longhold.cli.{name}_command").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        grouped = {name for names in JOBS.values() for name in names}
        other = tuple(name for name in sorted(COMMANDS) if name not in grouped)
        for job, names in (JOBS | ({"Other": other} if other else {})).items():
            with formatter.section(job):
                formatter.write_dl([(name, COMMANDS[name]) for name in names if name in COMMANDS])


@click.group(
    cls=_Commands, epilog="Try: longhold report", context_settings={"max_content_width": 100}
)
@click.version_option(package_name="longhold", message="longhold %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Keep an LLM agent working past its context window, without losing anything."""


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line with `words`, by default the process's arguments, and exit."""
    words = sys.argv[1:] if words is None else words
    if not words and _is_at_work():
        words = ["chat"]
    try:
        cli.main(list(words), standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        _complain("Stopped.")
        sys.exit(130)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        _complain(shown.getvalue().rstrip("\n"))
        sys.exit(error.exit_code)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except (LongholdError, OSError) as error:
        if "--debug" in words:
            _complain(traceback.format_exc())
        _complain(f"longhold: {_message(error)}")
        sys.exit(error.exit_code if isinstance(error, LongholdError) else StoreError.exit_code)


def _is_at_work() -> bool:
    """Return whether a bare `longhold` means `chat`: at a terminal, in a project."""
    here = Path.cwd()
    is_project = any((at / name).exists() for at in (here, *here.parents) for name in MARKS)
    return is_project and sys.stdin.isatty() and sys.stdout.isatty()


def _complain(text: str) -> None:
    from longhold.cli.output import say  # deferred, so that `longhold --help` is quick

    say(text, err=True)


def _message(error: LongholdError | OSError) -> str:
    if isinstance(error, LongholdError):
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; check the path and its permissions"
