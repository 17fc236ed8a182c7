"""The system prompt: sections that everybody shares, then those of one session.

What is known of a session comes in as `Environment`; sections go out, in a fixed order: the
static ones first, scope "global", then the dynamic ones, so that sessions share the longest
possible prefix. Their texts are in `prompts/`. A section is computed once, when the frame is
made, and kept with it until a clear or a compaction; one that cannot be kept is a `Volatile`
and has to say why.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template

from holdfast.log.entries import Framed, Section
from holdfast.request.prompt.repository import Repository
from holdfast.tools.mcp import ServerOffer

STATIC = ("identity", "rules", "tasks", "care", "tools", "tone", "brevity")
"""The same for everybody, in the order in which they are said."""
SERVER_CHARS = 2_000
"""Of what an MCP server says about itself: a page, as for a tool's description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the dynamic sections are made of, looked at once."""

    directory: Path
    platform: str
    shell: str
    date: str
    repository: Repository | None = None
    tools: tuple[str, ...] = ()
    """Names of the tools; some come with a word of guidance."""
    skills: str = ""
    """The listing of skills."""
    memory: str = ""
    """What the memory layer has to say; `memory_text` writes it."""
    language: str = ""
    scratchpad: Path | None = None
    more: tuple[Section, ...] = ()
    """Sections of other layers, said last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volatile:
    """A section that is computed before every call. Each change of it costs the whole prefix."""

    name: str
    reason: str
    """Why it cannot be kept, nor be said in a message instead."""
    compute: Callable[[], str]

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(f"section {self.name!r} is computed each turn and has to say why")


def sections(given: Environment) -> tuple[Section, ...]:
    """Write the whole prompt; what has nothing to say is left out."""
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
    """Make the prompt of somebody who wants their own; it replaces all."""
    return (Section(name="system", text=text.strip()),) if text.strip() else ()


def boundary(sections: Iterable[Section]) -> int:
    """Count the sections that everybody shares: what one session alone has begins there."""
    return sum(section.scope == "global" for section in sections)


def updated(frame: Framed, volatile: Iterable[Volatile]) -> tuple[Section, ...] | None:
    """Compute what cannot be kept; give the sections anew if any of it has changed.

    One that had nothing to say when the frame was made comes last once it has. A prompt of
    somebody's own is left alone.
    """
    if not boundary(frame.sections):
        return None
    now = {section.name: section for section in frame.sections}
    for one in volatile:
        text = one.compute().strip()
        if text:
            now[one.name] = Section(name=one.name, text=text)
        else:
            now.pop(one.name, None)
    fresh = tuple(now.values())
    return None if fresh == frame.sections else fresh


def memory_text(index: str) -> str:
    """Write the section on long-term memory: what belongs there, and its index as it is now."""
    listed = f"The index, `/memories/MEMORY.md`:\n\n{index.strip()}" if index.strip() else ""
    return Template(_text("memory")).substitute(index=listed).strip()


def servers_text(offers: Iterable[ServerOffer]) -> str:
    """Write the section on MCP servers, sorted, so that the order of answers does not show."""
    told = map(_server, sorted(offers, key=lambda offer: offer.server))
    return _filled("mcp", servers="\n\n".join(told))


def _server(offer: ServerOffer) -> str:
    """Quote what a server says of itself, cleaned and cut."""
    said = "".join(c for c in offer.instructions if c.isprintable() or c in "\n\t").strip()
    if len(said) > SERVER_CHARS:
        said = f"{said[:SERVER_CHARS]}… (cut)"
    names = ", ".join(offer.names) or "none"
    quoted = "".join(f"\n> {line}" for line in said.splitlines())
    return f"## {offer.server}\ntools: {names}{quoted}"


def _guidance(tools: tuple[str, ...]) -> str:
    places = (
        files("holdfast.request.prompt") / "prompts" / "guidance" / f"{name.lower()}.md"
        for name in sorted(tools)
        if name.isalnum()
    )
    lines = (place.read_text(encoding="utf-8").strip() for place in places if place.is_file())
    return _filled("guidance", lines="\n".join(lines))


def _state(repository: Repository | None) -> str:
    if repository is None:
        return ""
    lines = [f"branch: {repository.branch}"]
    lines += [f"main branch: {repository.main}"] if repository.main else []
    lines += [f"status:\n{repository.status}"] if repository.status else []
    lines += [f"recent commits:\n{repository.commits}"] if repository.commits else []
    return "\n".join(lines)


def _filled(name: str, **values: str) -> str:
    """Fill in a section's text; one whose every value is empty says nothing."""
    if not any(value.strip() for value in values.values()):
        return ""
    return Template(_text(name)).substitute(values).strip()


@cache
def _text(name: str) -> str:
    return (
        (files("holdfast.request.prompt") / "prompts" / f"{name}.md")
        .read_text(encoding="utf-8")
        .strip()
    )
