"""The names and help texts of a chat's slash commands. Their code is imported on use.

Commands that only read a session run the `longhold` command of the same name.
"""

from collections.abc import Callable

from longhold.agent.terminal.screen import (
    SessionMove,
    SlashCommand,
    SlashContext,
    always,
    with_first,
)


def _command(
    name: str, usage: str, help: str, at_once: Callable[[str], bool] = lambda rest: False
) -> SlashCommand:
    async def run(context: SlashContext, rest: str) -> SessionMove | None:
        from longhold.cli import slash_commands  # imported late, so that a chat starts quickly

        move: SessionMove | None = await getattr(slash_commands, name[1:])(context, rest)
        return move

    usage = f"{name} {usage}".rstrip()
    return SlashCommand(name=name, usage=usage, help=help, run=run, at_once=at_once)


SLASH = {
    command.name: command
    for command in (
        _command("/help", "", "list commands and keys", always),
        _command("/context", "", "draw what fills the window, with suggestions", always),
        _command("/compact", "[FOCUS] [from|up to N]", "summarise history, or a part of it"),
        _command("/undo", "[N]", "undo the newest change of the view, or entry N"),
        _command("/redo", "[N]", "re-apply an undone change"),
        _command("/drop", "N [N...]", "remove messages from the view; /undo restores them"),
        _command(
            "/pin",
            "[off] [N...]",
            "keep messages word for word, or list the kept messages",
            with_first(""),
        ),
        _command("/rewind", "[N]", "go back to before your message N, in a branch"),
        _command("/branch", "", "continue in a copy of this session"),
        _command("/clear", "", "start a new session"),
        _command("/resume", "[ID]", "switch to another session of this project"),
        _command("/ask", "QUESTION", "ask a question outside the conversation", always),
        _command("/history", "QUERY", "search the whole history of this session", always),
        _command("/explain", "", "show turn by turn what changed the view", always),
        _command("/cost", "", "show spending by purpose, with overhead", always),
        _command("/cache", "", "show how well the prompt cache was used", always),
        _command("/notes", "[edit]", "show or edit the session's notes", with_first("")),
        _command(
            "/memory",
            "[show|log|inbox|on|off...]",
            "show, search and edit memories",
            with_first("", "show", "log", "diff", "search"),
        ),
        _command("/remember", "TEXT", "keep TEXT as a memory of this project, like #TEXT"),
        _command("/dream", "[try]", "tidy the project's memories; `try` only shows the changes"),
        _command("/jobs", "[kill N]", "list agents and background work, or stop one", always),
        _command("/model", "[NAME]", "switch to another model"),
        _command("/login", "", "save a key for Claude or OpenAI"),
        _command("/mode", "[MODE]", "show or change the permission mode", with_first("next")),
        _command("/permissions", "", "list the mode and the rules in force", always),
        _command("/mcp", "", "list MCP servers and their tools", always),
        _command("/hooks", "", "list the hooks that are in force", always),
        _command("/export", "FILE [FORMAT]", "write the session in another format"),
        _command("/exit", "", "leave; `longhold chat --resume newest` resumes"),
    )
}
