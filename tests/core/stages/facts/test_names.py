"""Exact names, recognised by their shapes."""

from longhold.core.stages.facts.facts import ChangeFact
from longhold.core.stages.facts.names import (
    describe_change,
    find_defined,
    find_names,
    find_quoted,
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


def test_a_change_is_described_by_what_is_new_in_it():
    old = "a = 1\nb = 2\nc = 3"
    assert describe_change(ChangeFact(id=1, path="a.py", removed=old, added=f"{old}\nd = 4")) == (
        ": put in `d = 4`"
    )
    changed = ChangeFact(id=1, path="a.py", removed=old, added=old.replace("2", "20"))
    assert describe_change(changed) == ": `b = 2` → `b = 20`"
    taken = ChangeFact(id=1, path="a.py", removed=old, added="a = 1\nc = 3")
    assert describe_change(taken) == ": `b = 2` → nothing"
    written = ChangeFact(id=1, path="a.py", added="def run():\n    return 1\n")
    assert describe_change(written) == ": run"


def test_comments_are_not_what_a_change_is_described_by():
    added = "# Use the console to see traces\nexporter: :stdout"
    assert describe_change(ChangeFact(id=1, path="a.exs", added=added)) == (
        ": put in `exporter: :stdout`"
    )
