"""What is carried of a summary that came before."""

import re

import pytest

from holdfast.stages.compact.digest.prior_summary import carried, judgement

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
    """Scratch, wrapping, messages, current work and next step are past."""
    assert judgement(FOREIGN) == (
        "1. Primary Request and Intent:\n   - build it\n5. Problem Solving:\n   - the cause was a race"
    )


def test_the_judgement_of_our_own_summary_is_kept():
    """What the log tells is told afresh."""
    assert judgement(OURS) == (
        "## 1. Request and intent\nBuild it.\n## 5. Problem solving\nThe cause was a race."
    )


def test_a_summary_without_sections_is_carried_whole():
    """Nobody's words are lost because they have no headings."""
    assert judgement("We built a bridge. It holds.") == "We built a bridge. It holds."


def test_each_section_gets_its_share_of_the_room():
    """A long section does not push out the next."""
    text = "## 1. One\n" + "Long. " * 200 + "\n## 2. Two\nShort."
    assert carried(text, 120).splitlines()[-2:] == ["## 2. Two", "Short."]


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
    """Old messages, pending tasks and next steps are told afresh, numbered or not."""
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
    """What is told afresh is not carried for want of anything else."""
    assert judgement("## 8. Current work\npainting\n## 9. Next step\n1. dry it") == ""
