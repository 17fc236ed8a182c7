"""Which memory may replace another. If in doubt, none may."""

import pytest

from longhold.core.memory.memory import Memory
from longhold.core.memory.tidy import covers


def memory(text, kind="project"):
    """A memory that says one thing."""
    return Memory(file="a.md", name="a", description=text, type=kind)


LONG = "Deploys of the billing service go out on Tuesday nights after the backup has finished"


@pytest.mark.parametrize(
    ("kept", "gone"),
    [
        (LONG, LONG),
        (LONG, LONG.upper()),
        (LONG + ", says Ann.", LONG),
        ("Use tabs.", "use tabs"),
    ],
)
def test_one_may_stand_for_the_other(kept, gone):
    assert covers(memory(kept), memory(gone))


@pytest.mark.parametrize(
    ("kept", "gone"),
    [
        (LONG.replace("Tuesday", "Monday"), LONG),
        (LONG, LONG + " and Bob agrees"),
        (LONG.replace("go out", "do not go out"), LONG),
        (LONG, LONG.replace("go out", "never go out")),
        ("Port 8080 of the api is open to the office network only", "Port 8081 of the api is open to the office network only"),
        ("Use tabs in Go.", "Use tabs."),
        ("The parser depends on the lexer and the printer", "The printer depends on the lexer and the parser"),
    ],
)  # fmt: skip
def test_a_word_a_digit_or_a_denial_of_difference_is_a_difference(kept, gone):
    assert not covers(memory(kept), memory(gone))


def test_types_are_not_mixed():
    assert not covers(memory(LONG), memory(LONG, "user"))
