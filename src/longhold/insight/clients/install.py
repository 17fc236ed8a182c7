"""Installs Longhold into another client, or removes it.

All changes are planned before any file is written. The user's content keeps its order. An existing
status line or server of the same name is not changed.
"""

import copy
import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from longhold.core.messages import JsonObject
from longhold.core.settings import home
from longhold.core.settings.installation import NAME, is_installed, program
from longhold.core.settings.private_files import (
    Overtaken,
    private_directory,
    replace_content,
    write_private,
)
from longhold.errors import ConfigError
from longhold.insight.clients import pi
from longhold.insight.session_files import agent_roots

CLIENTS = ("claude-code", "codex", "pi")
REFRESH_SECONDS = 10
_PROGRAM = re.compile(
    r"(/[^\"'\n]*?/(?:longhold(?=[\"' \\])|python[\d.]*(?=[^/]{0,80}-m[\s\"',]+longhold)))"
)
_BEGIN, _END = "# longhold: begin", "# longhold: end"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    path: Path
    before: str | None
    """The old content, or None if the file does not exist."""
    after: str | None
    """The new content, or None to remove the file."""
    lines: tuple[str, ...]
    original: str | None = None
    """The file without Longhold's entries, which an undo restores."""

    def apply(self, *, undo: bool = False) -> None:
        """Write the file, unless another program has changed it after it was read."""
        try:
            expected = self.path.stat() if self.path.exists() else None
            if _read(self.path) != self.before:
                raise Overtaken(str(self.path))
            if not undo:
                kept = {"path": str(self.path), "before": self.original, "after": self.after}
                private_directory(home() / "installed")
                write_private(_backup(self.path), msgspec.json.encode(kept))
            if self.after is None:
                self.path.unlink()
            else:
                replace_content(self.path, self.after.encode(), expected)
            if undo:
                _backup(self.path).unlink(missing_ok=True)
        except Overtaken:
            raise ConfigError(f"{self.path} was changed by another program; try again") from None


def plan(client: str, *, undo: bool = False) -> list[FileChange]:
    """Plan the changes. An undo restores the original bytes of a file that nobody changed."""
    without = {one.path: _restore_original(one) for one in _PLANS[client](undo=True)}
    if undo:
        found = list(without.values())
    else:
        found = [
            replace(one, original=without[one.path].after if one.path in without else one.before)
            for one in _PLANS[client](undo=False)
        ]
    return [change for change in found if change.before != change.after]


def _restore_original(change: FileChange) -> FileChange:
    try:
        kept = msgspec.json.decode(_backup(change.path).read_bytes())
    except (OSError, msgspec.DecodeError):
        return change
    if change.before == change.after:  # because it no longer has Longhold's entries
        return change
    is_ours = kept["before"] is None and (change.after or "{}").strip() == "{}"
    if is_ours or kept["after"] == change.before:
        return replace(change, after=kept["before"])
    return change


def _backup(path: Path) -> Path:
    name = blake2b(os.fsencode(os.path.realpath(path)), digest_size=8).hexdigest()
    return home() / "installed" / f"{path.name}.{name}.json"


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode() if path.exists() else None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 ({error}); fix it first") from error


def find_programs(client: str) -> list[str]:
    texts = [one.before or "" for one in plan(client, undo=True)]
    return sorted({found for text in texts for found in _PROGRAM.findall(text)})


def _claude_changes(*, undo: bool) -> Iterator[FileChange]:
    settings = agent_roots()["claude-code"][0].parent
    state = settings / ".claude.json"
    if "CLAUDE_CONFIG_DIR" not in os.environ:
        state = settings.parent / ".claude.json"
    yield _json_change(settings / "settings.json", _drop_settings if undo else _add_settings)
    yield _json_change(state, _drop_server if undo else _add_server)


def _json_change(path: Path, change: Callable[[JsonObject], list[str]]) -> FileChange:
    before = _read(path)
    try:
        document = msgspec.json.decode(before) if before and before.strip() else {}
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path} is not JSON ({error}); fix it first") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a JSON object; fix it first")
    changed = copy.deepcopy(document)
    try:
        lines = change(changed)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}; fix it first") from error
    after = before if changed == document else _json_text(changed, before or "")
    return FileChange(path=path, before=before, after=after, lines=tuple(lines))


def _json_text(document: JsonObject, like: str) -> str:
    """Write JSON with the indentation and final newline of the text it replaces."""
    indent = re.search(r"\n([ \t]+)\S", like)
    is_one_line = bool(like.strip()) and indent is None
    end = like[len(like.rstrip()) :] if like.strip() else "\n"
    shape = None if is_one_line else indent[1] if indent else 2
    return json.dumps(document, indent=shape, ensure_ascii=False) + end


def _add_settings(settings: JsonObject) -> list[str]:
    lines = []
    status = settings.get("statusLine")
    command = shlex.join((*program(), "statusline"))
    if status is None or (_is_ours(status) and status["command"] != command):
        new = {"type": "command", "refreshInterval": REFRESH_SECONDS, **(status or {})}
        settings["statusLine"] = new | {"command": command}
        lines.append(f"statusLine: {command}")
    elif not _is_ours(status):
        lines.append("statusLine: yours is kept")
    hooks = _ensure_key(settings, "hooks", dict)
    command = shlex.join((*program(), "keep"))
    for event, matcher in (("PreCompact", ""), ("SessionStart", "compact")):
        groups = _ensure_key(hooks, event, list)
        ours = [hook for group in groups for hook in _our_hooks(group)]
        if not ours:
            ours = [{"type": "command", "command": ""}]
            groups.append(({"matcher": matcher} if matcher else {}) | {"hooks": ours})
        for hook in ours:
            if hook["command"] != command:
                hook["command"] = command
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
        kept = [group for group in hooks[event] if not _our_hooks(group)]
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
    """Add or repair the server. Without its extra the server would fail, so it is not added."""
    servers = state.get("mcpServers")
    known = servers.get(NAME) if isinstance(servers, dict) else None
    if known is not None and not _is_our_server(known):
        return []
    if not is_installed("mcp"):
        return _drop_server(state)
    command, *arguments = (*program(), "mcp")
    server = {"type": "stdio", "command": command, "args": arguments}
    if known == server:
        return []
    _ensure_key(state, "mcpServers", dict)[NAME] = server
    return [f"mcpServers.{NAME}: {command} {' '.join(arguments)}"]


def _is_our_server(server: object) -> bool:
    given = server if isinstance(server, dict) else {}
    words = [str(given.get("command")), *map(str, given.get("args") or ())]
    return words[-1] == "mcp" and Path(words[-2] if len(words) > 1 else "").name == NAME


def _drop_server(state: JsonObject) -> list[str]:
    servers = state.get("mcpServers")
    if not isinstance(servers, dict) or not _is_our_server(servers.get(NAME)):
        return []
    del servers[NAME]
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


def _our_hooks(group: object) -> list[JsonObject]:
    found = group.get("hooks") if isinstance(group, dict) else None
    return [hook for hook in found if _is_ours(hook)] if isinstance(found, list) else []


def _is_ours(entry: object) -> bool:
    command = str(entry.get("command", "")) if isinstance(entry, dict) else ""
    try:
        *_, ran, word = ("", "", *shlex.split(command))
    except ValueError:  # because a command of the user may have an open quote
        return False
    return Path(ran).name == NAME and word in ("statusline", "keep")


def _codex_changes(*, undo: bool) -> Iterator[FileChange]:
    """Plan a block between two comments at the end of Codex's settings."""
    path = agent_roots()["codex"][0].parent / "config.toml"
    before = _read(path)
    text = before or ""
    start, end = text.find(_BEGIN), text.find(_END)
    has_block = 0 <= start < end
    if undo or (has_block and not is_installed("mcp")):
        if has_block:
            after = text[:start].rstrip("\n") + text[end + len(_END) :]
            line = f"mcp_servers.{NAME}: removed"
            after = after if after.strip() else ""
            yield FileChange(path=path, before=before, after=after, lines=(line,))
        return
    try:
        servers = tomllib.loads(text).get("mcp_servers", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML ({error}); fix it first") from error
    if (NAME in servers and not has_block) or not is_installed("mcp"):
        return
    command, *arguments = (*program(), "mcp")
    quoted, listed = (msgspec.json.encode(each).decode() for each in (command, arguments))
    block = f"{_BEGIN}\n[mcp_servers.{NAME}]\ncommand = {quoted}\nargs = {listed}\n{_END}"
    if has_block:
        after = text[:start] + block + text[end + len(_END) :]
    else:
        gap = "\n" if text and not text.endswith("\n\n") else ""
        after = f"{text}{gap}{block}\n"
    line = f"mcp_servers.{NAME}: {command} {' '.join(arguments)}"
    yield FileChange(path=path, before=before, after=after, lines=(line,))


def _pi_changes(*, undo: bool) -> Iterator[FileChange]:
    path = agent_roots()["pi"][0].parent / "extensions" / f"{NAME}.ts"
    before = _read(path)
    if before and not before.startswith(pi.MARK):
        raise ConfigError(f"{path} was not written by Longhold; rename it first")
    if undo and before:
        yield FileChange(path=path, before=before, after=None, lines=("removed",))
    elif not undo:
        lines = ("a status line, the tool search_history, and facts that a compaction left out",)
        yield FileChange(path=path, before=before, after=pi.extension(program()), lines=lines)


_PLANS = {"claude-code": _claude_changes, "codex": _codex_changes, "pi": _pi_changes}
