"""The order of passages: by rare words in and around them."""

from longhold.core.tools.history.question import PASSAGE_BITS, TermRows, rank


def rows(*numbers):
    return [n << PASSAGE_BITS for n in numbers]


def ranked(*terms, is_allowed=lambda n: True, step_of=lambda n: n):
    return [match.n for match in rank(terms, step_of, is_allowed)]


def test_the_rarer_word_counts_for_more():
    common, rare = TermRows(weight=1, rows=rows(1, 5, 9)), TermRows(weight=3, rows=rows(20))
    assert ranked(common, rare) == [20, 9, 5, 1]


def test_a_word_beside_a_passage_counts_for_some_of_it():
    asked, told = TermRows(weight=1, rows=rows(10)), TermRows(weight=1, rows=rows(11, 30))
    assert ranked(asked, told)[-1] == 30


def test_each_record_is_listed_with_its_best_passage():
    first = TermRows(weight=1, rows=[7 << PASSAGE_BITS, 7 << PASSAGE_BITS | 3])
    second = TermRows(weight=1, rows=[7 << PASSAGE_BITS | 3])
    [match] = rank([first, second], lambda n: n, lambda n: True)
    assert (match.n, match.passage) == (7, 3)


def test_only_what_is_allowed_is_ranked():
    assert ranked(TermRows(weight=1, rows=rows(1, 2, 3)), is_allowed=lambda n: n == 2) == [2]
