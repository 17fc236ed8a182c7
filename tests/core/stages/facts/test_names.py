"""Exact names, known by their shapes."""

from longhold.core.stages.facts.facts import ChangeFact
from longhold.core.stages.facts.names import (
    find_defined,
    find_names,
    find_quoted,
    list_added,
    list_removed,
    list_touched,
    settings_in,
)


def test_names_of_every_kind_are_found_in_order():
    text = (
        "See https://example.org/a?b=1 and src/app/main.py, pass --dry-run to run_all or "
        "parseInput() in Parser.read; commit 3f9c2ab, ticket OPS-12, port 8080, go.mod."
    )
    assert find_names(text) == {
        "https://example.org/a?b=1": "address",
        "src/app/main.py": "path",
        "--dry-run": "flag",
        "run_all": "name",
        "parseInput": "name",
        "Parser.read": "name",
        "3f9c2ab": "id",
        "OPS-12": "id",
        "8080": "number",
        "go.mod": "path",
    }


def test_prose_has_no_names():
    assert (
        find_names("Please make it faster, and tell me why it was slow in the first place.") == {}
    )


def test_absolute_and_relative_paths_are_whole():
    found = find_names("/home/a/b.txt ~/notes/x.md ../up/one ./here/two")
    assert list(found) == ["/home/a/b.txt", "~/notes/x.md", "../up/one", "./here/two"]


def test_strings_in_code_keep_their_quotes():
    assert list(find_quoted("""say("hello there", 'by name', `a tag`) # don't, it's "x" """)) == [
        '"hello there"',
        "'by name'",
        "`a tag`",
    ]


def test_definitions_of_several_languages_are_known():
    code = "func (s *Store) Write(x int)\n  def read(self):\nexport class View {\npub fn fold()\ntype T struct"
    assert list(find_defined(code)) == ["Write", "read", "View", "fold", "T"]


def test_a_huge_run_of_letters_is_looked_at_in_linear_time():
    assert find_names("a" * 500_000 + "/" + "b" * 500_000) == {}


def test_constants_are_known_by_how_languages_declare_them():
    code = """
const rowLimit = 100
export const NAME: string = "spotter";
MAX_RETRIES = 3  # enough
@visible_lines 10
let total = rows.reduce(add)
"""
    assert settings_in(code) == {
        "rowLimit": "100",
        "NAME": '"spotter"',
        "MAX_RETRIES": "3",
        "visible_lines": "10",
    }


def test_an_edit_is_known_by_what_it_defines_brings_and_removes():
    change = ChangeFact(
        id=1,
        path="a.go",
        removed="func Old() { oldName() }",
        added='func New() { emit("task.done"); newName() }',
    )
    assert list_touched([change]) == ["Old", "New"]
    assert list_added([change], ["New"]) == ['"task.done"', "newName"]
    assert list_removed([change]) == ["Old", "oldName"]
