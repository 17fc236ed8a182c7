"""Fitting pieces of text into a budget."""

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.stages.compact.digest.pieces import DigestPiece, fit


def piece(section, place, forms, gains):
    """Make a piece."""
    return DigestPiece(section=section, place=(place,), forms=forms, gains=gains)


def test_short_forms_of_all_come_before_the_full_form_of_any():
    pieces = [piece(1, 0, ("a", "a" * 50), (9, 9)), piece(1, 1, ("b", "b" * 50), (8, 9))]
    assert fit(pieces, 10, len) == {1: "a\nb"}


def test_a_cheap_piece_of_some_worth_comes_before_a_dear_one_of_more():
    cheap = [piece(1, i, (f"fact {i}",), (5,)) for i in range(3)]
    assert fit([piece(1, 9, ("x" * 21,), (9,)), *cheap], 22, len) == {1: "fact 0\nfact 1\nfact 2"}


def test_a_form_is_skipped_if_the_next_one_gains_more_for_its_tokens():
    told = piece(1, 0, ("see 4", "see 4: it failed"), (1, 90))
    assert fit([told, piece(1, 1, ("other",), (10,))], 17, len) == {1: "see 4: it failed"}


def test_pieces_stand_in_their_places_whatever_their_worth():
    pieces = [piece(2, 5, ("late",), (9,)), piece(2, 1, ("early",), (1,))]
    assert fit(pieces, 100, len) == {2: "early\nlate"}


def test_what_does_not_fit_does_not_stop_the_rest():
    pieces = [piece(1, 0, ("x" * 100,), (900_000,)), piece(1, 1, ("y",), (2,))]
    assert fit(pieces, 10, len) == {1: "y"}
    assert fit([piece(1, 0, ("x", "x" * 100), (1, 900_000))], 10, len) == {1: "x"}


@given(
    st.lists(st.tuples(st.integers(1, 9), st.text(max_size=30), st.text(max_size=90)), max_size=30),
    st.integers(0, 400),
)
def test_a_budget_is_never_exceeded(drawn, budget):
    pieces = [
        piece(section, i, (short, short + long), (i % 4, i % 7))
        for i, (section, short, long) in enumerate(drawn)
    ]
    sections = fit(pieces, budget, len)
    assert sum(len(text) + 1 for text in sections.values()) <= budget


def test_routine_makes_way_only_in_a_tight_digest():
    routine = [DigestPiece(6, (i,), ("aa",), (20.0,), tight_share=0.1) for i in range(10)]
    asked = [DigestPiece(6, (i,), ("bb",), (10.0,)) for i in range(10, 14)]
    assert fit((*routine, *asked), 40, len)[6].count("bb") == 3
    assert fit((*routine, *asked), 15, len)[6].count("bb") == 4
