"""Fitting what could be told into a budget."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.stages.compact.digest.pieces import DigestPiece, fit


def piece(section, place, forms, ranks):
    """Make a piece."""
    return DigestPiece(section=section, place=(place,), forms=forms, ranks=ranks)


def test_short_forms_of_all_come_before_the_full_form_of_any():
    """Ranks decide across pieces, not their order."""
    pieces = [piece(1, 0, ("a", "a" * 50), (1, 3)), piece(1, 1, ("b", "b" * 50), (2, 4))]
    assert fit(pieces, 10, len) == {1: "a\nb"}


def test_pieces_stand_in_their_places_whatever_their_rank():
    """What was bought last may stand first."""
    pieces = [piece(2, 5, ("late",), (1,)), piece(2, 1, ("early",), (9,))]
    assert fit(pieces, 100, len) == {2: "early\nlate"}


def test_what_does_not_fit_does_not_stop_the_rest():
    """A dear piece is passed over for a cheaper one after it."""
    pieces = [piece(1, 0, ("x" * 100,), (1,)), piece(1, 1, ("y",), (2,))]
    assert fit(pieces, 10, len) == {1: "y"}


@given(
    st.lists(st.tuples(st.integers(1, 9), st.text(max_size=30), st.text(max_size=90)), max_size=30),
    st.integers(0, 400),
)
def test_a_budget_is_never_exceeded(drawn, budget):
    """Whatever there is to tell, it costs no more than allowed."""
    pieces = [
        piece(section, i, (short, short + long), (i % 4, i % 7))
        for i, (section, short, long) in enumerate(drawn)
    ]
    sections = fit(pieces, budget, len)
    assert sum(len(text) + 1 for text in sections.values()) <= budget
