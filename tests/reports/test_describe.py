"""What an entry did, in one line."""

import pytest

from holdfast.log.entries import Cleared, Pinned, Snipped, Swept
from holdfast.reports.describe import told


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (
            Cleared(ids=("a",), texts=("",), why="cleared 1 old result, about 9 tokens"),
            "cleared 1 old result, about 9 tokens",
        ),
        (Cleared(ids=("a", "b"), texts=("", ""), how="edited"), "2 results cleared (edited)"),
        (Snipped(targets=(4,), why="the user dropped it"), "1 message left the view: the user"),
        (Pinned(targets=(4, 5)), "2 messages pinned"),
        (Swept(files=("a",), bytes=1_200, why="too old"), "1 file of 1,200 bytes removed, too old"),
    ],
)
def test_a_line_says_it_once(entry, line):
    """The reason is not told twice, and one is one."""
    assert told(entry).startswith(line)
