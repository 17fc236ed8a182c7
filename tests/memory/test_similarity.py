"""What is alike enough to be one, and what contradicts what; every doubt is a no."""

import pytest

from holdfast.memory.memory import Memory
from holdfast.memory.similarity import contradicts, stands_for, statement


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
    """The same words, or the same and more."""
    assert stands_for(memory(kept), memory(gone), 0.9)


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
    """Nothing goes that says something of its own."""
    assert not stands_for(memory(kept), memory(gone), 0.9)


def test_types_are_not_mixed():
    """What a person prefers is not what a project does."""
    assert not stands_for(memory(LONG), memory(LONG, "user"), 0.9)


def is_contradicted(new, old):
    """Read both and compare."""
    return contradicts(statement(new), statement(old))


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The staging database is now db-9", "The staging database is db-7"),
        ("The staging database moved to db-9", "The staging database is db-7"),
        ("The port of the api is 9090", "The port of the api is 8080"),
        ("The port of the api is 7070", "The port of the api moved to 9090"),
        ("Deploys are now on Fridays", "Deploys are on Tuesdays"),
        ("We no longer deploy on Fridays", "We deploy on Fridays"),
        ("The release of June is cancelled", "The release of June is planned"),
        ("The board is now in Jira", "The board is in Linear"),
        ("The office moved to Berlin", "The office is in Munich"),
        ("The staging database is now db-9 since June", "The staging database is db-7"),
        ("The timeout of the api is now 5 minutes", "The timeout of the api is 30 seconds"),
    ],
)
def test_a_newer_statement_contradicts_an_older_one(new, old):
    """It says that things changed, or gives another number for the same thing."""
    assert is_contradicted(new, old)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The team is small", "The team is friendly"),
        ("The port of the api is 9090", "The port of the web is 8080"),
        ("The port of the api is 8080", "The port of the api is 8080"),
        ("Deploy steps: see docs/deploy.md", "Deploy steps: ask Ann, room 5"),
        ("We no longer deploy on Fridays", "Never deploy on Fridays"),
        ("We no longer use Redis", "The cache of the billing service is Redis 6 on db-2"),
        ("Ann likes short answers", "Ann likes long walks"),
        ("Tests now use pytest", "Tests use the staging database"),
        ("The api now uses Redis", "The api uses Postgres"),
        ("The office hours are UTC", "The office hours are 9-17"),
        ("The port of the api is 8080/tcp", "The port of the api is 8080"),
        ("The port of the api is 8080 in staging", "The port of the api is 9090 in production"),
        ("The team is now small", "The team is friendly"),
        ("The api is slow", "The api is documented in docs/api.md"),
    ],
)
def test_what_may_both_be_true_is_left_alone(new, old):
    """Marking a live fact as superseded would hide it."""
    assert not is_contradicted(new, old)
