"""The request for a summary, and which answers count as one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.stages.compact.directives import Directive
from longhold.core.stages.compact.summary import HEADINGS, Written, ask_for_summary, read_summary

SECTIONS = "\n".join(f"## {n}. {title}\ntext of {n}" for n, title in HEADINGS.items())


def test_seven_sections_are_asked_for_and_two_are_the_engines():
    asked = ask_for_summary()
    assert all(f"## {n}. {title}" in asked for n, title in HEADINGS.items())
    assert "## 3." not in asked
    assert "## 6." not in asked
    assert "{" not in asked


def test_the_users_wish_comes_first_then_what_hooks_add():
    asked = ask_for_summary(focus=("the cookie", "", "the weather"))
    assert asked.index("the cookie\n\nthe weather") > 0
    assert "dwell on" not in ask_for_summary(focus=("", " "))


def test_partial_summaries_say_where_they_begin_and_what_follows():
    assert 'begins with "fix the login"' in ask_for_summary("from", pivot="fix\nthe login")
    assert "messages that follow" in ask_for_summary("up_to")


def test_open_messages_are_listed_so_that_their_state_can_be_told():
    said = [
        Directive(message=3, turn=1, text="use tabs"),
        Directive(message=9, turn=2, text="no, spaces", state="done"),
    ]
    asked = ask_for_summary(directives=said)
    assert "#3: use tabs" in asked
    assert "no, spaces" not in asked


def sections_of(found):
    """Take the text of a summary apart again, by the headings it was given."""
    parts = re.split(r"^## (\d)\. (.+)\n", found.text, flags=re.MULTILINE)
    assert parts[0] == ""
    told = {int(n): text.rstrip("\n") for n, text in zip(parts[1::3], parts[3::3], strict=True)}
    assert parts[2::3] == [HEADINGS[n] for n in told]
    return told


def test_an_answer_is_taken_apart():
    text = f"<analysis>1. a draft</analysis>\n<summary>\n{SECTIONS}\n</summary>\n<states>#3 done, see #9</states>"
    found = read_summary(text, "end_turn")
    assert isinstance(found, Written)
    assert sections_of(found) == {n: f"text of {n}" for n in HEADINGS}
    assert found.states == "#3 done, see #9"
    assert "a draft" not in found.text


@pytest.mark.parametrize(
    "text",
    [
        SECTIONS,
        SECTIONS.replace("## ", "### "),
        SECTIONS.replace("## ", "").replace(". ", ") "),
        f"<summary>{SECTIONS}",
        f"Here you are.\n<SUMMARY>\n{SECTIONS}\n</SUMMARY>",
        "\n".join(f"**{n}. {title}:**\ntext of {n}" for n, title in HEADINGS.items()),
    ],
    ids=["bare", "deeper", "plain", "unclosed", "wrapped", "bold"],
)
def test_models_write_headings_in_their_own_manner(text):
    found = read_summary(text, "end_turn")
    assert isinstance(found, Written)
    assert sections_of(found).keys() == HEADINGS.keys()


def test_a_numbered_list_in_a_section_is_no_heading():
    text = SECTIONS.replace("text of 7", "1. test it\n2. ship it\n8. Celebrate")
    found = read_summary(text, "end_turn")
    assert isinstance(found, Written)
    assert sections_of(found)[7] == "1. test it\n2. ship it\n8. Celebrate"
    assert sections_of(found)[8] == "text of 8"


@pytest.mark.parametrize(
    ("text", "stop", "fault"),
    [
        (SECTIONS, "max_tokens", "cut_off"),
        (SECTIONS, "model_context_window_exceeded", "cut_off"),
        ("no", "refusal", "refused"),
        (SECTIONS, "tool_use", "tool_call"),
        ("  \n", "end_turn", "empty"),
        ("I am sorry.", "end_turn", "sections"),
        ("API Error: 500", "end_turn", "sections"),
        ("<analysis>only a draft", "end_turn", "sections"),
        ("## 1. Request and intent\nx\n## 8. Current work\ny", "end_turn", "sections"),
        (SECTIONS.replace("## 8. Current work\ntext of 8", ""), "end_turn", "sections"),
    ],
)
def test_what_is_no_summary_is_told_apart(text, stop, fault):
    assert read_summary(text, stop) == fault


@given(st.text(max_size=400), st.sampled_from(["end_turn", "max_tokens", "", "stop_sequence"]))
def test_no_text_breaks_the_reading(text, stop):
    assert isinstance(read_summary(text, stop), Written | str)


@given(st.permutations([*HEADINGS]).map(lambda order: order[:6]))
def test_sections_out_of_order_are_never_mixed_up(order):
    text = "\n".join(f"## {n}. {HEADINGS[n]}\ntext of {n}" for n in order)
    found = read_summary(text, "end_turn")
    if isinstance(found, Written):
        assert all(told == f"text of {n}" for n, told in sections_of(found).items())
