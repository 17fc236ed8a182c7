"""Which sentences of an answer or a thought are kept if not all fit."""

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.stages.facts.gist import gist, question, remark


def test_a_short_answer_is_its_own_gist():
    assert gist("Done. All 12 tests pass.", 100) == "Done. All 12 tests pass."


def test_the_sentence_that_names_the_cause_is_kept_before_others():
    answer = (
        "I looked at several places in the code before this became clear. "
        "The cause was a lock that is taken twice. "
        "There are other things worth a look at some point in the future."
    )
    assert gist(answer, 50) == "… The cause was a lock that is taken twice. …"


def test_what_a_cause_is_told_by_comes_with_it():
    answer = (
        "A long walk through all the files that might have been meant by the report.\n"
        "The issue is:\n1. We walk by date\n2. We stop at the first one\n\n"
        "There is more to be said about dates in general, and about walks as well."
    )
    assert gist(answer, 70) == "… The issue is: We walk by date We stop at the first one …"


def test_the_question_at_the_end_is_always_kept():
    answer = "It is done. " + "There were many details on the way. " * 10 + "Keep 50 or go to 20?"
    assert gist(answer, 120).endswith("… Keep 50 or go to 20?")


def test_headings_and_announcements_are_not_worth_room():
    answer = "## Summary\n\nLet me sum up.\n\n" + "The parser reads utf8.py now. " * 20
    assert gist(answer, 60) == "… The parser reads utf8.py now. The parser reads utf8.py now. …"


def test_a_question_in_the_middle_is_not_what_was_asked():
    assert question("Why? Because of the cache. It is filled late. It is read early. Fixed.") == ""
    assert question("Fixed. Want me to push it? It would go to main.") == "Want me to push it?"


def test_a_remark_prefers_what_was_found():
    said = "The file is long. It has tests. The problem is that the key has a date in it."
    assert remark(said, 200) == "The problem is that the key has a date in it."


@given(st.text(max_size=600), st.integers(min_value=40, max_value=400))
def test_a_gist_is_never_much_longer_than_its_room(text, chars):
    assert len(gist(text, chars)) <= chars * 2


def test_a_finding_after_a_cheer_is_no_announcement():
    found = "I see the issue - `.entire` files count as user changes because nothing ignores them."
    assert remark(f"{found} Let me fix that.", 200) == found
    assert remark("I see the test file. Let me read it.", 200) == ""


def test_code_stays_where_all_of_a_text_fits():
    text = "Fixed the comment:\n```go\nAgentLines int // added by agent\n```"
    assert "added by agent" in gist(text, 200)
    assert "added by agent" not in gist(text + " And more of it." * 20, 60)


def test_the_rows_of_a_table_have_no_borders():
    assert gist("| file | lines |\n|---|---|\n| a.py | 76 |", 200) == "file | lines a.py | 76"


def test_a_sentence_that_is_shown_elsewhere_is_left_out():
    said = "The bug is in `parse`."
    text = f"{said} It reads `limit` before `open_all` ran."
    assert said in gist(text, 40)
    assert said not in gist(text, 60, known=frozenset({said}))
