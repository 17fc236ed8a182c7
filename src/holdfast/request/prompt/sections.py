"""The system prompt: sections that all sessions share, then those of one session.

The static sections, with scope "global", come first, so that sessions share the longest possible
prefix. Their texts are in `prompts/`. A section is computed once, when the frame is made, and
kept until a clear or a compaction; one that cannot be kept is a `Volatile`, which must give a
reason.
"""

import platform
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from holdfast.log.entries import Framed, Section
from holdfast.request.prompt.repository import Repository
from holdfast.tools.mcp import ServerOffer

STATIC = ("identity", "rules", "tasks", "care", "tools", "tone", "brevity")
"""The same in all sessions, in this order."""
SERVER_CHARS = 2_000
"""Limit of an MCP server's instructions: a page, as for a tool's description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a session's own sections are made of; read once, so that nothing of it can move."""

    directory: Path
    date: str
    platform: str = field(
        default_factory=lambda: f"{platform.system()} {platform.release()}".strip()
    )
    shell: str = field(default_factory=lambda: shutil.which("bash") or "/bin/sh")
    repository: Repository | None = None
    tools: tuple[str, ...] = ()
    """Names of the tools; some have a line of guidance."""
    skills: str = ""
    """The listing of skills."""
    memory: str = ""
    """The memory section, as `memory_text` renders it."""
    language: str = ""
    scratchpad: Path | None = None
    more: tuple[Section, ...] = ()
    """Sections of other layers, placed last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volatile:
    """A section computed before every call. Each change of it costs the whole prefix."""

    name: str
    reason: str
    """Why it can neither be kept nor be sent in a message instead."""
    compute: Callable[[], str]

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(
                f"section {self.name!r} is computed before every call and needs a reason"
            )


def sections(given: Environment) -> tuple[Section, ...]:
    """Render all sections; empty ones are left out."""
    static = tuple(Section(name=name, text=_text(name), scope="global") for name in STATIC)
    dynamic = {
        "guidance": _guidance(given.tools),
        "skills": _filled("skills", listing=given.skills),
        "memory": given.memory.strip(),
        "environment": _filled(
            "environment",
            directory=str(given.directory),
            platform=given.platform,
            shell=given.shell,
            date=given.date,
        ),
        "git": _filled("git", state=_state(given.repository)),
        "language": _filled("language", language=given.language),
        "scratchpad": _filled("scratchpad", directory=str(given.scratchpad or "")),
    }
    own = tuple(Section(name=name, text=text) for name, text in dynamic.items() if text)
    return (*static, *own, *(section for section in given.more if section.text.strip()))


def custom(text: str) -> tuple[Section, ...]:
    return (Section(name="system", text=text.strip()),) if text.strip() else ()


def boundary(sections: Iterable[Section]) -> int:
    """Count the shared sections: a session's own begin there."""
    return sum(section.scope == "global" for section in sections)


def updated(frame: Framed, volatile: Iterable[Volatile]) -> tuple[Section, ...]:
    """Return all sections of a frame, the volatile ones computed anew.

    A section that was empty when the frame was made comes last. A custom prompt is left alone.
    """
    if not boundary(frame.sections):
        return frame.sections
    now = {section.name: section for section in frame.sections}
    for section in volatile:
        if text := section.compute().strip():
            now[section.name] = Section(name=section.name, text=text)
        else:
            now.pop(section.name, None)
    return tuple(now.values())


def memory_text(index: str) -> str:
    """Render the section on long-term memory, with its current index."""
    listed = f"The index, `/memories/MEMORY.md`:\n\n{index.strip()}" if index.strip() else ""
    return Template(_text("memory")).substitute(index=listed).strip()


def servers_text(offers: Iterable[ServerOffer]) -> str:
    """Render the section on MCP servers, sorted, so that start-up order does not show."""
    servers = map(_server, sorted(offers, key=lambda offer: offer.server))
    return _filled("mcp", servers="\n\n".join(servers))


def _server(offer: ServerOffer) -> str:
    said = "".join(c for c in offer.instructions if c.isprintable() or c in "\n\t").strip()
    if len(said) > SERVER_CHARS:
        said = f"{said[:SERVER_CHARS]}… (cut)"
    names = ", ".join(offer.names) or "none"
    quoted = "".join(f"\n> {line}" for line in said.splitlines())
    return f"## {offer.server}\ntools: {names}{quoted}"


def _guidance(tools: tuple[str, ...]) -> str:
    names = (f"guidance/{name.lower()}" for name in sorted(tools) if name.isalnum())
    lines = (_text(name) for name in names if _file(name).is_file())
    return _filled("guidance", lines="\n".join(lines))


def _state(repository: Repository | None) -> str:
    if repository is None:
        return ""
    found = {"branch: ": repository.branch, "main branch: ": repository.main}
    found |= {"status:\n": repository.status, "recent commits:\n": repository.commits}
    return "\n".join(f"{label}{text}" for label, text in found.items() if text)


def _filled(name: str, **values: str) -> str:
    """Fill in a section's template; "" if all values are empty."""
    if not any(value.strip() for value in values.values()):
        return ""
    return Template(_text(name)).substitute(values).strip()


@cache
def _text(name: str) -> str:
    return _file(name).read_text(encoding="utf-8").strip()


def _file(name: str) -> Traversable:
    return files("holdfast.request.prompt").joinpath("prompts", f"{name}.md")
