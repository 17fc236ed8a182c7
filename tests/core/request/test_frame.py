"""Frames: created once, renewed, and measured."""

from dataclasses import replace
from functools import partial

import pytest
from msgspec import structs

from longhold.agent.framing import Framer, make_frame
from longhold.agent.instructions.gathering import ground
from longhold.agent.mcp import ServerOffer
from longhold.agent.tools.skills import find_skills
from longhold.core.log.entries import Framed, Section
from longhold.core.messages.measure import measure_json, measure_text
from longhold.core.request.frame import frame, replace_tools
from longhold.core.request.tool_references import defer_tool
from longhold.core.settings import PromptSettings

TOOL = {"name": "Skill", "description": "d", "input_schema": {"type": "object"}}
WITH_SKILLS = Framed(tools=(TOOL,))
THINKING = {"thinking": {"type": "adaptive"}}


@pytest.fixture
def framer(tmp_path):
    """A framer for an empty directory that is no repository."""
    (tmp_path / "p").mkdir()
    return Framer(
        ground=ground(tmp_path / "p", at=tmp_path / "home"),
        skills=partial(find_skills, tmp_path / "p" / "skills"),
        clock=lambda: 0.0,
    )


def texts(made):
    return {section.name: section.text for section in made.frame.sections}


async def test_a_frame_holds_prompt_and_instructions(framer, tmp_path):
    (tmp_path / "p" / "AGENTS.md").write_text("Use tabs.")
    made = await make_frame(framer, WITH_SKILLS)
    assert "1970-01-01" in texts(made)["environment"] or "1969-12-31" in texts(made)["environment"]
    assert made.frame.instructions.endswith("\nUse tabs.\n</instructions>\n</reminder>")
    assert [source.file for source in made.frame.sources] == [str(tmp_path / "p" / "AGENTS.md")]
    assert made.frame.tools == (TOOL,)


async def test_the_weight_counts_all_of_it(framer, tmp_path):
    (tmp_path / "p" / "AGENTS.md").write_text("Use tabs. " * 100)
    made = (await make_frame(framer, WITH_SKILLS)).frame
    assert made.measure == (
        measure_text("\n".join(section.text for section in made.sections))
        + measure_text(made.instructions)
        + measure_json(TOOL)
    )
    more = replace_tools(made, (TOOL, TOOL))
    assert more.measure == made.measure + measure_json(TOOL)


async def test_the_same_surroundings_give_the_same_frame(framer):
    assert (await make_frame(framer, WITH_SKILLS)).frame == (
        await make_frame(framer, WITH_SKILLS)
    ).frame


async def test_renewing_looks_again_and_keeps_what_is_latched(framer, tmp_path):
    old = (await make_frame(framer, structs.replace(WITH_SKILLS, options=THINKING))).frame
    old = structs.replace(old, lifetime="1h", betas=("b",), n=7, at=1.0)
    (tmp_path / "p" / "AGENTS.md").write_text("Use tabs.")
    place = tmp_path / "p" / "skills" / "ship"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text("---\ndescription: how\n---\nx")
    made = await make_frame(framer, old)
    assert "- ship: how" in texts(made)["skills"]
    assert "Use tabs." in made.frame.instructions
    assert (made.frame.tools, made.frame.options) == (old.tools, old.options)
    assert (made.frame.lifetime, made.frame.betas, made.frame.n) == ("1h", ("b",), 0)


async def test_skills_are_named_only_to_who_can_use_them(framer, tmp_path):
    place = tmp_path / "p" / "skills" / "ship"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text("x")
    assert "skills" not in texts(await make_frame(framer, Framed()))


async def test_a_custom_prompt_replaces_all_and_stays(framer):
    own = replace(framer, system="Be a pirate.")
    made = await make_frame(own, WITH_SKILLS)
    assert made.frame.sections == (Section(name="system", text="Be a pirate."),)
    assert (await make_frame(framer, made.frame)).frame.sections == made.frame.sections


async def test_a_frame_describes_the_servers_there_are_when_it_is_made(framer):
    offers = (ServerOffer(server="db", names=("mcp__db__query",)),)
    made = await make_frame(replace(framer, servers=lambda: offers), Framed())
    assert texts(made)["mcp"].endswith("## db\ntools: mcp__db__query")
    assert list(made.frame.servers) == ["db"]
    own = await make_frame(replace(framer, servers=lambda: offers, system="x"), Framed())
    assert (len(own.frame.sections), own.frame.servers) == (1, {})


async def test_a_deferred_tool_weighs_nothing(framer):
    plain = (await make_frame(framer, Framed())).frame
    assert replace_tools(plain, (defer_tool(TOOL),)).measure == plain.measure


async def test_the_language_is_said_when_it_is_set(framer):
    made = await make_frame(replace(framer, prompt=PromptSettings(language="Dutch")), Framed())
    assert "Answer in Dutch" in texts(made)["language"]


def test_a_given_prompt_is_taken_as_it_is():
    assert frame("hello", [], {}).sections == (Section(name="system", text="hello"),)
    assert frame((Section(name="a", text=" "),), [], {}).sections == ()
