"""The command line: one module per command, a thin layer over the library.

A command's module is imported when it is called, so that `longhold --help` is quick. An expected
error prints one line on stderr and sets an exit code by kind.
"""

import importlib
import io
import sys
import traceback
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from longhold.errors import ConfigError, LongholdError, StoreError

COMMANDS = {
    "Report on sessions": {
        "report": "Show what your sessions cost, and what would have saved most.",
        "cost": "Show spending by purpose.",
        "context": "Show what fills the context window.",
        "cache": "Show how well the prompt cache was used, and why it broke.",
        "explain": "Show turn by turn what changed the context and what that saved.",
        "history": "Search all sessions, or the whole history of one, or open a part of it.",
        "inspect": "Write a page about a session: context, cache, money, changes.",
        "serve": "Show sessions live in the browser, on this machine only.",
        "replay": "Show what another policy would have cost on sessions you already have.",
    },
    "Change what the model sees": {
        "compact": "Summarise a session (`--preview` to look first).",
        "undo": "Undo a change to what the model sees, or re-apply it.",
        "exam": "Show how much of a session a compaction keeps.",
        "pin": "Keep messages word for word through every compaction.",
    },
    "Manage the agent you use": {
        "wrap": "Run a command with its context managed.",
        "gateway": "Manage the context of any client of the Anthropic or OpenAI API.",
        "install": "Add Longhold to a client: status line, history, memory, compaction hook.",
    },
    "Work with Longhold's agent": {
        "chat": "Talk to the agent.",
        "run": "Give the agent one task and let it work.",
        "memory": "Show, search, edit, tidy, undo and export memories.",
        "sessions": "List, import, export, copy, branch and delete sessions.",
        "trust": "Review what a project wants to run or allow, and trust it.",
    },
    "Set up": {
        "config": "List every setting with its value, source and reason.",
        "doctor": "Check this installation and print how to fix each problem.",
        "simulator": "Serve a local API with a faithful prompt cache.",
        "demo": "Watch the agent fix a small repository, offline.",
    },
}
"""Commands by purpose, with the first sentence of their help, in modules `cli/<name>_command.py`."""

HIDDEN = {
    "keep": "Restore facts that a compaction by Claude Code or pi loses.",
    "mcp": "Offer a session's history, notes and memories to an MCP client.",
    "statusline": "Print a status line for Claude Code from its JSON on stdin, or for a FILE.",
    "worker": "Run jobs on sessions in a database: resumed turns, memories, notes.",
}
"""Commands that other programs start, such as clients after `install` or a service manager."""

NEEDS = {
    "gateway": "gateway",
    "wrap": "gateway",
    "serve": "serve",
    "simulator": "simulator",
    "worker": "fleet",
}
"""The extra that a command needs, if a missing package is in several extras."""

READING = (
    *("report", "cost", "context", "cache", "explain", "history", "inspect", "replay"),
    *("exam", "statusline"),
)
"""Commands that also work on Windows, because they read sessions and start no other program."""

MARKS = (".git", "AGENTS.md", "CLAUDE.md")  # files that mark a directory as the root of a project


class LazyGroup(click.Group):
    """A group that imports commands on use. `table` has their help and `module:attribute`."""

    def __init__(self, *args: Any, table: Mapping[str, tuple[str, str]], **given: Any) -> None:
        super().__init__(*args, **given)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._table)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._table:
            close = get_close_matches(name, self._table, n=1)
            of = f"{ctx.command_path} "
            hint = f"Did you mean `{of}{close[0]}`?" if close else f"`{of}--help` lists them."
            raise click.UsageError(f"there is no command {name!r}. {hint}")
        module, _, attribute = self._table[name][1].partition(":")
        command = getattr(importlib.import_module(f"longhold.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (help, _) in self._table.items()])


class _Commands(LazyGroup):
    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if sys.platform == "win32" and name in self._table and name not in READING:
            raise ConfigError(
                f"`longhold {name}` does not work on Windows; use WSL."
                f" These commands work on Windows: {', '.join(READING)}"
            )
        return super().get_command(ctx, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for purpose, commands in COMMANDS.items():
            with formatter.section(purpose):
                formatter.write_dl(list(commands.items()))


def every_command() -> dict[str, str]:
    """Return all commands, hidden ones included, with the first sentence of their help."""
    shown = {name: help for commands in COMMANDS.values() for name, help in commands.items()}
    return dict(sorted((shown | HIDDEN).items()))


@click.group(
    cls=_Commands,
    table={name: (help, f"{name}_command:command") for name, help in every_command().items()},
    epilog="Try: longhold report",
    context_settings={"max_content_width": 100},
)
@click.version_option(package_name="longhold", message="longhold %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Keep an LLM agent working past its context window, without losing anything."""


def main(words: Sequence[str] | None = None) -> None:
    words = sys.argv[1:] if words is None else words
    try:
        if not words and _is_at_work():
            words = ["chat"]
        cli.main(list(words), prog_name="longhold", standalone_mode=False)
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
    except (LongholdError, OSError, ModuleNotFoundError) as error:
        from longhold.core.settings.installation import missing_extra

        if isinstance(error, ModuleNotFoundError):
            name = next((word for word in words if word in every_command()), "longhold")
            problem = missing_extra(error, NEEDS.get(name, ""), f"`longhold {name}`")
            if problem is None:
                raise
            error = problem
        if "--debug" in words:
            _complain(traceback.format_exc())
        _complain(f"longhold: {_message(error)}")
        sys.exit(error.exit_code if isinstance(error, LongholdError) else StoreError.exit_code)


def _is_at_work() -> bool:
    """Return whether `longhold` alone means `chat`, which needs a terminal and a project."""
    if sys.platform == "win32":
        return False
    here = Path.cwd()
    is_project = any((at / name).exists() for at in (here, *here.parents) for name in MARKS)
    return is_project and sys.stdin.isatty() and sys.stdout.isatty()


def _complain(text: str) -> None:
    from longhold.cli.output import say  # imported late, so that `longhold --help` is quick

    say(text, err=True)


def _message(error: LongholdError | OSError) -> str:
    if isinstance(error, LongholdError):
        return str(error)
    if isinstance(error, FileNotFoundError) and not error.filename:  # raised by Path.cwd()
        return "the current directory no longer exists; change to another one"
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; check the path and its permissions"
