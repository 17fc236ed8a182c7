"""The tools' state, recovered from a log."""

import os
import time

from longhold.core.log.entries import Ran, Replied, Restored
from longhold.core.messages import Text, ToolUse
from longhold.core.tools.context import Todo, ToolContext
from longhold.core.tools.recovered import ToolTrace, recall, restored_head


def calls(*made, at=None):
    """A history of calls, each a name, an input and perhaps a result; a result None is an error."""
    entries = []
    for name, given, *result in made:
        n = len(entries) + 1
        is_error = bool(result) and result[0] is None
        text = "" if is_error or not result else result[0]
        use = ToolUse(id=f"t{n}", name=name, input=given)
        entries.append(Replied(n=n, response_id=f"r{n}", content=(use,)))
        when = time.time() if at is None else at
        entries.append(Ran(n=n + 1, at=when, tool_use_id=use.id, content=text, is_error=is_error))
    return entries


def tool_context(tmp_path):
    return ToolContext(root=tmp_path, home=tmp_path / "home", scratch=tmp_path / "scratch")


def test_files_are_listed_newest_first_and_once():
    history = calls(
        ("Read", {"file_path": "/a"}),
        ("Write", {"file_path": "/b", "content": ""}),
        ("Read", {"file_path": "/c"}, None),
        ("Read", {"file_path": "/a", "offset": 7, "limit": 3}),
        ("Edit", {"file_path": "/a"}),
    )
    found = [(each.path, each.first, each.limit) for each in ToolTrace(history).files()]
    assert found == [("/a", 7, 3), ("/b", 1, 0)]


def test_a_file_keeps_the_span_of_all_its_readings():
    parts = (
        ("Read", {"file_path": "/a", "offset": 7, "limit": 3}),
        (
            "Read",
            {"file_path": "/a", "offset": 40, "limit": 10},
        ),
    )
    assert ToolTrace(calls(*parts)).files()[0].span == (7, 43)
    whole = ToolTrace(calls(*parts, ("Read", {"file_path": "/a"}))).files()[0]
    assert (whole.first, whole.limit, whole.span) == (1, 0, (1, 0))


def test_tools_of_other_agents_are_known_by_their_names():
    assert [each.path for each in ToolTrace(calls(("read_file", {"path": "x.rs"}))).files()] == [
        "x.rs"
    ]


def test_skills_are_listed_newest_first_with_their_latest_text():
    history = calls(
        ("Skill", {"skill": "a"}, "old a"),
        ("Skill", {"skill": "b"}, "b"),
        ("Skill", {"skill": "a"}, "new a"),
    )
    assert [(each.name, each.text) for each in ToolTrace(history).skills()] == [
        ("a", "new a"),
        ("b", "b"),
    ]


def test_todos_are_those_written_last():
    todo = {"content": "x", "status": "pending"}
    assert ToolTrace(calls(("TodoWrite", {"todos": [todo]}))).todos() == (
        Todo(content="x", status="pending"),
    )
    assert ToolTrace(calls(("TodoWrite", {"todos": "nonsense"}))).todos() == ()
    assert ToolTrace().todos() == ()


def test_a_file_that_did_not_change_since_counts_as_read(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("x\n")
    place = tool_context(tmp_path)
    recall(place, calls(("Read", {"file_path": "a.py"}), at=time.time() + 1))
    (seen,) = place.files.list_newest()
    assert (seen.path, seen.ranges) == (path.resolve(), ())


def test_a_file_that_changed_since_has_to_be_read_again(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("x\n")
    os.utime(path, (0, 0))
    place = tool_context(tmp_path)
    recall(place, calls(("Read", {"file_path": "a.py"}), at=time.time() - 60))
    assert place.files.list_newest() == ()


def test_before_a_boundary_only_what_was_restored_counts(tmp_path):
    later = time.time() + 1
    for name in ("old.py", "shown.py", "new.py"):
        (tmp_path / name).write_text("x\n")
    old, new = calls(("Read", {"file_path": "old.py"}), at=later), {"file_path": "new.py"}
    text = f"{restored_head(tmp_path / 'shown.py')}: 1 characters]\nx"
    shown = Restored(n=4, at=later, compaction=3, content=(Text(text=text),))
    use = ToolUse(id="t5", name="Read", input=new)
    since = [
        Replied(n=5, response_id="r5", content=(use,)),
        Ran(n=6, at=later, tool_use_id="t5"),
    ]
    place = tool_context(tmp_path)
    recall(place, [*old, shown, *since], boundary=3)
    names = [seen.path.name for seen in place.files.list_newest()]
    assert names == ["new.py", "shown.py"]
