"""The ledger of the user's requests and their states."""

from functools import partial
from inspect import cleandoc

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.entries import Directed
from longhold.core.messages.text import quote_rest
from longhold.core.stages.compact.directives import (
    HEADING,
    DirectiveLedger,
    accept,
    read_claims,
    render_user_messages,
)
from longhold.core.stages.facts.facts import WordsFact

PLENTY = 1_000_000


def said(*texts):
    """Number what the user said, ten by ten."""
    return [(i, WordsFact(id=i * 10, text=text)) for i, text in enumerate(texts, 1)]


claim = partial(Directed, by="model")


def states(ledger):
    """Give message and state of each directive."""
    return [(each.message, each.state) for each in ledger.directives]


def test_every_message_is_a_directive_and_open():
    assert states(DirectiveLedger().follow(said("build it", "test it"))) == [
        (10, "open"),
        (20, "open"),
    ]


def test_a_plain_phrase_cancels_the_request_it_names():
    ledger = DirectiveLedger().follow(
        said("Add a retry to the fetcher", "Add a cache", "Forget the retry.")
    )
    assert [each.mark for each in ledger.directives] == ["cancelled by #30", "", ""]


def test_a_request_that_begins_like_a_cancellation_closes_nothing():
    ledger = DirectiveLedger().follow(
        said("The submit button should be red.", "Cancel button should be red.")
    )
    assert states(ledger) == [(10, "open"), (20, "open")]


def test_a_bare_phrase_cancels_the_last_request_that_is_one():
    ledger = DirectiveLedger().follow(
        said("one wish", "another wish", "never mind", "cancel that too")
    )
    assert states(ledger)[:2] == [(10, "open"), (20, "cancelled")]
    ledger = DirectiveLedger().follow(said("one wish", "another wish", "never mind", "cancel that"))
    assert states(ledger)[:2] == [(10, "cancelled"), (20, "cancelled")]


def test_what_asks_for_more_is_cancelled_in_part():
    ledger = DirectiveLedger().follow(
        said("Add a cache and write a page on the importer", "never mind the cache")
    )
    assert ledger.directives[0].mark == "in part cancelled by #20"
    assert ledger.directives[0].state == "open"


def test_a_correction_falls_with_its_request():
    ledger = DirectiveLedger().follow(
        said("Add the audit log", "No, the audit log belongs elsewhere.", "Scrap the audit log.")
    )
    assert states(ledger)[:2] == [(10, "cancelled"), (20, "cancelled")]


def test_a_command_of_the_users_changes_a_state_at_any_time():
    changes = [
        Directed(n=15, message=10, state="done"),
        Directed(n=25, message=10, state="open"),
        Directed(n=26, message=99, state="done"),
    ]
    assert states(DirectiveLedger().follow(said("build it", "more"), changes[:1]))[0] == (
        10,
        "done",
    )
    assert states(DirectiveLedger().follow(said("build it", "more"), changes))[0] == (10, "open")


def test_a_models_change_must_rest_on_something():
    bare = Directed(n=15, message=10, state="done", by="model")
    cited = Directed(n=16, message=10, state="done", by="model", rests_on=12)
    assert states(DirectiveLedger().follow(said("build it"), [bare])) == [(10, "open")]
    assert states(DirectiveLedger().follow(said("build it"), [cited])) == [(10, "done")]


def test_claims_are_read_line_by_line():
    text = "States:\n- #10 done, see #14\n#20: Cancelled by #30\n#40 done\nnothing"
    assert list(read_claims(text)) == [
        claim(message=10, state="done", rests_on=14),
        claim(message=20, state="cancelled", rests_on=30),
    ]


def test_only_claims_that_rest_on_a_later_message_are_accepted():
    ledger = DirectiveLedger().follow(said("build it", "test it", "drop something"))
    claims = [
        claim(message=10, state="done", rests_on=14),
        claim(message=10, state="done", rests_on=5),
        claim(message=20, state="cancelled", rests_on=24),
        claim(message=20, state="cancelled", rests_on=30),
        claim(message=20, state="done", rests_on=999),
        claim(message=77, state="done", rests_on=80),
    ]
    accepted = accept(claims, ledger, said={10, 20, 30}, known={5, 10, 14, 20, 24, 30, 80})
    assert [(each.message, each.state, each.rests_on, each.by) for each in accepted] == [
        (10, "done", 14, "model"),
        (20, "cancelled", 30, "model"),
    ]


def test_a_cancelled_directive_opens_again_only_by_a_later_word_of_the_user():
    ledger = DirectiveLedger().follow(said("build it", "never mind", "do build it"))
    early = claim(message=10, state="open", rests_on=20)
    late = claim(message=10, state="open", rests_on=30)
    accepted = list(accept([early, late], ledger, said={10, 20, 30}, known={10, 20, 30}))
    assert [each.rests_on for each in accepted] == [30]


def test_the_ledger_reads_in_order_with_its_states():
    ledger = DirectiveLedger().follow(said("Add a retry\nto the fetcher", "Forget the retry."))
    assert render_user_messages(ledger, PLENTY).text == cleandoc(
        """
        What the user said, word for word. What is marked cancelled, replaced or done is not to be taken up again.
        T1 [#10] (cancelled by #20): Add a retry
        | to the fetcher
        T2 [#20]: Forget the retry.
        """
    )


def test_over_its_budget_finished_ones_shrink_first():
    long = "Please see to this in every place where it occurs, and then look at it again. " * 3
    done = [Directed(n=1_000 + i, message=i * 10, state="done") for i in (1, 2)]
    ledger = DirectiveLedger().follow(said(f"1 {long}", f"2 {long}", f"3 {long}"), done)
    text = render_user_messages(ledger, 200).text
    assert f"1 {long}".strip() not in text
    assert f"3 {long}".strip() in text
    assert "T1 [#10] (done): 1 Please see to this" in text


def test_nothing_said_is_nothing_told():
    assert render_user_messages(DirectiveLedger().follow([]), PLENTY).text == ""


def test_an_answer_to_a_question_is_a_directive_with_its_question():
    words = WordsFact(id=10, text="yes", via="answer", about="Push it?")
    assert DirectiveLedger().follow([(1, words)]).directives[0].text == "Push it?: yes"


@given(st.lists(st.text(min_size=1, max_size=200).filter(str.strip), max_size=12))
def test_within_the_budget_every_directive_is_verbatim(texts):
    ledger = DirectiveLedger().follow(said(*texts))
    told = render_user_messages(ledger, PLENTY).text
    assert all(quote_rest(each.text.strip("\n")) in told for each in ledger.directives)
    assert not texts or told.startswith(HEADING)


@given(st.lists(st.text(max_size=400), max_size=20), st.integers(0, 500))
def test_every_directive_keeps_its_line_or_is_said_to_be_left_out(texts, budget):
    ledger = DirectiveLedger().follow(said(*texts))
    told = render_user_messages(ledger, budget).text
    missing = [each for each in ledger.directives if f"[#{each.message}]" not in told]
    assert not missing or "left out; the log has them" in told
    assert not ledger.directives or f"[#{ledger.directives[-1].message}]" in told
