"""What a model's summary says against the log."""

import pytest
from tests.core.stages.facts.conftest import Talk

from longhold.core.stages.compact.compose import mark_contradictions
from longhold.core.stages.facts.tool_steps import extract


@pytest.fixture
def talk():
    """A session under construction."""
    return Talk()


def test_a_name_that_is_nowhere_in_the_log_is_marked(talk):
    talk.call("Bash", "[main 3f9c2ab] Round\n", command="git commit -am x")
    talk.call("Read", "x", file_path="/p/src/sums.py")
    said = mark_contradictions(
        "Commit 3f9c2ab, then 77aa11b. See src/sums.py and src/rates.py.",
        extract(talk.items),
        talk.items,
    )
    assert said == (
        "Commit 3f9c2ab, then 77aa11b [not found in the log]. "
        "See src/sums.py and src/rates.py [not found in the log]."
    )


def test_tests_that_failed_last_do_not_pass(talk):
    talk.call("Bash", "12 passed", command="pytest -q")
    talk.call("Bash", "FAILED test_a", is_error=True, command="pytest -q")
    facts = extract(talk.items)
    assert mark_contradictions("All tests pass.", facts, talk.items) == (
        "All tests pass. [the log says otherwise: `pytest -q` failed [#2]]"
    )
    for claim in ("The tests do not pass.", "Make sure all tests pass.", "Done."):
        assert mark_contradictions(claim, facts, talk.items) == claim


def test_tests_that_passed_last_pass(talk):
    talk.call("Bash", "FAILED test_a", is_error=True, command="pytest -q")
    talk.call("Bash", "12 passed", command="pytest -q")
    assert (
        mark_contradictions("All tests pass.", extract(talk.items), talk.items) == "All tests pass."
    )
