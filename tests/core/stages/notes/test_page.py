"""A page of notes parses to what was written, whoever wrote it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.stages.notes.file import (
    NotesPage,
    NotesSection,
    merge_texts,
    read_page,
)

TEMPLATE = read_page("## Title\n_What it is about._\n\n## Worklog\n_What was done._\n", NotesPage())


def page(**written):
    return TEMPLATE.with_written(written)


def reread(one):
    return read_page(one.render(), TEMPLATE)


def test_a_template_has_sections_with_their_fixed_lines():
    assert TEMPLATE.sections == (
        NotesSection(heading="Title", description="_What it is about._"),
        NotesSection(heading="Worklog", description="_What was done._"),
    )
    assert not any(TEMPLATE.get_texts().values())


def test_what_was_written_is_read_back():
    one = page(Title="Fix the login").with_logs({"Worklog": "- T1: fixed"})
    assert reread(one) == one


def test_the_engines_lines_are_replaced_and_a_persons_are_not():
    first = page(Worklog="Mine.").with_logs({"Worklog": "- old"})
    again = reread(first).with_logs({"Worklog": "- new"})
    assert (again.section("Worklog").text, again.section("Worklog").log) == ("Mine.", "- new")


def test_an_edit_between_the_engines_lines_is_kept():
    shown = page().with_logs({"Worklog": "- T1: fixed\n- T2: tested"}).render()
    edited = read_page(shown.replace("- T2", "- remember the cookie!\n- T2"), TEMPLATE)
    assert any(edited.get_texts().values())
    again = edited.with_logs({"Worklog": "- T1: fixed\n- T2: tested\n- T3: done"})
    assert again.section("Worklog").text == "- remember the cookie!"
    assert reread(again) == again


def test_an_edit_is_seen_again_before_the_engine_writes():
    shown = page().with_logs({"Worklog": "- T1: fixed"}).render().replace("fixed", "broken")
    edited = read_page(shown, TEMPLATE)
    assert reread(edited).section("Worklog").get_text() == "- T1: broken"


def test_an_edit_that_was_taken_up_stands_there_once():
    shown = page().with_logs({"Worklog": "- T1: fixed"}).render()
    edited = read_page(shown.replace("- T1", "- mind the reef\n- T1"), TEMPLATE)
    rewritten = edited.with_written({"Worklog": "- mind the reef\nSailing."})
    assert rewritten.with_logs({"Worklog": "- T1: fixed"}).render().count("reef") == 1


def test_what_the_engine_said_before_is_not_taken_for_an_edit():
    shown = page().with_logs({"Worklog": "- make test, once"}).render()
    edited = read_page(shown.replace("- make", "- mind the reef\n- make"), TEMPLATE)
    now, before = {"Worklog": "- make test, twice"}, {"Worklog": "- make test, once"}
    assert edited.with_logs(now, before).section("Worklog").text == "- mind the reef"


def test_a_comment_that_was_cut_off_loses_nothing():
    shown = page().with_logs({"Worklog": "- T1: fixed"}).render().replace("<!-- to here -->", "x")
    assert "x" in read_page(shown, TEMPLATE).section("Worklog").get_text()


def test_the_engines_part_stands_there_once():
    shown = page().with_logs({"Worklog": "- T1: fixed"}).render()
    part = shown[shown.index("<!--") :]
    again = read_page(f"{shown}\n{part}", TEMPLATE).with_logs({"Worklog": "- T2: tested"})
    assert again.render().count("<!-- from the log") == 1 and "T1" not in again.render()


def test_sections_of_ones_own_stay_where_they_are():
    shown = "Dear reader\n\n## Title\n_What it is about._\n\nLogin\n\n## Mine\nA thing\n"
    one = read_page(shown, TEMPLATE)
    assert one.lead == "Dear reader"
    assert [each.heading for each in one.sections] == ["Title", "Mine", "Worklog"]
    assert one.section("Mine").text == "A thing"


def test_a_section_that_was_deleted_comes_back_empty_in_its_place():
    one = read_page("## Worklog\nDone.\n", TEMPLATE)
    assert [each.heading for each in one.sections] == ["Title", "Worklog"]
    assert one.section("Title").text == ""


def test_a_description_that_was_changed_is_put_back_and_the_words_are_kept():
    one = read_page("## Title\n_Something else._\nLogin\n", TEMPLATE)
    assert one.section("Title").description == "_What it is about._"
    assert one.section("Title").text == "_Something else._\nLogin"


def test_what_is_quoted_from_the_log_cannot_pass_for_the_page():
    forged = "- said: \n## Title\nForged <!-- to here -->"
    one = reread(page(Title="Real").with_logs({"Worklog": forged}))
    assert one.section("Title").text == "Real"
    assert len(one.sections) == 2


LINES = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=60)


@given(title=LINES, work=LINES, log=LINES)
def test_writing_and_reading_settle_at_once(title, work, log):
    once = reread(page(Title=title, Worklog=work).with_logs({"Worklog": log}))
    assert reread(once).render() == once.render()


def test_an_empty_file_is_the_template():
    assert read_page("", TEMPLATE).sections == TEMPLATE.sections
    assert read_page("", NotesPage()).sections == ()


LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=4).map("\n".join)


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "both"),
    [
        ("a", "b", "a", "b"),
        ("a", "a", "c", "c"),
        ("a", "b", "b", "b"),
        ("a", "a\nb", "a\nc", "a\nc\nb"),
        ("a", "b", "", "b"),
    ],
)
def test_who_changed_a_section_has_it(base, mine, theirs, both):
    assert merge_texts({"x": base}, {"x": mine}, {"x": theirs}) == {"x": both}


def test_sections_that_only_one_of_them_has_stay():
    assert merge_texts({}, {"a": "1"}, {"b": "2"}) == {"a": "1", "b": "2"}


@given(base=LINES, mine=LINES, theirs=LINES)
def test_no_line_that_a_person_wrote_is_lost(base, mine, theirs):
    both = merge_texts({"x": base}, {"x": mine}, {"x": theirs})["x"]
    if theirs != base:
        assert set(theirs.splitlines()) <= set(both.splitlines())
