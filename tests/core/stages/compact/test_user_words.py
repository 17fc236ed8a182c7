"""The user's messages in a summary: whole until their budget is spent."""

from hypothesis import given
from hypothesis import strategies as st

from compacting import SUMMARY
from longhold.core.log.entries import Directed
from longhold.core.messages.text import quote_rest
from longhold.core.stages.compact.directives import (
    SHORTENED,
    DirectiveLedger,
    render_user_messages,
    words_tokens,
)
from longhold.core.stages.compact.summary import ask_for_summary
from longhold.core.stages.facts.facts import WordsFact
from longhold.core.view.tokens import estimate_tokens

SPEC = "\n".join(f"R{n}: the importer must check column {n} before it writes." for n in range(300))
LOG = "\n".join(f"2026-01-05 10:00:00 INFO request {n} was served in time" for n in range(300))


def ledger(*texts, done=()):
    said = [(i, WordsFact(id=i * 10, text=text)) for i, text in enumerate(texts, 1)]
    return DirectiveLedger().follow(
        said, [Directed(n=1_000 + n, message=n, state="done") for n in done]
    )


def test_a_message_of_any_length_is_whole_while_the_budget_lasts():
    one = ledger(SPEC, "and quickly")
    shown = render_user_messages(one, words_tokens(one))
    assert quote_rest(SPEC) in shown.text
    assert shown.shortened == ()


def test_the_oldest_finished_one_goes_before_any_that_is_open():
    one = ledger(SPEC, SPEC.upper(), "go on", done=(10,))
    shown = render_user_messages(one, words_tokens(one) - 100)
    assert quote_rest(SPEC.upper()) in shown.text
    assert [each.message for each in shown.shortened] == [10]
    assert SHORTENED in shown.text


def test_a_paste_is_shortened_before_prose_that_asks_for_something():
    one = ledger(SPEC, f"Why is this slow?\n{LOG}\nPlease fix it.")
    shown = render_user_messages(one, words_tokens(one) - 1_000)
    assert quote_rest(SPEC) in shown.text
    assert "Why is this slow?\n" in shown.text
    assert "Please fix it." in shown.text
    assert "pasted lines left out, all in [#20] …]" in shown.text
    assert [each.message for each in shown.shortened] == [20]


def test_what_must_be_shortened_fills_the_room_that_is_left():
    one = ledger(SPEC)
    budget = int(words_tokens(one) * 0.9)
    shown = render_user_messages(one, budget)
    assert estimate_tokens(shown.text) > 0.8 * budget
    assert "characters left out, all in [#10] …]" in shown.text


def test_at_last_the_oldest_are_left_out_and_that_is_said():
    one = ledger(*(f"Do step {n} as it is drawn on page {n} of the plan." for n in range(3_000)))
    shown = render_user_messages(one, 2_000)
    assert estimate_tokens(shown.text) <= 2_000
    assert "messages from [#20] to [#" in shown.text
    assert one.directives[0].text[:30] in shown.text
    assert one.directives[-1].text in shown.text


def test_of_messages_of_one_length_the_oldest_are_shortened_first():
    one = ledger(
        "begin", *(f"Ticket T-{n} costs {n} EUR. {'More of it. ' * 18}" for n in range(99))
    )
    shown = render_user_messages(one, words_tokens(one) // 2)
    cut = [each.message for each in shown.shortened]
    assert cut == list(range(20, 20 + 10 * len(cut), 10)), "the first request stays, too"
    assert one.directives[-1].text in shown.text


def test_only_messages_that_are_not_vital_have_the_smaller_budget():
    one = ledger(SPEC, *["Please go on with the next one of these."] * 50)
    first = words_tokens(ledger(SPEC))
    assert words_tokens(one, 100) == first + 100
    assert words_tokens(one, 10_000) == words_tokens(one)


async def test_in_a_small_window_old_words_leave_most_of_it_to_work_in(talk):
    one = talk(*[SUMMARY] * 30, window=32_000)
    for n in range(400):
        one.turn(f"Ticket T-{n} costs {n} EUR. {'More of it. ' * 18}", words=1)
        if one.used > 0.9 * one.line:
            await one.session.compact()
            assert one.used < 0.35 * one.line
    assert len(one.compacted) > 3
    for request in one.model.requests:
        asked = str(request.kwargs["messages"][-1])
        assert estimate_tokens(asked) < 2_500, "a window that is nearly full must hold it"


def test_a_model_is_asked_to_cover_exactly_what_was_shortened():
    one = ledger(SPEC, "keep the flag")
    shown = render_user_messages(one, 2_000)
    asked = ask_for_summary(directives=one.directives, shortened=shown.shortened)
    listed = asked.partition("too long to be kept whole")[2]
    assert "#10: R0: the importer" in listed
    assert "#20" not in listed
    assert "too long to be kept" not in ask_for_summary(directives=one.directives)


def test_a_request_for_a_summary_ends_with_the_word_on_tools():
    asked = ask_for_summary(focus=("the cookie",), directives=ledger(SPEC).directives)
    assert asked.endswith("answer in text alone, and call no tool.")


@given(st.lists(st.text(min_size=1, max_size=3_000), max_size=8), st.integers(0, 4_000))
def test_whatever_is_not_whole_is_said_to_be_short(texts, budget):
    one = ledger(*texts)
    shown = render_user_messages(one, budget)
    whole = {each.message: quote_rest(each.text.strip("\n")) for each in one.directives}
    missing = {message for message, text in whole.items() if text not in shown.text}
    assert missing <= {each.message for each in shown.shortened}
