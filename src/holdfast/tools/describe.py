"""What is known of tools by name alone: our own, and those of other common agents.

Used for imported transcripts and other people's tools. A tool that is not in the table is of
kind "other" and its results are never cleared; a user declares such a tool in one setting.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.messages import JsonObject
from holdfast.tools.protocol import LIMIT_CHARS, Tool, ToolKind

HISTORY = "History"
"""The tool that opens what left the view; mentioned to a model that has it."""
SHELL_CHARS = 30_000
"""Of a command's output: a test run's report fits, a build log does not."""
CLEARABLE = frozenset({"read", "search", "fetch", "write"})
"""Kinds of tools whose old results may be cleared; a command's too, see below."""
MATCH_CHARS = 20_000
"""Of matches: more means that the search was too wide."""
MCP_CHARS = 100_000
"""Of a tool server's result: 25,000 tokens of four characters, an eighth of a 200K window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    kind: ToolKind = "other"
    path_inputs: tuple[str, ...] = ()
    command_input: str = ""
    is_repeatable: bool = False
    """Whether the same call would bring the same output, as long as nothing was changed."""
    limit_chars: int | None = LIMIT_CHARS
    """Longer results are spilled; None is never."""

    @property
    def is_clearable(self) -> bool:
        """Whether the output can be had again, or is a mere confirmation.

        Output of a background command comes only once, so a shell tool needs a command.
        """
        return bool(self.command_input) if self.kind == "shell" else self.kind in CLEARABLE

    def paths_in(self, given: JsonObject) -> tuple[str, ...]:
        """Return the paths a call names; anything that is not text is left out."""
        found: list[str] = []
        for name in self.path_inputs:
            value = given.get(name)
            for path in value if isinstance(value, list) else (value,):
                if isinstance(path, str) and path.strip():
                    found.append(path)
        return tuple(found)


UNKNOWN = Described()

_FETCH = Described(kind="fetch", is_repeatable=True)
_ASK = Described(kind="ask")
_OUTPUT = Described(kind="shell", limit_chars=SHELL_CHARS)


def _read(*paths: str) -> Described:
    return Described(kind="read", path_inputs=paths, is_repeatable=True, limit_chars=None)


def _search(*paths: str) -> Described:
    return Described(kind="search", path_inputs=paths, is_repeatable=True, limit_chars=MATCH_CHARS)


def _list(*paths: str) -> Described:
    return Described(kind="search", path_inputs=paths, is_repeatable=True)


def _write(*paths: str) -> Described:
    return Described(kind="write", path_inputs=paths)


def _shell(command: str, *paths: str) -> Described:
    return Described(
        kind="shell", command_input=command, path_inputs=paths, limit_chars=SHELL_CHARS
    )


HOLDFAST: Mapping[str, Described] = {
    "Bash": _shell("command"),
    "BashOutput": _OUTPUT,
    "Edit": _write("file_path"),
    "EnterPlan": UNKNOWN,
    "ExitPlan": _ASK,
    "Glob": _list("path"),
    "Grep": _search("path"),
    HISTORY: Described(kind="search", is_repeatable=True, limit_chars=None),
    "KillShell": _OUTPUT,
    "Read": _read("file_path"),
    "Skill": UNKNOWN,
    "TodoWrite": UNKNOWN,
    "WebFetch": _FETCH,
    "Write": _write("file_path"),
}

CLAUDE_CODE: Mapping[str, Described] = {
    "AskUserQuestion": _ASK,
    "ExitPlanMode": _ASK,
    "KillBash": _OUTPUT,
    "LS": _list("path"),
    "LSP": _list("filePath"),
    "MultiEdit": _write("file_path"),
    "NotebookEdit": _write("notebook_path"),
    "NotebookRead": _read("notebook_path"),
    "PowerShell": _shell("command"),
    "ReadMcpResourceTool": _FETCH,
    "TaskOutput": _OUTPUT,
    "WebSearch": _FETCH,
}

CODEX: Mapping[str, Described] = {
    "apply_patch": _write(),
    "container.exec": _shell("command", "workdir"),
    "exec_command": _shell("cmd", "workdir"),
    "grep_files": _search("path"),
    "list_dir": _list("dir_path"),
    "local_shell": _shell("command", "workdir"),
    "read_file": _read("file_path", "path", "target_file"),
    "request_user_input": _ASK,
    "shell": _shell("command", "workdir"),
    "shell_command": _shell("command", "workdir"),
    "unified_exec": _shell("command"),
    "view_image": _read("path"),
    "web_search": _FETCH,
    "write_stdin": _OUTPUT,
}
"""`apply_patch` names its paths inside the patch, where no input says so."""

PI: Mapping[str, Described] = {
    "bash": _shell("command"),
    "edit": _write("path", "file_path"),
    "find": _list("path"),
    "grep": _search("path"),
    "ls": _list("path"),
    "read": _read("path", "file_path"),
    "write": _write("path", "file_path"),
}

GENERIC: Mapping[str, Described] = {
    "cat": _read("path"),
    "codebase_search": _search("target_directories"),
    "create_file": _write("path", "file_path"),
    "delete_file": _write("path", "file_path"),
    "edit_file": _write("path", "file_path", "target_file"),
    "execute_bash": _shell("command"),
    "execute_command": _shell("command"),
    "fetch": _FETCH,
    "file_search": _list("path"),
    "get_file_contents": _read("path"),
    "glob": _list("path"),
    "glob_files": _list("path"),
    "grep_search": _search("path"),
    "list_directory": _list("path"),
    "list_files": _list("path"),
    "multi_edit": _write("path", "file_path"),
    "open_file": _read("path"),
    "patch": _write("path"),
    "read_files": _read("paths", "path"),
    "read_many_files": _read("paths"),
    "replace": _write("path", "file_path"),
    "replace_in_file": _write("path"),
    "ripgrep": _search("path"),
    "run_command": _shell("command", "cwd"),
    "run_shell_command": _shell("command", "directory"),
    "run_terminal_cmd": _shell("command"),
    "run_terminal_command": _shell("command"),
    "search": _search("path"),
    "search_file_content": _search("path"),
    "search_files": _search("path"),
    "str_replace": _write("path"),
    "terminal": _shell("command"),
    "view_file": _read("path", "file_path"),
    "web_fetch": _FETCH,
    "webfetch": _FETCH,
    "write_file": _write("path", "file_path"),
    "write_to_file": _write("path"),
}
"""What several agents and tool servers call the same things."""

KNOWN: Mapping[str, Described] = {**GENERIC, **PI, **CODEX, **CLAUDE_CODE, **HOLDFAST}


Describe: TypeAlias = Callable[[str], Described]


def describing(declared: str, known: Describe | None = None) -> Describe:
    """Describe further tools, declared in a line: `mcp__db__query=fetch, Ask=search`."""
    known = known or description_of
    pairs = (pair.partition("=") for pair in declared.split(",") if pair.strip())
    more = {name.strip(): _declared(kind.strip()) for name, _, kind in pairs}
    return lambda name: more.get(name) or known(name)


def _declared(kind: str) -> Described:
    """Describe a tool of a declared kind, with the usual names of inputs for it."""
    usual = {"read": "read_file", "shell": "run_command", "search": "search", "write": "write_file"}
    return KNOWN.get(usual.get(kind, ""), _FETCH)


def declared_by(tool: Tool) -> Described:
    return Described(
        kind=tool.kind,
        path_inputs=tool.path_inputs,
        command_input=tool.command_input,
        is_repeatable=tool.kind in ("read", "search", "fetch"),
        limit_chars=tool.limit_chars,
    )


def description_of(tool_name: str) -> Described:
    """Describe the tool of this name; MCP tools are unknown unless declared."""
    return KNOWN.get(tool_name, UNKNOWN)
