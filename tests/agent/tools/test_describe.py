"""Descriptions of other agents' tools by name."""

import pytest

from longhold.core.tools.describe import UNKNOWN, Described, description_of


def read(*paths):
    return Described(kind="read", path_inputs=paths, is_repeatable=True, limit_chars=None)


def shell(command):
    return Described(
        kind="shell", command_input=command, path_inputs=("workdir",), limit_chars=30_000
    )


def search(*paths, limit_chars):
    return Described(kind="search", path_inputs=paths, is_repeatable=True, limit_chars=limit_chars)


@pytest.mark.parametrize(
    ("name", "described"),
    [
        ("Read", read("file_path")),
        ("read", read("path", "file_path")),
        ("shell", shell("command")),
        ("exec_command", shell("cmd")),
        ("apply_patch", Described(kind="write")),
        ("MultiEdit", Described(kind="write", path_inputs=("file_path",))),
        ("WebSearch", Described(kind="fetch", is_repeatable=True)),
        ("AskUserQuestion", Described(kind="ask")),
        ("grep_search", search("path", limit_chars=20_000)),
        ("glob_files", search("path", limit_chars=50_000)),
    ],
)
def test_common_agents_tools_are_known(name, described):
    assert description_of(name) == described


@pytest.mark.parametrize("name", ["mcp__linear__list_issues", "READ", "deploy", ""])
def test_what_is_not_declared_is_other(name):
    assert description_of(name) == UNKNOWN
    assert UNKNOWN.kind == "other"
    assert not UNKNOWN.is_repeatable


def test_only_what_looks_can_be_had_again():
    from longhold.core.tools.describe import KNOWN

    repeatable = {described.kind for described in KNOWN.values() if described.is_repeatable}
    assert repeatable == {"read", "search", "fetch"}


@pytest.mark.parametrize(
    ("name", "given", "paths"),
    [
        ("Read", {"file_path": "/a"}, ("/a",)),
        ("read_files", {"paths": ["/a", 5, " ", "/b"], "path": "/c"}, ("/a", "/b", "/c")),
        ("Read", {"file_path": {"odd": 1}}, ()),
        ("Read", {}, ()),
        ("Bash", {"command": "cat /a"}, ()),
    ],
)
def test_the_paths_of_a_call_are_read_in_one_place(name, given, paths):
    assert description_of(name).paths_in(given) == paths
