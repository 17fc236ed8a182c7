"""The commands of a chat: what each is called and does; their modules are imported when used.

Commands that only look at a session are the commands of the command line, given this session.
"""

import importlib
from collections.abc import Awaitable, Callable

from longhold.agent.terminal.slash import (
    SessionMove,
    SlashCommand,
    SlashContext,
    always,
    with_first,
)


def _import_later(
    module: str, name: str
) -> Callable[[SlashContext, str], Awaitable[SessionMove | None]]:
    async def run(context: SlashContext, rest: str) -> SessionMove | None:
        found = getattr(importlib.import_module(f"longhold.cli.slash.{module}"), name)
        move: SessionMove | None = await found(context, rest)
        return move

    return run


def _command(
    name: str,
    module: str,
    usage: str,
    help: str,
    at_once: Callable[[str], bool] = lambda rest: False,
) -> SlashCommand:
    run = _import_later(module, name.removeprefix("/"))
    usage = f"{name} {usage}".rstrip()
    return SlashCommand(name=name, usage=usage, help=help, run=run, at_once=at_once)


SLASH = {
    command.name: command
    for command in (
        _command("/help", "looking", "", "list commands and keys", always),
        _command("/context", "looking", "", "draw what fills the window, with suggestions", always),
        _command(
            "/compact",
            "changing",
            "[preview] [FOCUS] [from|up to N]",
            "summarise history; `preview` lets you look first",
        ),
        _command("/undo", "changing", "[N]", "undo the newest change of the view, or entry N"),
        _command("/redo", "changing", "[N]", "re-apply an undone change"),
        _command("/drop", "changing", "N [N...]", "let messages leave the view; /undo restores"),
        _command(
            "/pin",
            "changing",
            "[off] [N...]",
            "keep messages word for word; list them",
            with_first(""),
        ),
        _command("/rewind", "moving", "[N]", "go back to before your message N, in a branch"),
        _command("/branch", "moving", "", "go on in a copy of this session"),
        _command("/clear", "moving", "", "begin anew, in a new session"),
        _command("/resume", "moving", "[ID]", "go on with another session of this project"),
        _command(
            "/ask", "working", "QUESTION", "ask beside the conversation; it stays as it is", always
        ),
        _command(
            "/history", "looking", "QUERY", "search all that was ever said and done here", always
        ),
        _command("/explain", "looking", "", "show turn by turn what changed the view", always),
        _command("/cost", "looking", "", "show what was spent on what, own calls included", always),
        _command("/cache", "looking", "", "show how well the prompt cache was used", always),
        _command("/notes", "looking", "[edit]", "show or edit the session's notes", with_first("")),
        _command(
            "/memory",
            "looking",
            "[show|log|inbox|on|off...]",
            "look after memories",
            with_first("", "show", "log", "diff", "search"),
        ),
        _command("/dream", "working", "[try]", "tidy the project's memories; `try` only shows it"),
        _command(
            "/agents", "working", "", "list agents that run or whose report is unread", always
        ),
        _command("/stop", "working", "AGENT", "stop an agent; only you can start it again", always),
        _command(
            "/jobs", "working", "[kill N]", "list what works in the background; stop one", always
        ),
        _command("/model", "working", "[NAME]", "switch to another model"),
        _command("/mode", "working", "[MODE]", "how freely tools may run"),
        _command("/hooks", "looking", "", "list the hooks that are in force", always),
        _command("/export", "looking", "FILE [FORMAT]", "write the session in another format"),
        _command("/exit", "moving", "", "leave; `longhold chat --resume newest` goes on"),
    )
}
"""By name, in the order in which /help lists them."""
