"""Where a path leads, in all spellings."""

import pytest

from longhold.agent.permissions.places import locate, locate_glob


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("src/a.py", "inside"),
        ("./src/../src/a.py", "inside"),
        ("new/file.txt", "inside"),
        (".", "inside"),
        ("..", "outside"),
        ("../outside/secret", "outside"),
        ("src/../../outside/secret", "outside"),
        ("../project-evil/x", "outside"),
        ("/etc/passwd", "outside"),
        ("//etc/passwd", "outside"),
        ("/proc/self/root/etc/passwd", "outside"),
        ("/proc/self/cwd/src/a.py", "outside"),
        ("/dev/fd/0", "outside"),
        ("link/secret", "outside"),
        ("link", "outside"),
        ("link/../project/src/a.py", "unclear"),
        ("src/secret-link", "outside"),
        ("dangling", "outside"),
        ("loop", "unclear"),
        ("loop/x", "unclear"),
        ("~", "outside"),
        ("~/x", "outside"),
        ("~root/x", "unclear"),
        ("", "impossible"),
        ("src/a.py\0", "impossible"),
        ("\0/etc/passwd", "impossible"),
        ("src\u200b/a.py", "unclear"),
        ("src/\u202eyp.a", "unclear"),
        ("\uff0e\uff0e/outside", "unclear"),
        ("src\uff0fa", "unclear"),
        ("\u2025/outside", "unclear"),
        ("..\\outside", "unclear"),
        ("src/a.py\n", "unclear"),
        ("src/é.py", "inside"),
        ("src/文.py", "inside"),
    ],
)
def test_a_path_is_found_where_it_really_leads(places, text, where):
    assert locate(text, places).where == where


def test_a_directory_of_our_own_is_readable(places, tmp_path):
    assert locate(str(tmp_path / "spill" / "x.txt"), places).where == "readable"


@pytest.mark.parametrize(
    "text",
    [
        ".git/hooks/pre-commit",
        ".GIT/config",
        ".longhold/hooks.json",
        "src/.bashrc",
        ".envrc",
        ".cargo/config.toml",
        ".yarnrc.yml",
        ".github/workflows/ci.yml",
        "AGENTS.md",
        "AGENTS.local.md",
        "src/CLAUDE.local.md",
        ".codex/config.toml",
        ".cursor/mcp.json",
        ".gemini/settings.json",
        "opencode.json",
        ".devcontainer.json",
        ".gitlab-ci.yml",
        "src/.gitattributes",
        "lefthook.yml",
    ],
)
def test_files_that_make_programs_run_things_are_protected(places, text):
    assert locate(text, places).is_protected


def test_a_glob_is_judged_by_what_it_matches(places):
    assert {at.where for at in locate_glob("src/*", places)} == {"inside", "outside"}
    assert {at.where for at in locate_glob("src/*.py", places)} == {"inside"}
    assert {at.where for at in locate_glob("/etc/*", places)} == {"outside"}
    assert "unclear" in {at.where for at in locate_glob("*/../../x", places)}


@pytest.mark.parametrize(
    "text", ["src/[^z]*", "src/**/x", "**", ".?/.?/etc/passwd", ".*/x", "src/{a,b}*", "~x*"]
)
def test_a_pattern_that_shells_read_differently_is_unclear(places, text):
    assert "unclear" in {at.where for at in locate_glob(text, places)}


def test_a_question_mark_may_stand_for_part_of_a_character(places):
    (places.cwd / "é").symlink_to(places.cwd.parent / "outside" / "secret")
    assert "outside" in {at.where for at in locate_glob("??", places)}


def test_a_name_that_becomes_an_option_is_unclear(places):
    (places.cwd / "-Re.py").write_text("")
    assert "unclear" in {at.where for at in locate_glob("*.py", places)}
    assert "unclear" not in {at.where for at in locate_glob("./*.py", places)}
