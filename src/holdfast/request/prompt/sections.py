"""The system prompt: sections that all sessions share, then those of one session.

The static sections, with scope "global", come first, so that sessions share the longest possible
prefix. Their texts are in `prompts/`. A section is computed once, when the frame is made, and
kept until a clear or a compaction; what changes meanwhile is said in a message.
"""

import platform
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from holdfast.log.entries import Section
from holdfast.request.prompt.repository import Repository
from holdfast.tools.process import find_program

STATIC = ("identity", "rules", "tasks", "care", "tools", "tone", "brevity")
"""The same in all sessions, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a session's own sections are made of; read once, so that nothing of it can move."""

    directory: Path
    date: str
    platform: str = field(
        default_factory=lambda: f"{platform.system()} {platform.release()}".strip()
    )
    shell: str = field(default_factory=lambda: find_program("bash") or "/bin/sh")
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


def sections(given: Environment) -> tuple[Section, ...]:
    """Render all sections; empty ones are left out."""
    static = tuple(Section(name=name, text=_text(name), scope="global") for name in STATIC)
    dynamic = {
        "guidance": _guidance(given.tools),
        "skills": filled("skills", listing=given.skills),
        "memory": given.memory.strip(),
        "environment": filled(
            "environment",
            directory=str(given.directory),
            platform=given.platform,
            shell=given.shell,
            date=given.date,
        ),
        "git": filled("git", state=_state(given.repository)),
        "language": filled("language", language=given.language),
        "scratchpad": filled("scratchpad", directory=str(given.scratchpad or "")),
    }
    own = tuple(Section(name=name, text=text) for name, text in dynamic.items() if text)
    return (*static, *own, *(section for section in given.more if section.text.strip()))


def custom(text: str) -> tuple[Section, ...]:
    return (Section(name="system", text=text.strip()),) if text.strip() else ()


def boundary(sections: Iterable[Section]) -> int:
    """Count the shared sections: a session's own begin there."""
    return sum(section.scope == "global" for section in sections)


def memory_text(index: str) -> str:
    """Render the section on long-term memory, with its current index."""
    listed = f"The index, `/memories/MEMORY.md`:\n\n{index.strip()}" if index.strip() else ""
    return Template(_text("memory")).substitute(index=listed).strip()


def _guidance(tools: tuple[str, ...]) -> str:
    names = (f"guidance/{name.lower()}" for name in sorted(tools) if name.isalnum())
    lines = (_text(name) for name in names if _file(name).is_file())
    return filled("guidance", lines="\n".join(lines))


def _state(repository: Repository | None) -> str:
    if repository is None:
        return ""
    found = {"branch: ": repository.branch, "main branch: ": repository.main}
    found |= {"status:\n": repository.status, "recent commits:\n": repository.commits}
    return "\n".join(f"{label}{text}" for label, text in found.items() if text)


def filled(name: str, **values: str) -> str:
    """Fill in a section's template; "" if all values are empty."""
    if not any(value.strip() for value in values.values()):
        return ""
    return Template(_text(name)).substitute(values).strip()


@cache
def _text(name: str) -> str:
    return _file(name).read_text(encoding="utf-8").strip()


def _file(name: str) -> Traversable:
    return files("holdfast.request.prompt").joinpath("prompts", f"{name}.md")
