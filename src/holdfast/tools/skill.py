"""Skill: bring in how something is done, when it is needed.

A name comes in; the body of that `SKILL.md` goes out, with the directory its other files
lie in. Where skills lie and how they are listed is in `skills`.
"""

from typing import Annotated

from msgspec import Meta

from holdfast.tools.context import ToolContext
from holdfast.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from holdfast.tools.skills import Skill, find_skills


class SkillInput(Input, frozen=True, kw_only=True):
    """What Skill takes."""

    skill: Annotated[str, Meta(description="The name, as listed.")]
    args: Annotated[str, Meta(description="What to apply it to, if it takes something.")] = ""


def skills_at(tool_context: ToolContext) -> tuple[Skill, ...]:
    """Gather the skills of the project and the user."""
    return find_skills((tool_context.root / ".holdfast" / "skills", tool_context.home / "skills"))


async def use_skill(given: SkillInput, tool_context: ToolContext) -> Outcome:
    """Bring a skill in."""
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


SKILL: Tool = make_tool("Skill", SkillInput, use_skill, kind="other", is_read_only=True)
