"""Installs Longhold into another client, and undoes it.

All changes are planned before any file is written. The user's content stays in its order; an
existing status line or server of the same name is left alone.
"""

import copy
import os
import shlex
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from longhold.core.messages import JsonObject
from longhold.core.settings.installation import NAME, program
from longhold.core.settings.private_files import Overtaken, replace_content
from longhold.errors import ConfigError
from longhold.insight.clients import pi
from longhold.insight.session_files import agent_roots

CLIENTS = ("claude-code", "codex", "pi")
REFRESH_SECONDS = 10
_BEGIN, _END = "# longhold: begin", "# longhold: end"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    path: Path
    before: str
    after: str | None
    """None removes the file."""
    lines: tuple[str, ...]

    def apply(self) -> None:
        """Write the file, unless another program changed it since it was read."""
        try:
            expected = self.path.stat() if self.path.exists() else None
            if (self.path.read_text("utf-8") if expected else "") != self.before:
                raise Overtaken(str(self.path))
            if self.after is None:
                self.path.unlink()
            else:
                replace_content(self.path, self.after.encode(), expected)
        except Overtaken:
            raise ConfigError(f"{self.path} was changed meanwhile; try again") from None


def plan(client: str, *, undo: bool = False) -> list[FileChange]:
    planned = _PLANS[client](undo=undo)
    return [change for change in planned if change.before != change.after]


def _claude_changes(*, undo: bool) -> Iterator[FileChange]:
    settings = agent_roots()["claude-code"][0].parent
    state = settings / ".claude.json"
    if "CLAUDE_CONFIG_DIR" not in os.environ:
        state = settings.parent / ".claude.json"
    yield _json_change(settings / "settings.json", _drop_settings if undo else _add_settings)
    yield _json_change(state, _drop_server if undo else _add_server)


def _json_change(path: Path, change: Callable[[JsonObject], list[str]]) -> FileChange:
    before = path.read_text("utf-8") if path.exists() else ""
    try:
        document = msgspec.json.decode(before) if before.strip() else {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not JSON ({error}); mend it first") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a JSON object; mend it first")
    changed = copy.deepcopy(document)
    try:
        lines = change(changed)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}; mend it first") from error
    after = before if changed == document else _json_text(changed)
    return FileChange(path=path, before=before, after=after, lines=tuple(lines))


def _json_text(document: JsonObject) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _add_settings(settings: JsonObject) -> list[str]:
    lines = []
    status = settings.get("statusLine")
    if status is None:
        command = shlex.join((*program(), "statusline"))
        settings["statusLine"] = {
            "type": "command",
            "command": command,
            "refreshInterval": REFRESH_SECONDS,
        }
        lines.append(f"statusLine: {command}")
    elif not _is_ours(status):
        lines.append("statusLine: you have one, which stays")
    hooks = _ensure_key(settings, "hooks", dict)
    for event, matcher in (("PreCompact", ""), ("SessionStart", "compact")):
        groups = _ensure_key(hooks, event, list)
        if not any(_is_our_group(group) for group in groups):
            command = shlex.join((*program(), "keep"))
            hook = {"type": "command", "command": command}
            groups.append(({"matcher": matcher} if matcher else {}) | {"hooks": [hook]})
            lines.append(f"hooks.{event}: {command}")
    return lines


def _drop_settings(settings: JsonObject) -> list[str]:
    lines = []
    if _is_ours(settings.get("statusLine")):
        del settings["statusLine"]
        lines.append("statusLine: removed")
    hooks = settings.get("hooks")
    hooks = hooks if isinstance(hooks, dict) else {}
    for event in list(hooks):
        if not isinstance(hooks[event], list):
            continue
        kept = [group for group in hooks[event] if not _is_our_group(group)]
        if len(kept) == len(hooks[event]):
            continue
        lines.append(f"hooks.{event}: removed")
        hooks[event] = kept
        if not kept:
            del hooks[event]
    if lines and not hooks:
        settings.pop("hooks", None)
    return lines


def _add_server(state: JsonObject) -> list[str]:
    servers = _ensure_key(state, "mcpServers", dict)
    if NAME in servers:
        return []
    command, *arguments = (*program(), "mcp")
    servers[NAME] = {"type": "stdio", "command": command, "args": arguments}
    return [f"mcpServers.{NAME}: {command} {' '.join(arguments)}"]


def _drop_server(state: JsonObject) -> list[str]:
    servers = state.get("mcpServers")
    if not isinstance(servers, dict) or servers.pop(NAME, None) is None:
        return []
    if not servers:
        del state["mcpServers"]
    return [f"mcpServers.{NAME}: removed"]


def _ensure_key(
    document: JsonObject, key: str, kind: type[dict[str, Any]] | type[list[Any]]
) -> Any:
    found = document.setdefault(key, kind())
    if not isinstance(found, kind):
        shape = "an object" if kind is dict else "a list"
        raise ConfigError(f"{key} is not {shape}")
    return found


def _is_our_group(group: object) -> bool:
    found = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(found, list) and any(map(_is_ours, found))


def _is_ours(entry: object) -> bool:
    command = str(entry.get("command", "")) if isinstance(entry, dict) else ""
    try:
        *_, ran, word = ("", "", *shlex.split(command))
    except ValueError:  # somebody else's, with an open quote
        return False
    return Path(ran).name == NAME and word in ("statusline", "keep")


def _codex_changes(*, undo: bool) -> Iterator[FileChange]:
    """Plan a block between two comments at the end of Codex's settings."""
    path = agent_roots()["codex"][0].parent / "config.toml"
    before = path.read_text("utf-8") if path.exists() else ""
    start, end = before.find(_BEGIN), before.find(_END)
    if undo:
        if start < 0 or end < start:
            return
        after = before[:start].rstrip("\n") + before[end + len(_END) :]
        after = after if after.strip() else ""
        yield FileChange(
            path=path, before=before, after=after, lines=(f"mcp_servers.{NAME}: removed",)
        )
        return
    try:
        servers = tomllib.loads(before).get("mcp_servers", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML ({error}); mend it first") from error
    if NAME in servers:
        return
    command, *arguments = (*program(), "mcp")
    quoted, listed = (msgspec.json.encode(each).decode() for each in (command, arguments))
    block = f"{_BEGIN}\n[mcp_servers.{NAME}]\ncommand = {quoted}\nargs = {listed}\n{_END}\n"
    gap = "\n" if before and not before.endswith("\n\n") else ""
    line = f"mcp_servers.{NAME}: {command} {' '.join(arguments)}"
    yield FileChange(path=path, before=before, after=before + gap + block, lines=(line,))


def _pi_changes(*, undo: bool) -> Iterator[FileChange]:
    """Plan the file that pi loads. Raises if a foreign file has that name."""
    path = agent_roots()["pi"][0].parent / "extensions" / f"{NAME}.ts"
    before = path.read_text("utf-8") if path.exists() else ""
    if before and not before.startswith(pi.MARK):
        raise ConfigError(f"{path} is not Longhold's; rename it first")
    if undo and before:
        yield FileChange(path=path, before=before, after=None, lines=("removed",))
    elif not undo:
        lines = ("a status line, the tool search_history, and what a compaction left out",)
        yield FileChange(path=path, before=before, after=pi.extension(program()), lines=lines)


_PLANS = {"claude-code": _claude_changes, "codex": _codex_changes, "pi": _pi_changes}
