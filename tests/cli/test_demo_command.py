"""The demo: its claims are true, and it leaves no files behind."""

import json
import re

import pytest

from command_line import longhold
from longhold.core.settings import home

pytestmark = pytest.mark.slow


def test_the_demo_leaves_nothing_at_home():
    found = json.loads(longhold("demo", "--json").stdout)
    assert found["tests_after"] == "passed"
    assert not any(home().iterdir())


def test_lines_that_no_terminal_reads_are_whole_and_count_in_english():
    lines = [line.strip() for line in longhold("demo").stderr.splitlines() if line.strip()]
    assert lines
    assert not [line for line in lines if line.endswith("…")]
    assert not [
        line for line in lines if re.search(r"\b1 (steps|summaries|calls|messages)\b", line)
    ]
