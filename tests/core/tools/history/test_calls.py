"""Tool calls as a reader sees them."""

import pytest

from longhold.core.messages import ToolUse
from longhold.core.tools.history.records import DIFF_LINES, call_text


def text(name, **given):
    return call_text(ToolUse(id="a", name=name, input=given)).split("\n")


@pytest.mark.parametrize(
    ("old", "new"), [("old_string", "new_string"), ("old_str", "new_str"), ("oldText", "newText")]
)
def test_an_edit_is_a_diff(old, new):
    given = {"file_path": "/a.py", old: "def f():\n    return 1\n", new: "def f():\n    return 2\n"}
    assert text("Edit", **given) == [
        "[calls Edit, id a]",
        "file_path: /a.py",
        "@@ -1,2 +1,2 @@",
        " def f():",
        "-    return 1",
        "+    return 2",
    ]


def test_several_edits_are_several_diffs():
    edits = [{"old_string": "a", "new_string": "b"}, "odd"]
    assert text("MultiEdit", edits=edits)[1:] == ["@@ -1 +1 @@", "-a", "+b", '"odd"']


def test_a_command_and_other_inputs_are_lines():
    assert text("Bash", command="make\nmake test", timeout=3)[1:] == [
        *("$ make", "make test", "timeout: 3"),
    ]
    assert text("Write", file_path="/a", content='x = "1"\n')[1:] == [
        *("file_path: /a", "content:", 'x = "1"', ""),
    ]


def test_a_long_edit_is_not_compared_line_by_line():
    lines = [str(i) for i in range(DIFF_LINES + 1)]
    shown = text("Edit", old_string="\n".join(lines), new_string="x")[1:]
    assert shown == [*(f"-{line}" for line in lines), "+x"]
