"""Exit statuses as other agents' shells tell them."""

import pytest

from holdfast.stages.spill.exit_status import exit_status_in

CODEX = "Exit code: 2\nWall time: 0.1 seconds\nOutput:\nmake: nothing to do"
CHUNK = "Chunk ID: 7\nWall time: 1.0 seconds\nProcess exited with code 101\nOutput:\nerror[E0308]"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Exit code 1\nTraceback", 1),
        ("some output\n\nCommand exited with code 127", 127),
        ("some output\n[Exit status 2.]", 2),
        (CODEX, 2),
        (CHUNK, 101),
        ('{"output":"x","metadata":{"exit_code":3,"duration_seconds":0.1}}', 3),
        ("Exit code: 0\nWall time: 1 s\nOutput:\nok", 0),
    ],
)
def test_what_shells_say_of_their_end(text, status):
    """In the first line, the last one, or a header."""
    assert exit_status_in(text) == status


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12 passed",
        "the process may exit with code 3 if asked to\nand then\nmore",
        "docs: exit code 4 means trouble\n" + "x\n" * 400 + "done",
        'print("Process exited with code 5")\nmore',
    ],
)
def test_what_is_merely_mentioned_is_no_status(text):
    """Nothing is guessed."""
    assert exit_status_in(text) is None
