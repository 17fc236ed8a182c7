"""What edits did, by the names they touched, put in and took out."""

from holdfast.stages.facts.edits import put_in, taken_out, touched
from holdfast.stages.facts.facts import ChangeFact


def test_an_edit_is_known_by_what_it_defines_brings_and_removes():
    """Definitions, strings and names tell an edit in a line."""
    change = ChangeFact(
        id=1,
        path="a.go",
        removed="func Old() { oldName() }",
        added='func New() { emit("task.done"); newName() }',
    )
    assert touched([change]) == ["Old", "New"]
    assert put_in([change], ["New"]) == ['"task.done"', "newName"]
    assert taken_out([change]) == ["Old", "oldName"]
