"""Headings of a summary, and lists that look like headings."""

import re

import pytest

from longhold.core.stages.compact.digest.headings import judgement, parts, shorten_sections


def named(number, title):
    return title.lower() if (number, title) in ((1, "Intent"), (8, "Work"), (3, "Files")) else ""


def numbers(text):
    return [part.number for part in parts(text, named)[1]]


def test_words_make_a_heading_without_any_mark():
    assert numbers("1. Intent\nx\n8) Work:\ny") == [1, 8]


def test_a_mark_makes_a_heading_if_its_number_rises():
    assert numbers("## 1. Intent\nx\n**2. Ideas**\ny\n**2. More**\n## 8. Work\nz") == [1, 2, 8]


def test_a_marked_line_does_not_take_the_place_of_the_named_section():
    assert numbers("## 1. Intent\n**8. be quick**\n## 8. Work\nz") == [1, 8]


def test_a_named_and_marked_heading_may_come_in_any_order():
    assert numbers("## 8. Work\nx\n## 3. Files\ny") == [8, 3]


def test_what_stands_before_the_first_heading_goes_out_by_itself():
    lead, (part,) = parts("Hello.\n1. Intent\nx", named)
    assert (lead, part.text, part.whole) == ("Hello.", "x", "1. Intent\nx")


FOREIGN = """This session is being continued from a previous conversation. It ran out.

Analysis:
scratch of no use

Summary:
1. Primary Request and Intent:
   - build it

5. Problem Solving:
   - the cause was a race

6. All user messages:
   - "build it"

8. Current Work:
   testing

9. Optional Next Step:
   redo everything

Please continue the conversation from where we left it off."""

OURS = """The earlier part was compacted.

What the user said, word for word.
T1 [#1]: build it

## 1. Request and intent
Build it.

## 5. Problem solving
The cause was a race.

## 3. Files and code
- a.py: edited

## 8. Latest work, from the log
- edited a.py

Names in use lately that are not above:
- names: a_b"""


def test_the_judgement_of_a_foreign_summary_is_kept():
    assert judgement(FOREIGN) == (
        "1. Primary Request and Intent:\n   - build it\n5. Problem Solving:\n   - the cause was a race"
    )


def test_the_judgement_of_our_own_summary_is_kept():
    assert judgement(OURS) == (
        "## 1. Request and intent\nBuild it.\n## 5. Problem solving\nThe cause was a race."
    )


def test_a_summary_without_sections_is_carried_whole():
    assert judgement("We built a bridge. It holds.") == "We built a bridge. It holds."


def test_each_section_gets_its_share_of_the_room():
    text = "## 1. One\n" + "Long. " * 200 + "\n## 2. Two\nShort."
    assert shorten_sections(text, 120).splitlines()[-2:] == ["## 2. Two", "Short."]


LISTS = """Summary:
1. Primary Request and Intent:
   build it

6. All user messages:
   1. "make it red"
   2. "no, blue"
1. "paint the door"
7. "then ship it"

7. Pending Tasks:
1. paint the fence
2. oil the gate

8. Current Work:
   1. sanding

9. Optional Next Step:
1. call the painter"""


@pytest.mark.parametrize("mark", ["", "## ", "**"])
def test_a_list_in_a_past_section_does_not_come_back(mark):
    text = re.sub(
        r"^(\d\. (?:Pri|All|Pend|Cur|Opt).*)$",
        lambda line: mark + line[1] + "**" * (mark == "**"),
        LISTS,
        flags=re.MULTILINE,
    )
    told = judgement(text)
    assert "build it" in told
    assert not [
        word
        for word in ("blue", "door", "ship", "fence", "gate", "sanding", "painter")
        if word in told
    ]


def test_a_summary_of_the_past_alone_leaves_nothing():
    assert judgement("## 8. Current work\npainting\n## 9. Next step\n1. dry it") == ""
