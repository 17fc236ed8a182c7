"""Tool calls as a reader sees them."""

from longhold.core.messages import ToolUse
from longhold.core.tools.history.records import call_text


def text(name, **given):
    return call_text(ToolUse(id="a", name=name, input=given)).split("\n")


def test_an_edit_shows_the_texts_as_they_were_given():
    given = {"file_path": "/a.py", "old_string": "a\nb", "new_string": "c"}
    assert text("Edit", **given)[1:] == [
        "file_path: /a.py",
        "old_string:",
        "a",
        "b",
        "new_string: c",
    ]
    assert text("MultiEdit", edits=[given | {"old_string": "a"}])[1:] == [
        'edits: [{"file_path":"/a.py","old_string":"a","new_string":"c"}]'
    ]


def test_a_command_and_other_inputs_are_lines():
    assert text("Bash", command="make\nmake test", timeout=3)[1:] == [
        *("$ make", "make test", "timeout: 3"),
    ]
    assert text("Write", file_path="/a", content='x = "1"\n')[1:] == [
        *("file_path: /a", "content:", 'x = "1"', ""),
    ]
