"""Reads MCP servers from `mcpServers` in settings files and from `.mcp.json`.

A server is a program that would run here, so a project's servers need the user's trust.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from longhold.agent.permissions.sources import SettingsSection, read_sections
from longhold.core.messages import Json
from longhold.core.tools.protocol import ToolKind
from longhold.errors import ConfigError

START_SECONDS = 30.0
"""Long, because package runners download the server first."""
CALL_SECONDS = 300.0
"""Long, because browsers and builds are slow."""
RETRY_SECONDS = 60.0
"""The minimum time before a search retries an unreachable server."""

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class McpServer(Struct, frozen=True, kw_only=True):
    name: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """Added to the few variables that every server gets. Other variables are not passed on."""
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    kinds: dict[str, ToolKind] = {}
    """Tools whose old results may be cleared like those of a built-in kind."""
    start_seconds: float = START_SECONDS
    call_seconds: float = CALL_SECONDS
    section: SettingsSection | None = None
    """The source of the server. It must still be trusted and unchanged when the server starts."""
    retry_seconds: float = RETRY_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class McpPlan:
    servers: tuple[McpServer, ...] = ()
    untrusted: tuple[SettingsSection, ...] = ()
    """The project's servers that are not trusted yet. See `permissions.trust`."""


def load_servers(project: Path | None, *, at: Path | None = None) -> McpPlan:
    """Read the servers. A later file overrides an earlier one."""
    servers: dict[str, McpServer] = {}
    untrusted: list[SettingsSection] = []
    for section in read_sections("mcpServers", project, at=at):
        if not section.is_trusted:
            untrusted.append(section)
            continue
        for name, value in section.value.items():
            servers[name] = read_server(name, value, section)
    return McpPlan(servers=tuple(servers.values()), untrusted=tuple(untrusted))


def read_server(name: str, value: Json, section: SettingsSection) -> McpServer:
    file = section.file
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key != "section"}
    try:
        server = msgspec.convert(value, McpServer)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: mcpServers.{name}: {error}") from error
    if bool(server.command) == bool(server.url):
        raise ConfigError(f"{file}: mcpServers.{name}: give either a command or a url")
    return msgspec.structs.replace(server, name=name, section=section)


def expand_variables(server: McpServer, variables: Mapping[str, str]) -> McpServer:
    def fill(text: str) -> str:
        return _VARIABLE.sub(lambda found: variables.get(found[1], found[2] or ""), text)

    return msgspec.structs.replace(
        server,
        command=fill(server.command),
        args=tuple(fill(text) for text in server.args),
        env={key: fill(value) for key, value in server.env.items()},
        url=fill(server.url),
        headers={key: fill(value) for key, value in server.headers.items()},
    )
