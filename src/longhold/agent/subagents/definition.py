"""Agent definitions in Markdown files. A project's files override the user's and the built-in ones.

They only narrow their parent's tools and mode. Until the user trusts a project's file, its hooks,
servers, model and use of the user's memory are ignored, and it cannot replace another definition.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from importlib.resources import as_file, files
from pathlib import Path
from typing import Literal, TypeAlias

from longhold.agent.hooks import Hook, hooks_in
from longhold.agent.mcp import McpServer, read_server
from longhold.agent.permissions.decide import Mode, pick_narrower
from longhold.agent.permissions.rules import MODES
from longhold.agent.permissions.sources import SettingsSection, as_section
from longhold.agent.subagents.names import check_agent_name
from longhold.core.messages import JsonObject
from longhold.core.messages.text import escape_frames, one_line
from longhold.core.settings import home
from longhold.core.settings.front_matter import (
    UnreadableFrontMatter,
    is_on,
    names_in,
    number_in,
    read_front,
    text_in,
)
from longhold.core.settings.project import UnusableFile, read_text
from longhold.core.settings.setting import STAGED
from longhold.errors import ConfigError

DESCRIPTION_CHARS = 1_536
"""The maximum length of a description, which the parent's model reads to choose an agent."""

FORK = "fork"
"""The agent that continues the conversation itself. It has no file."""

DefinitionSource: TypeAlias = Literal["built in", "user", "project"]
MemoryScope: TypeAlias = Literal["", "user", "project", "local"]
SCOPES: dict[str, MemoryScope] = {"user": "user", "project": "project", "local": "local"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    name: str
    description: str
    prompt: str
    source: DefinitionSource = "built in"
    file: Path | None = None
    tools: tuple[str, ...] | None = None
    """Tool names or patterns. None means all tools of the parent."""
    disallowed: tuple[str, ...] = ()
    model: str = ""
    """The model. "" means the parent's model."""
    mode: Mode | None = None
    turns: int = 0
    """The turn limit. 0 means the session's limit."""
    skills: tuple[str, ...] = ()
    servers: tuple[str, ...] | None = None
    """Names of configured servers. None means all servers of the parent."""
    own_servers: tuple[McpServer, ...] = ()
    hooks: tuple[Hook, ...] = ()
    memory: MemoryScope = ""
    is_background: bool = False
    isolation: Literal["", "worktree"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionDraft:
    definition: Definition
    hooks: JsonObject
    own_servers: JsonObject
    demands: JsonObject
    sha256: str
    """The hash of the whole file, because trust covers exactly this content."""


def tools_for(definition: Definition, available: Iterable[str]) -> tuple[str, ...]:
    """Return an agent's tools. A rule against some calls of a tool excludes the whole tool."""
    allowed = None if definition.tools is None else [p for p in definition.tools if "[" not in p]
    denied = [pattern.partition("(")[0].strip() for pattern in definition.disallowed]
    return tuple(
        name
        for name in available
        if (allowed is None or any(fnmatchcase(name, pattern) for pattern in allowed))
        and not any(fnmatchcase(name, pattern) for pattern in denied)
    )


def mode_for(definition: Definition, parent: Mode) -> Mode:
    return parent if definition.mode is None else pick_narrower(definition.mode, parent)


def read_definition(text: str, file: Path, source: DefinitionSource) -> DefinitionDraft:
    """Read a definition. Raise `UnreadableFrontMatter` or `ConfigError` if it is invalid."""
    fields, prompt = read_front(text)
    name = check_agent_name(text_in(fields, "name") or file.stem, "an agent")
    if name.casefold() == FORK:
        raise UnreadableFrontMatter(
            f"{FORK!r} is reserved for forks of the conversation; choose another name"
        )
    description = one_line(text_in(fields, "description"))[:DESCRIPTION_CHARS]
    if not description or not prompt:
        raise UnreadableFrontMatter("it has no description or no prompt")
    model = text_in(fields, "model").strip()
    if model.casefold().startswith(STAGED):
        raise UnreadableFrontMatter(f"its model {model!r} is for tests only")
    hooks, servers, own_servers = _programs(fields)
    definition = Definition(
        name=name,
        description=description,
        prompt=prompt,
        source=source,
        file=file,
        tools=names_in(fields, "tools"),
        disallowed=names_in(fields, "disallowedtools") or (),
        model="" if model == "inherit" else model,
        mode=MODES.get(text_in(fields, "permissionmode")),
        turns=number_in(fields, "maxturns") or number_in(fields, "turns"),
        skills=names_in(fields, "skills") or (),
        servers=servers,
        memory=SCOPES.get(text_in(fields, "memory"), ""),
        is_background=is_on(fields, "background"),
        isolation="worktree" if text_in(fields, "isolation") == "worktree" else "",
    )
    mark = sha256(text.encode()).hexdigest()
    return DefinitionDraft(
        definition=definition,
        hooks=hooks,
        own_servers=own_servers,
        demands=_demands(definition, hooks, own_servers, mark),
        sha256=mark,
    )


def _programs(fields: JsonObject) -> tuple[JsonObject, tuple[str, ...] | None, JsonObject]:
    """Separate hooks and defined servers, which run programs, from servers that are only named."""
    hooks, servers = fields.get("hooks") or {}, fields.get("mcpservers")
    if not isinstance(hooks, dict):
        raise UnreadableFrontMatter("its hooks cannot be read as YAML")
    own: JsonObject = dict(servers) if isinstance(servers, dict) else {}
    for item in servers if isinstance(servers, list) else ():
        own |= item if isinstance(item, dict) else {}
    named = names_in(fields, "mcpservers") if isinstance(servers, list | str) else None
    return hooks, named if servers is not None else None, own


def _demands(
    definition: Definition, hooks: JsonObject, own_servers: JsonObject, mark: str
) -> JsonObject:
    wants: JsonObject = {
        "hooks": hooks,
        "mcpServers": own_servers,
        "model": definition.model,  # because a model decides who sees the work and who is paid
        "memory": "user" if definition.memory == "user" else "",
    }
    wants = {key: value for key, value in wants.items() if value}
    return wants | {"sha256": mark} if wants else {}


def grant(draft: DefinitionDraft, section: SettingsSection | None) -> tuple[Definition, list[str]]:
    """Return the trusted part of a definition, and lines about invalid hooks."""
    definition = draft.definition
    if section is not None and not section.is_trusted:
        memory = "local" if definition.memory == "user" else definition.memory
        return replace(definition, model="", memory=memory), []
    file = definition.file or Path()
    own = SettingsSection(file=file, value=draft.hooks, fingerprint="", is_trusted=True)
    hooks, skipped = hooks_in(own)
    servers = tuple(
        read_server(name, value, section or own) for name, value in draft.own_servers.items()
    )
    vouched = tuple(replace(hook, section=section) for hook in hooks)
    return replace(definition, hooks=vouched, own_servers=servers), skipped


FILE_BYTES = 256 << 10
FILES = 200
PROJECT_PLACES = (".claude/agents", ".longhold/agents")
"""Directories in a project. Later ones take precedence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    known: tuple[Definition, ...] = ()
    untrusted: tuple[SettingsSection, ...] = ()
    skipped: tuple[str, ...] = ()

    def find(self, name: str) -> Definition | None:
        wanted = name.casefold()
        return next((one for one in self.known if one.name.casefold() == wanted), None)


def load_definitions(project: Path | None) -> Definitions:
    found: dict[str, Definition] = {}
    taken: dict[str, str] = {}
    untrusted: list[SettingsSection] = []
    skipped: list[str] = []
    for draft, reason in _drafts(project):
        if draft is None:
            skipped.append(reason)
            continue
        definition = draft.definition
        name = definition.name.casefold()
        if definition.source != "project":
            taken[name] = definition.source
        section = _section(draft, taken.get(name, ""), project)
        if section is not None and not section.is_trusted:
            untrusted.append(section)
            if "replaces" in section.value:
                continue
        try:
            held, unknown = grant(draft, section)
        except ConfigError as error:
            skipped.append(str(error))
            continue
        skipped += unknown
        found[name] = held
    return Definitions(
        known=tuple(found[name] for name in sorted(found)),
        untrusted=tuple(untrusted),
        skipped=tuple(skipped),
    )


def listing(definitions: Iterable[Definition]) -> str:
    return "\n".join(f"- {one.name}: {escape_frames(one.description)}" for one in definitions)


def _section(draft: DefinitionDraft, taken_by: str, project: Path | None) -> SettingsSection | None:
    definition = draft.definition
    demands = dict(draft.demands)
    if taken_by:
        demands |= {"replaces": f"{definition.name} ({taken_by})", "sha256": draft.sha256}
    if definition.source != "project" or not demands:
        return None
    assert definition.file is not None
    return as_section("agents", definition.file, demands, project)


def _drafts(project: Path | None) -> Iterator[tuple[DefinitionDraft | None, str]]:
    with as_file(files("longhold.agent.subagents") / "definitions") as ours:
        yield from _read_directory(ours, "built in")
    yield from _read_directory(home() / "agents", "user")
    if project is not None:
        for place in PROJECT_PLACES:
            yield from _read_directory(project / place, "project", project)


def _read_directory(
    directory: Path, source: DefinitionSource, project: Path | None = None
) -> Iterator[tuple[DefinitionDraft | None, str]]:
    within = project.resolve() if project else None
    for file in sorted(directory.rglob("*.md"))[:FILES]:
        try:
            text = read_text(file, FILE_BYTES, within=within)
            yield read_definition(text, file, source), ""
        except (UnreadableFrontMatter, UnusableFile, ConfigError) as error:
            yield None, f"{file}: {error}"
