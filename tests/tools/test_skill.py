"""Bringing a skill in."""

import pytest


@pytest.fixture(autouse=True)
def _skills(tool_context):
    for place, name, body in (
        (tool_context.root / ".holdfast", "release", "Tag $ARGUMENTS."),
        (tool_context.home, "review", "Read it twice."),
    ):
        file = place / "skills" / name / "SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(f"---\nname: {name}\ndescription: d\n---\n{body}\n")


async def test_a_skill_of_the_project_takes_its_arguments(tool_context, said):
    """Its other files lie where it says."""
    directory = tool_context.root / ".holdfast" / "skills" / "release"
    assert await said("Skill", skill="release", args="v2") == (
        f"Skill release; its files lie in {directory}.\n\nTag v2."
    )


async def test_a_skill_of_the_user_is_found_with_and_without_a_slash(said):
    """Arguments it did not ask for are told at the end."""
    assert (await said("Skill", skill="/review")).endswith("Read it twice.")
    assert (await said("Skill", skill="review", args="a.py")).endswith("Apply it to: a.py")


async def test_an_unknown_skill_is_told_with_the_known_ones(refused):
    """Nothing is guessed."""
    assert "there are: release, review" in await refused("Skill", skill="nonsense")
