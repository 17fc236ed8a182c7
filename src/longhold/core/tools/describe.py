"""Describe tools by name: Longhold's own, those of common agents, and user declarations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from longhold.core.messages import JsonObject
from longhold.core.tools.protocol import LIMIT_CHARS, Tool, ToolKind

HISTORY = "History"
MEMORY = "memory"
SHELL_CHARS = 30_000  # limit for command output, enough for a test report but not a build log
CLEARABLE = frozenset({"read", "search", "fetch", "write"})
"""Kinds of tools whose old results may be cleared. See `is_clearable` for commands."""
MATCH_CHARS = 20_000  # limit for search results, because a larger result means too broad a search
MCP_CHARS = 100_000  # 25,000 tokens of four characters, an eighth of a 200K window


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    kind: ToolKind = "other"
    path_inputs: tuple[str, ...] = ()
    command_input: str = ""
    is_repeatable: bool = False  # returns the same output as long as nothing has changed
    limit_chars: int | None = LIMIT_CHARS  # longer results are spilled, unless this is None
    clearable: bool | None = None  # whether old results may be cleared, or None to decide by kind

    @property
    def is_clearable(self) -> bool:
        """Whether the output can be fetched again or only confirms an action."""
        if self.clearable is not None:
            return self.clearable
        return bool(self.command_input) if self.kind == "shell" else self.kind in CLEARABLE

    def paths_in(self, given: JsonObject) -> tuple[str, ...]:
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


KNOWN: Mapping[str, Described] = {
    name: described
    for described, names in (
        (UNKNOWN, "EnterPlan Skill TodoWrite"),
        (_ASK, "AskUserQuestion ExitPlan ExitPlanMode request_user_input"),
        (_FETCH, "ReadMcpResourceTool WebFetch WebSearch fetch web_fetch web_search webfetch"),
        (_OUTPUT, "BashOutput KillBash KillShell TaskOutput write_stdin"),
        (Described(kind="search", is_repeatable=True, limit_chars=None), HISTORY),
        (_read("file_path"), "Read"),
        (_read("file_path", "path", "target_file"), "read_file"),
        (_read("notebook_path"), "NotebookRead"),
        (_read("path"), "cat get_file_contents open_file view_image"),
        (_read("path", "file_path"), "read view_file"),
        (_read("paths"), "read_many_files"),
        (_read("paths", "path"), "read_files"),
        (_search("path"), "Grep grep grep_files grep_search ripgrep"),
        (_search("path"), "search search_file_content search_files"),
        (_search("target_directories"), "codebase_search"),
        (_list("dir_path"), "list_dir"),
        (_list("filePath"), "LSP"),
        (_list("path"), "Glob LS file_search find glob glob_files list_directory list_files ls"),
        (_write(), "apply_patch"),  # the paths are in the patch
        (_write("file_path"), "Edit MultiEdit Write"),
        (_write("notebook_path"), "NotebookEdit"),
        (_write("path"), "patch replace_in_file str_replace write_to_file"),
        (_write("path", "file_path"), "create_file delete_file edit multi_edit replace"),
        (_write("path", "file_path"), "write write_file"),
        (_write("path", "file_path", "target_file"), "edit_file"),
        (_shell("cmd", "workdir"), "exec_command"),
        (_shell("input"), "exec"),
        (_shell("command"), "Bash PowerShell bash execute_bash execute_command terminal"),
        (_shell("command"), "run_terminal_cmd run_terminal_command unified_exec"),
        (_shell("command", "cwd"), "run_command"),
        (_shell("command", "directory"), "run_shell_command"),
        (_shell("command", "workdir"), "container.exec local_shell shell shell_command"),
    )
    for name in names.split()
}

Describe: TypeAlias = Callable[[str], Described]


def build_describe(declared: str, known: Describe | None = None) -> Describe:
    """Add the tools that a setting declares, such as `mcp__db__query=fetch, Ask=search`."""
    known = known or description_of
    pairs = (pair.partition("=") for pair in declared.split(",") if pair.strip())
    more = {name.strip(): describe_kind(kind.strip()) for name, _, kind in pairs}
    return lambda name: more.get(name) or known(name)


def describe_kind(kind: str) -> Described:
    usual = {"read": "read_file", "shell": "run_command", "search": "search", "write": "write_file"}
    return {"ask": _ASK, "other": UNKNOWN}.get(kind) or KNOWN.get(usual.get(kind, ""), _FETCH)


def describe_declared(tool: Tool) -> Described:
    return Described(
        kind=tool.kind,
        path_inputs=tool.path_inputs,
        command_input=tool.command_input,
        is_repeatable=tool.kind in ("read", "search", "fetch"),
        limit_chars=tool.limit_chars,
    )


def description_of(tool_name: str) -> Described:
    """Describe a tool by name. MCP tools are unknown unless declared."""
    return KNOWN.get(tool_name, UNKNOWN)
