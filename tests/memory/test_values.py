"""What kind of value a word is, and which values exclude each other."""

import pytest

from holdfast.memory.values import exclude, kind_of, valued


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("8080", "number"),
        ("0.5", "number"),
        ("8080/tcp", "0/a"),
        ("9-17", "0-0"),
        ("Fridays", "day"),
        ("db-9", "name with signs"),
        ("docs/api.md", "path"),
        ("ann@example.org", "address"),
        ("UTC", "letters"),
        ("Jira", "name"),
        ("friendly", ""),
    ],
)
def test_a_word_has_a_kind_or_merely_describes(word, kind):
    """Only what has a kind can contradict."""
    assert kind_of(word) == kind


def test_what_counts_is_part_of_a_numbers_kind():
    """Three services and 99 percent are not two answers to one question; units of time are."""
    assert valued(["3", "services"]).kind != valued(["99", "percent"]).kind
    assert valued(["5", "minutes"]).kind == valued(["30", "seconds"]).kind


def test_values_for_different_places_hold_together():
    """What is said after a value may tell them apart, even of a change."""
    new, old = valued(["9090", "in", "staging"]), valued(["8080", "in", "production"])
    assert not exclude(new, old, is_change=True, is_one_of_many=False)
    assert exclude(new, valued(["8080"]), is_change=True, is_one_of_many=False)
