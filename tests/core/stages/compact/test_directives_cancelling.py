"""Plain words with which users cancel a request."""

import pytest

from longhold.core.stages.compact.directives import (
    Cancelling,
    cancellings,
    clauses,
    find_stems,
    likeness,
)


@pytest.mark.parametrize(
    "text",
    [
        "never mind",
        "Cancel that, please.",
        "hmm, forget it",
        "Actually, scrap that.",
        "ignore my last message",
        "No wait, don't do that after all.",
    ],
)
def test_a_bare_phrase_takes_back_the_request_before(text):
    assert list(cancellings(text)) == [Cancelling()]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Never mind the cache.", "cache"),
        ("forget about the retry logic, we have one", "retry logic"),
        ("Let's scrap the migration script after all", "migration script"),
        ("We don't need dark mode anymore.", "dark mode"),
        ("No need for the changelog entry any more", "changelog entry"),
        ("Don't bother with the docs page.", "docs page"),
        ("skip the CI job for now", "ci job"),
    ],
)
def test_a_naming_phrase_takes_back_what_it_names(text, phrase):
    assert [each.phrase.strip() for each in cancellings(text)] == [phrase]


def test_a_number_names_a_message():
    assert list(cancellings("cancel #12")) == [Cancelling(number=12)]
    assert list(cancellings("Please drop my request #12.")) == [Cancelling(number=12)]


def test_something_else_instead_replaces():
    assert list(cancellings("Scrap that, use redis instead.")) == [Cancelling(is_replacing=True)]


@pytest.mark.parametrize(
    "text",
    [
        "Don't add comments.",
        "stop using tabs",
        "Should we cancel the job?",
        "The tests cancel the request after a second.",
        "I changed my mind about the cache.",
        "x" * 2_000 + "\nnever mind",
        "Cancel button should be red.",
        "Cancel the subscription when the user leaves.",
        "Cancel the job, if it is not done yet.",
        "undo button must work",
        "Undo history needs a limit of ten steps.",
        "Cancel culture page needs a title",
        "Drop support for python 3.8",
        "Forget password link goes to the wrong page.",
        "Never mind the gap page needs a title.",
        "Ignore list should be sorted.",
        "Skip links must be visible.",
        "Stop the export button is grey.",
        "Stop message 5 from being sent twice.",
    ],
)
def test_what_could_mean_something_else_takes_back_nothing(text):
    assert list(cancellings(text)) == []


def test_words_are_known_again_in_other_forms():
    assert find_stems("Dropping the retries of tests") == {"dropp", "retry", "test"}
    assert likeness(Cancelling(words=find_stems("the failing tests")), "fix that failed test") == 1


def test_a_request_is_parted_into_what_it_asks():
    assert clauses("Add a cache and write tests for it. It is due on Friday.") == [
        "Add a cache",
        "write tests for it.",
    ]
