"""Agent definitions, and what a parent makes of them."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.permissions.sources import SettingsSection
from longhold.agent.subagents.definition import (
    Definition,
    grant,
    mode_for,
    read_definition,
    tools_for,
)
from longhold.core.settings.front_matter import UnreadableFrontMatter
from longhold.errors import ConfigError

MODES = ("plan", "ask", "accept_edits", "bypass")
AVAILABLE = ("Bash", "Edit", "Glob", "Read", "mcp__git__log", "mcp__git__push", "mcp__web__get")


def _read(text, source="user"):
    return read_definition(text, Path("/x/reviewer.md"), source)


def test_every_field_is_read():
    draft = _read(
        "---\nname: reviewer\ndescription: Reviews\n  code.\ntools: Read, Grep\n"
        "disallowedTools: [Bash]\nmodel: claude-haiku-4-5\npermissionMode: acceptEdits\n"
        "maxTurns: 12\nskills: [style]\nmcpServers: [github]\nmemory: project\n"
        "background: true\nisolation: worktree\ncolor: red\n---\nReview it."
    )
    assert draft.definition == Definition(
        name="reviewer",
        description="Reviews code.",
        prompt="Review it.",
        source="user",
        file=Path("/x/reviewer.md"),
        tools=("Read", "Grep"),
        disallowed=("Bash",),
        model="claude-haiku-4-5",
        mode="accept_edits",
        turns=12,
        skills=("style",),
        servers=("github",),
        memory="project",
        is_background=True,
        isolation="worktree",
    )
    assert draft.demands.keys() == {"model", "sha256"}


def test_what_is_not_said_is_the_parents():
    definition = _read("---\ndescription: d\nmodel: inherit\n---\np").definition
    assert (definition.name, definition.tools, definition.model, definition.mode) == (
        "reviewer",
        None,
        "",
        None,
    )


@pytest.mark.parametrize("name", ["../x", "user", "a b", '"a\\nb"', "system"])
def test_a_name_that_is_none_makes_no_definition(name):
    with pytest.raises(ConfigError):
        _read(f"---\nname: {name}\ndescription: d\n---\np")


@pytest.mark.parametrize("text", ["---\nname: x\n---\np", "---\ndescription: d\n---\n", "words"])
def test_without_description_or_prompt_it_is_none(text):
    with pytest.raises(UnreadableFrontMatter):
        _read(text)


@pytest.mark.parametrize(
    ("tools", "disallowed", "left"),
    [
        (None, (), AVAILABLE),
        (("Read", "Glob", "Agent"), (), ("Glob", "Read")),
        (("*",), ("mcp__*",), ("Bash", "Edit", "Glob", "Read")),
        (("mcp__git__*",), ("mcp__git__push",), ("mcp__git__log",)),
        (("Bash(git log:*)",), (), ()),
        (None, ("Bash(rm:*)", "mcp__*", "Edit"), ("Glob", "Read")),
        ((), (), ()),
    ],
)
def test_tools_only_become_fewer(tools, disallowed, left):
    definition = Definition(
        name="x", description="d", prompt="p", tools=tools, disallowed=disallowed
    )
    assert tools_for(definition, AVAILABLE) == left


@given(
    available=st.lists(st.sampled_from(AVAILABLE), unique=True),
    tools=st.none() | st.lists(st.text(max_size=8)).map(tuple),
    disallowed=st.lists(st.text(max_size=8)).map(tuple),
)
def test_no_pattern_adds_a_tool(available, tools, disallowed):
    definition = Definition(
        name="x", description="d", prompt="p", tools=tools, disallowed=disallowed
    )
    assert set(tools_for(definition, available)) <= set(available)


@pytest.mark.parametrize("parent", MODES)
@pytest.mark.parametrize("wanted", [None, *MODES])
def test_nobody_widens_the_mode(parent, wanted):
    definition = Definition(name="x", description="d", prompt="p", mode=wanted)
    got = mode_for(definition, parent)
    assert MODES.index(got) <= MODES.index(parent)
    if wanted and MODES.index(wanted) < MODES.index(parent):
        assert got == wanted


@pytest.mark.parametrize("wanted", MODES)
def test_planning_stays_planning(wanted):
    definition = Definition(name="x", description="d", prompt="p", mode=wanted)
    assert mode_for(definition, "plan") == "plan"


def test_hooks_and_servers_of_its_own_are_demands():
    draft = _read(
        "---\ndescription: d\nmemory: user\n"
        "hooks: {Stop: [{hooks: [{type: command, command: x}]}]}\n"
        "mcpServers: [github, {mine: {command: y}}]\n---\np"
    )
    assert draft.demands.keys() == {"hooks", "mcpServers", "memory", "sha256"}
    assert draft.definition.servers == ("github",)
    assert draft.own_servers == {"mine": {"command": "y"}}


def test_nothing_is_defined_as_a_fork():
    with pytest.raises(UnreadableFrontMatter, match="reserved for forks"):
        _read("---\nname: Fork\ndescription: d\n---\np")


def test_a_model_counts_only_with_the_users_word():
    draft = _read("---\ndescription: d\nmodel: openai/mine\n---\np", "project")
    assert draft.demands["model"] == "openai/mine"
    section = SettingsSection(
        file=Path("/x/reviewer.md"),
        value=draft.demands,
        fingerprint="f",
        is_trusted=False,
    )
    assert grant(draft, section)[0].model == ""
    assert grant(draft, replace(section, is_trusted=True))[0].model == "openai/mine"


@pytest.mark.parametrize("source", ["user", "project"])
@pytest.mark.parametrize("model", ["scripted:/x/answers", "replay:abc", "Scripted:answers"])
def test_no_definition_brings_answers_along(model, source):
    with pytest.raises(UnreadableFrontMatter, match="for tests only"):
        _read(f"---\ndescription: d\nmodel: '{model}'\n---\np", source)
