"""The Skill tool: instructions from directories with a `SKILL.md`.

A project's skill with the name of a user's skill is called `project:NAME`. `listing` contains every
name, and as much of the descriptions as fits a budget.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from longhold.core.messages.text import clean_line, escape_frames
from longhold.core.settings import front_matter
from longhold.core.settings.project import UnusableFile, checkout_top, read_text
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from longhold.core.tools.recovered import SKILL_NAME

DESCRIPTION_CHARS = 1_536
LISTING_CHARS = 8_000
"""The limit for all descriptions together, about 1 % of a window of 200K tokens."""
SHORTEST_CHARS = 40
"""If descriptions would be shorter than this, only names are listed."""
BODY_BYTES = 256 << 10
NAME_CHARS = 80
SKILLS = 200
_NOT_IN_NAMES = re.compile(r"[<>&]+")
"""These characters could imitate the tags of the system prompt, which lists the names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    name: str
    description: str
    body: str
    directory: Path
    is_projects: bool = False


def find_skills(users: Path, project: Path | None = None) -> tuple[Skill, ...]:
    found = {skill.name: skill for skill in _find_in(users, None)}
    users_names = {name.casefold() for name in found}
    if project is not None:
        for skill in _find_in(project / ".longhold" / "skills", project):
            is_taken = skill.name.casefold() in users_names
            name = f"project:{skill.name}" if is_taken else skill.name
            found.setdefault(name, replace(skill, name=name, is_projects=True))
    return tuple(found[name] for name in sorted(found))


def _find_in(place: Path, project: Path | None) -> Iterator[Skill]:
    for file in sorted(place.glob("*/SKILL.md"))[:SKILLS]:
        try:
            yield _load(file, project)
        except UnusableFile:
            continue


def _load(file: Path, project: Path | None) -> Skill:
    within = None if project is None else checkout_top(project)
    fields, body = front_matter.parse(read_text(file, BODY_BYTES, within=within))
    name = front_matter.text_in(fields, "name") or file.parent.name
    return Skill(
        name=_NOT_IN_NAMES.sub("-", clean_line(name, NAME_CHARS)) or "unnamed",
        description=front_matter.text_in(fields, "description") or _first_words(body),
        body=body.strip(),
        directory=file.parent,
    )


def _first_words(body: str) -> str:
    lines = (line.strip("# ").strip() for line in body.splitlines())
    return next((line for line in lines if line), "")


def listing(skills: Collection[Skill], budget_chars: int = LISTING_CHARS) -> str:
    """List the skills. If descriptions do not fit the budget, each gets the same share of it."""
    titles = [f"{one.name} (the project's)" if one.is_projects else one.name for one in skills]
    left = budget_chars - sum(len(title) + 4 for title in titles)
    longest = DESCRIPTION_CHARS
    if sum(min(len(one.description), longest) for one in skills) > left:
        share = left // len(skills)
        longest = share if share >= SHORTEST_CHARS else 0
    lines = []
    for title, skill in zip(titles, skills, strict=True):
        description = escape_frames(clean_line(skill.description, longest)) if longest else ""
        lines.append(f"- {title}: {description}" if description else f"- {title}")
    return "\n".join(lines)


class SkillInput(Input, frozen=True, kw_only=True):
    skill: Annotated[str, Meta(description="The name, as listed.")]
    args: Annotated[str, Meta(description="What to apply it to, if it takes something.")] = ""


def skills_at(tool_context: ToolContext) -> tuple[Skill, ...]:
    return find_skills(tool_context.home / "skills", tool_context.root)


async def _use_skill(given: SkillInput, tool_context: ToolContext) -> Outcome:
    skills = {skill.name: skill for skill in skills_at(tool_context)}
    skill = skills.get(given.skill.removeprefix("/"))
    if skill is None:
        known = ", ".join(skills) or "none"
        raise Refused(f"No skill is called {given.skill!r}; there are: {known}.")
    body = skill.body
    if "$ARGUMENTS" in body:
        body = body.replace("$ARGUMENTS", given.args)
    elif given.args:
        body = f"{body}\n\nApply it to: {given.args}"
    return Outcome(
        content=f"Skill {skill.name}; its files lie in {skill.directory}.\n\n{body}",
        note=f"skill {skill.name}",
    )


SKILL: Tool = make_tool(SKILL_NAME, SkillInput, _use_skill, kind="other", is_read_only=True)
