"""Cutting text so that the rest is still meaningful."""

import time

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages.text import cut, head_and_tail, outline, sentences, without_code


def test_a_cut_ends_with_a_sentence():
    text = "The id is 42. The name is Anna. The rest is long and of no use to anybody."
    assert cut(text, 50) == "The id is 42. The name is Anna. …"


def test_a_cut_between_lines_keeps_pairs_together():
    assert cut("a1 = login\nb2 = logout\nc3 = the page on which all of it stands", 30) == (
        "a1 = login\nb2 = logout …"
    )


def test_one_long_sentence_is_cut_at_a_word():
    assert cut("alpha beta gamma delta epsilon zeta", 20) == "alpha beta gamma …"


def test_short_text_stays_as_it_is():
    assert cut("Fits.", 5) == "Fits."


def test_a_long_paste_keeps_both_ends_and_says_where_the_rest_is():
    text = "Look at this.\n" + "x " * 400 + "\nWhy does it fail?"
    assert head_and_tail(text, 60, "[#7]") == (
        "Look at this.\nx x x x x x x x x x x x x\n[… 776 characters left out, all in [#7] …]\n"
        "Why does it fail?"
    )


def test_code_is_left_out_of_short_forms():
    assert (
        without_code("Do this:\n```py\nx = 1\n```\nThen stop.") == "Do this:\n[code …]\nThen stop."
    )


def test_an_outline_keeps_headings_items_and_first_sentences():
    text = "# Plan\n\nWe move it. It is old.\n\n- one\n- two\n\n```\ncode\n```\n---\n2. three\n"
    assert outline(text, 200) == "# Plan\nWe move it.\n- one\n- two\n2. three"


def test_an_outline_over_its_length_says_so():
    assert outline("# One\n# Two\n# Three", 12) == "# One\n# Two\n…"


@given(st.text(max_size=400), st.integers(1, 200))
def test_no_cut_is_longer_than_asked(text, chars):
    assert len(cut(text, chars)) <= max(chars, 3)


@given(st.text(max_size=400))
def test_sentences_lose_nothing_but_space(text):
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_code_that_never_ends_is_left_out_in_time():
    began = time.process_time()
    assert without_code("Look:\n" + "```[\n" * 100_000) == "Look:\n[code …]"
    assert time.process_time() - began < 2
