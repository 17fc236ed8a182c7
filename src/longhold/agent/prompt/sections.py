"""The system prompt: sections shared by all sessions, then those of one session.

Shared sections come first, so that sessions share the longest possible prefix. Sections are
computed once per frame. Later changes are sent as messages.
"""

import asyncio
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from longhold.agent.mcp import ServerOffer
from longhold.agent.tools.git import git_variables
from longhold.agent.tools.process import run
from longhold.core.log.entries import Section
from longhold.core.messages.text import clean_document, clean_text, escape_frames, shorten
from longhold.core.settings import PromptSettings
from longhold.core.tools.environment import find_program

LINE_CHARS = 200
OUTPUT_BYTES = 1 << 18
STATUS_CHARS = 2_000
COMMITS = 5
"""The number of recent commits shown, from which the model sees the style of commit messages."""
GIT_SECONDS = 3.0
"""The time limit for git, so that a session does not wait for a huge repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    branch: str
    main: str = ""
    status: str = ""
    commits: str = ""


async def look_at_repository(directory: Path, settings: PromptSettings) -> Repository | None:
    """Describe a repository. Return None if there is none, or if git is missing or slow."""
    if not settings.git:
        return None
    questions = (
        _ask(directory, "symbolic-ref", "--short", "HEAD"),
        _ask(directory, "symbolic-ref", "--short", "refs/remotes/origin/HEAD"),
        _ask(directory, "log", "--oneline", "--no-decorate", "--no-color", "-n", str(COMMITS)),
        _status(directory),
        _ask(directory, "rev-parse", "--is-inside-work-tree"),
    )
    try:
        async with asyncio.timeout(GIT_SECONDS):
            branch, main, commits, status, inside = await asyncio.gather(*questions)
    except (TimeoutError, OSError):
        return None
    if inside is None:
        return None
    return Repository(
        branch=_lines(branch or "none checked out"),
        main=_lines((main or "").removeprefix("origin/")),
        status=shorten(_lines(status or ""), STATUS_CHARS),
        commits=_lines(commits or ""),
    )


async def _status(directory: Path) -> str | None:
    """List changed files, unless that would run a program set by the repository."""
    scoped = ("config", "--includes", "--show-scope", "--get-regexp", r"^filter\.")
    filters = await _ask(directory, *scoped) or ""
    if any(line.startswith(("local", "worktree")) for line in filters.split("\n")):
        return "(not looked at: this repository sets filters, which are programs)"
    status = await _ask(directory, "status", "--short", "--ignore-submodules=all")
    return None if status is None else status or "(nothing has changed)"


async def _ask(directory: Path, *words: str) -> str | None:
    done = await run(
        (find_program("git", near=directory) or "git is missing", "--no-pager", *words),
        cwd=directory,
        variables={**git_variables(os.environ, {"core.quotePath": "true"}), "LC_ALL": "C"},
        timeout_seconds=None,
        output_bytes=OUTPUT_BYTES,
    )
    return done.stdout.decode("utf-8", "replace").rstrip() if done.status == 0 else None


def _lines(text: str) -> str:
    lines = (clean_text(line[:LINE_CHARS], instead="?") for line in text.split("\n"))
    return escape_frames("\n".join(lines))


STATIC = ("identity", "rules", "tasks", "care", "tools", "tone", "brevity")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The values of a session's own sections, read once so that they cannot change."""

    directory: Path
    date: str
    platform: str = field(
        default_factory=lambda: f"{platform.system()} {platform.release()}".strip()
    )
    shell: str = field(default_factory=lambda: find_program("bash") or "/bin/sh")
    repository: Repository | None = None
    tools: tuple[str, ...] = ()
    """Tool names. Some have a line of guidance."""
    skills: str = ""
    memory: str = ""
    language: str = ""
    scratchpad: Path | None = None
    more: tuple[Section, ...] = ()


def sections(given: Environment) -> tuple[Section, ...]:
    static = tuple(Section(name=name, text=_text(name), scope="global") for name in STATIC)
    dynamic = {
        "guidance": _guidance(given.tools),
        "skills": _fill_template("skills", listing=given.skills),
        "memory": given.memory.strip(),
        "environment": _fill_template(
            "environment",
            directory=str(given.directory),
            platform=given.platform,
            shell=given.shell,
            date=given.date,
        ),
        "git": _fill_template("git", state=_state(given.repository)),
        "language": _fill_template("language", language=given.language),
        "scratchpad": _fill_template("scratchpad", directory=str(given.scratchpad or "")),
    }
    own = tuple(Section(name=name, text=text) for name, text in dynamic.items() if text)
    return (*static, *own, *(section for section in given.more if section.text.strip()))


def build_custom(text: str) -> tuple[Section, ...]:
    return (Section(name="system", text=text.strip()),) if text.strip() else ()


def boundary(sections: Iterable[Section]) -> int:
    """Return the number of shared sections. The sections of one session follow them."""
    return sum(section.scope == "global" for section in sections)


def _guidance(tools: tuple[str, ...]) -> str:
    names = (f"guidance/{name.lower()}" for name in sorted(tools) if name.isalnum())
    lines = (_text(name) for name in names if _file(name).is_file())
    return _fill_template("guidance", lines="\n".join(lines))


def _state(repository: Repository | None) -> str:
    if repository is None:
        return ""
    found = {"branch: ": repository.branch, "main branch: ": repository.main}
    found |= {"status:\n": repository.status, "recent commits:\n": repository.commits}
    return "\n".join(f"{label}{text}" for label, text in found.items() if text)


def _fill_template(name: str, **values: str) -> str:
    if not any(value.strip() for value in values.values()):
        return ""
    return Template(_text(name)).substitute(values).strip()


@cache
def _text(name: str) -> str:
    return _file(name).read_text(encoding="utf-8").strip()


def _file(name: str) -> Traversable:
    return files("longhold.agent.prompt").joinpath("prompts", f"{name}.md")


SERVER_CHARS = 2_000


def servers_text(offers: Iterable[ServerOffer]) -> str:
    """Render the section on MCP servers, sorted so that start-up order does not matter."""
    servers = map(_server, sorted(offers, key=lambda offer: offer.server))
    return _fill_template("mcp", servers="\n\n".join(servers))


def server_digests(offers: Iterable[ServerOffer]) -> dict[str, str]:
    return {
        offer.server: blake2b(_server(offer).encode(), digest_size=8).hexdigest()
        for offer in offers
    }


def servers_news(
    told: Mapping[str, str], offers: Iterable[ServerOffer]
) -> tuple[str, dict[str, str]]:
    """Return a message on servers that changed since `told`, and their new digests."""
    now = {offer.server: offer for offer in offers}
    digests = server_digests(now.values())
    fresh = {name: digest for name, digest in digests.items() if told.get(name) != digest}
    gone = {name: "" for name, digest in told.items() if digest and name not in now}
    parts = [_server(now[name]) for name in sorted(fresh)]
    parts += [f"## {name}\ngone; its tools cannot be called" for name in sorted(gone)]
    if not parts:
        return "", {}
    return _fill_template("servers_changed", servers="\n\n".join(parts)), fresh | gone


def _server(offer: ServerOffer) -> str:
    said = escape_frames(clean_document(offer.instructions, instead="")).strip()
    said = shorten(said, SERVER_CHARS)
    names = ", ".join(offer.names) or "none"
    quoted = "".join(f"\n> {line}" for line in said.splitlines())
    return f"## {offer.server}\ntools: {names}{quoted}"
