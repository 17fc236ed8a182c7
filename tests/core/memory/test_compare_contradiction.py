"""Which newer statement contradicts an older one. If in doubt, none does."""

import pytest

from longhold.core.memory.tidy import contradicts, kind_of, read_statement


def is_contradicted(new, old):
    """Read both and compare."""
    return contradicts(read_statement(new), read_statement(old))


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
        ("The port of the api is now 9090 in staging", "The port of the api is 8080"),
    ],
)
def test_a_newer_statement_contradicts_an_older_one(new, old):
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
        ("The port of the api is now 9090 in staging", "The port of the api is 8080 in production"),
        ("The api is now 3 services", "The api is 99 percent"),
        ("The team is now small", "The team is friendly"),
        ("The api is slow", "The api is documented in docs/api.md"),
    ],
)
def test_what_may_both_be_true_is_left_alone(new, old):
    assert not is_contradicted(new, old)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("8080", "number"),
        ("0.5", "number"),
        ("8080/tcp", "0/a"),
        ("9-17", "0-0"),
        ("Fridays", "day"),
        ("db-9", "identifier"),
        ("docs/api.md", "path"),
        ("ann@example.org", "address"),
        ("UTC", "acronym"),
        ("Jira", "name"),
        ("friendly", ""),
    ],
)
def test_a_word_has_a_kind_or_merely_describes(word, kind):
    assert kind_of(word) == kind
