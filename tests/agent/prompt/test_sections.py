"""The system prompt: shared sections first, then those of the session, each once."""

from importlib.resources import files
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.prompt.sections import (
    STATIC,
    Environment,
    Repository,
    boundary,
    build_custom,
    sections,
)
from longhold.agent.tools.standard import STANDARD
from longhold.core.log.entries import Section
from longhold.core.memory.session_memory import memory_text

BARE = Environment(directory=Path("/p"), platform="Linux 6", shell="/bin/bash", date="2026-11-15")
FULL = Environment(
    directory=Path("/p"),
    platform="Linux 6",
    shell="/bin/bash",
    date="2026-11-15",
    repository=Repository(branch="b", main="main", status=" M a.py", commits="1234567 Begin"),
    tools=tuple(tool.name for tool in STANDARD),
    skills="- release: how we ship",
    memory="# Memory\n\nkept",
    language="German",
    scratchpad=Path("/s/scratchpad"),
    more=(Section(name="extra", text="more"), Section(name="empty", text=" ")),
)


def names(found):
    return [section.name for section in found]


def test_what_everybody_shares_comes_first():
    found = sections(FULL)
    assert names(found)[: boundary(found)] == list(STATIC)
    assert names(found)[boundary(found) :] == [
        "guidance",
        "skills",
        "memory",
        "environment",
        "git",
        "language",
        "scratchpad",
        "extra",
    ]
    assert {s.scope for s in found[: boundary(found)]} == {"global"}
    assert {s.scope for s in found[boundary(found) :]} == {"none"}


def test_what_has_nothing_to_say_is_left_out():
    found = sections(BARE)
    assert names(found) == [*STATIC, "environment"]
    assert all(section.text.strip() == section.text != "" for section in found)


def test_two_sessions_share_the_whole_static_part():
    assert sections(FULL)[: len(STATIC)] == sections(BARE)[: len(STATIC)]


def test_the_environment_is_rendered_as_it_was():
    texts = {section.name: section.text for section in sections(FULL)}
    assert texts["environment"] == (
        "# Environment\n\n- working directory: /p\n- platform: Linux 6\n- shell: /bin/bash\n"
        "- date: 2026-11-15, when this was written"
    )
    assert texts["git"].endswith(
        "\n\nbranch: b\nmain branch: main\nstatus:\n M a.py\nrecent commits:\n1234567 Begin"
    )
    assert texts["language"].startswith("# Language\n\nAnswer in German,")
    assert "- release: how we ship" in texts["skills"]


def test_guidance_names_only_tools_that_are_there():
    with_plan = sections(FULL)[len(STATIC)].text
    assert "EnterPlan" in with_plan
    assert "ToolSearch" not in with_plan
    alone = Environment(**{f: getattr(BARE, f) for f in BARE.__slots__} | {"tools": ("Bash",)})
    assert "EnterPlan" not in sections(alone)[len(STATIC)].text


@given(st.text())
def test_a_tools_name_is_no_path(name):
    given_ = {f: getattr(BARE, f) for f in BARE.__slots__} | {"tools": (name, "../memory", "a/b")}
    assert names(sections(Environment(**given_)))[-1] == "environment"


def test_every_tool_the_texts_name_is_a_standard_one():
    known = {tool.name for tool in STANDARD} | {"ToolSearch"}
    for place in (files("longhold.agent.prompt") / "prompts" / "guidance").iterdir():
        assert place.name.removesuffix(".md") in {name.lower() for name in known}


def test_values_are_not_templates():
    odd = Repository(branch="$state", commits="${x} $$")
    given_ = {f: getattr(BARE, f) for f in BARE.__slots__} | {"repository": odd}
    assert "branch: $state\nrecent commits:\n${x} $$" in sections(Environment(**given_))[-1].text


def test_a_custom_prompt_replaces_all():
    assert build_custom("  Be a pirate.\n") == (Section(name="system", text="Be a pirate."),)
    assert boundary(build_custom("x")) == 0
    assert build_custom(" ") == ()


def test_memory_says_what_belongs_there_and_what_is_known():
    text = memory_text("- [A](a.md): b")
    assert text.endswith("The index, `/memories/MEMORY.md`:\n\n- [A](a.md): b")
    assert "The index" not in memory_text("")
