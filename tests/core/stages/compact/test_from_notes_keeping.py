"""Messages that stay word for word when notes replace history."""

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import Text, ToolUse
from longhold.core.messages.measure import Measure
from longhold.core.stages.compact.from_notes import Enough, find_kept_start, has_text, show_notes
from longhold.core.stages.notes.file import NotesPage, read_page
from longhold.core.stages.notes.notes import last_whole
from longhold.core.stages.notes.update import SECTION_TOKENS
from longhold.core.view.items import Round, Spoken

ENOUGH = Enough(tokens=10_000, messages=5, most_tokens=40_000)


def said(n, tokens=1_000, kind="said"):
    content = (Text(text="words"),)
    return Spoken(id=n, order=n, content=content, kind=kind, measure=Measure(spaced=tokens))


def called(n, tokens=1_000):
    use = ToolUse(id=f"t{n}", name="Read", input={})
    return Round(
        id=n, order=n, response_id=f"r{n}", content=(use,), answer_measure=Measure(spaced=tokens)
    )


def weigh(measure):
    return measure.spaced


def kept(items, start):
    return find_kept_start(items, start, weigh, ENOUGH)


def test_what_the_notes_do_not_cover_is_kept_if_it_is_enough():
    items = [said(n, 2_000) for n in range(30)]
    assert kept(items, 20) == 20


def test_it_is_moved_back_until_there_are_enough_tokens():
    items = [said(n) for n in range(30)]
    assert kept(items, 30) == 20


def test_it_is_moved_back_until_there_are_enough_messages_with_text():
    items = [*(said(n) for n in range(10)), *(called(n, 5_000) for n in range(10, 13))]
    assert kept(items, 13) == 5


def test_the_upper_limit_ends_the_moving_back():
    items = [called(n, 20_000) for n in range(10)]
    assert kept(items, 10) == 8


def test_the_upper_limit_does_not_cut_what_follows_the_notes():
    items = [said(n, 20_000) for n in range(10)]
    assert kept(items, 2) == 2


def test_it_never_goes_back_past_a_boundary():
    items = [said(0, kind="summary"), said(1, kind="restored"), *(said(n) for n in range(2, 6))]
    assert kept(items, 6) == 2
    assert kept(items, 0) == 2


def test_what_the_last_compaction_kept_is_not_covered_before_the_notes_cover_it():
    items = [said(0, kind="summary"), said(1), said(2), said(3, kind="restored"), said(4)]
    assert kept(items, 2) == 2
    assert kept(items, 1) == 1


@given(
    sizes=st.lists(st.integers(0, 15_000), max_size=30),
    start=st.integers(0, 30),
)
def test_moving_back_stops_as_soon_as_it_is_enough(sizes, start):
    items = [said(n, size) for n, size in enumerate(sizes)]
    start = min(start, len(items))
    first = kept(items, start)
    assert first <= start
    if first < start:
        left = items[first + 1 :]
        tokens, texts = sum(weigh(i.measure) for i in left), sum(map(has_text, left))
        assert tokens < ENOUGH.most_tokens and (tokens < ENOUGH.tokens or texts < ENOUGH.messages)


def test_an_open_round_is_not_covered():
    assert last_whole([said(1), called(2)]).id == 1
    assert last_whole([]) is None


def test_a_long_section_is_cut_and_says_where_all_of_it_is():
    page = read_page("## Title\n_About._\n\n## Task\n_What._\n", NotesPage()).with_written(
        {"Task": "One two three. " * 1_000}
    )
    text = show_notes(page, "/s/notes.md")
    assert text.endswith("[Cut here; all of it is in /s/notes.md]")
    assert len(text) < 4 * SECTION_TOKENS + 200
    assert "## Title" not in text
