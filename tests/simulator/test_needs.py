"""Which earlier results a session needs again."""

import sys
from pathlib import Path

from msgspec import structs

from longhold.core.log.entries import Cleared, Ran, Replied
from longhold.core.messages import ToolUse
from longhold.insight.replay.regret import Needs

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from needs import rates, regret


def called(id, name, given, result, *, response):
    return [
        Replied(response_id=response, content=(ToolUse(id=id, name=name, input=given),)),
        Ran(tool_use_id=id, content=result),
    ]


def needs_in(*calls):
    follower, entries = Needs(), [entry for call in calls for entry in call]
    found = filter(None, map(follower.follow, entries))
    return [(need.result.tool_use_id, need.age) for need in found]


def read(id, text, response, **more):
    return called(id, "Read", {"file_path": "/a.py", **more}, text, response=response)


def test_a_file_read_again_needs_the_first_reading_if_it_shows_the_same():
    whole = "     1→one\n     2→two\n     3→three"
    part = read("b", "     9→two", "r2", offset=9)
    assert needs_in(read("a", whole, "r1"), part) == [("a", 1)]
    assert needs_in(read("a", whole, "r1"), read("b", "     1→other", "r2")) == []


def test_an_edit_needs_the_newest_reading_of_its_file():
    edit = {"file_path": "/a.py", "old_string": "one", "new_string": "two"}
    readings = read("a", "one", "r1"), read("b", "one more", "r2")
    assert needs_in(*readings, called("c", "Edit", edit, "done", response="r3")) == [("b", 1)]
    whole = {"file_path": "/a.py", "content": "all"}
    assert needs_in(*readings, called("c", "Write", whole, "done", response="r3")) == []


def test_a_command_run_again_needs_the_first_only_if_nothing_changed():
    run = {"command": "make test"}
    first = called("a", "Bash", run, "1 failed", response="r1")
    assert needs_in(first, called("b", "Bash", run, "1 failed", response="r2")) == [("a", 1)]
    assert needs_in(first, called("b", "Bash", run, "all passed", response="r2")) == []


def test_the_files_read_or_edited_last_are_given_with_their_readings():
    follower = Needs()
    other = called("b", "Read", {"file_path": "/b.py"}, "two", response="r2")
    edit = {"file_path": "/a.py", "old_string": "one", "new_string": "1"}
    calls = read("a", "one", "r1"), other, called("c", "Edit", edit, "done", response="r3")
    for call in (*calls, read("d", "1", "r4")):
        for entry in call:
            follower.follow(entry)

    def given(count, *without):
        files = follower.newest_files(count, without)
        return [(path, [one.tool_use_id for one in many]) for path, many in files]

    assert given(2) == [("/a.py", ["d", "a"]), ("/b.py", ["b"])]
    assert given(1) == [("/a.py", ["d", "a"])]
    assert given(2, "/a.py") == [("/b.py", ["b"])]


def test_rates_count_those_that_grew_old_enough():
    entries = [*read("a", "one", "r1"), *read("b", "one", "r2")]
    for number in range(3, 9):
        entries += called(f"t{number}", "Grep", {"pattern": str(number)}, "", response=f"r{number}")
    found = rates([entries])
    assert found["read"][0] == (1, 2) and found["read"][5] == (0, 2)


def test_regret_counts_what_was_gone_when_it_was_needed():
    first, again, third = (read(id, "one", f"r{id}") for id in "abc")
    gone = Cleared(ids=("a",), texts=("gone",))

    def counted(*entries):
        return regret([structs.replace(e, n=n) for n, e in enumerate(entries, 1)])[0]

    assert counted(*first, *again) == 0
    assert counted(*first, gone, *again) == 1
    assert counted(*first, gone, *again, *third) == 1
