"""Regret: a source counts once, and only while nothing in the view shows what was named."""

import pytest

from holdfast.log.entries import Cleared, Compacted, Ran, Replied, Said
from holdfast.messages import Text, ToolUse
from holdfast.simulator.replay.recorded_session import RecordedSession
from holdfast.simulator.replay.regret import Regrets
from holdfast.view import View

SECRET = "parse_invoice_header"


@pytest.fixture
def followed():
    """A view and what follows it; entries are played into both."""
    view, recording = View(), RecordedSession("made", [])
    regrets = Regrets(recording, lambda: view, lambda n: n)

    def play(entry):
        view.apply(entry)
        return [source.n for source in regrets.follow(entry)]

    return play


def asked(n, id, text="Looking."):
    use = ToolUse(id=id, name="Grep", input={"pattern": "header"})
    return Replied(n=n, response_id=f"r{n}", content=(Text(text=text), use))


def played_to_the_result(play):
    play(Said(n=1, content=(Text(text="Find the bug."),)))
    play(asked(2, "t1"))
    play(Ran(n=3, tool_use_id="t1", content=f"shop/invoices.py: def {SECRET}(raw):"))


def test_what_is_still_shown_is_not_regretted(followed):
    played_to_the_result(followed)
    assert followed(asked(4, "t2", f"`{SECRET}` is it.")) == []


def test_a_name_whose_only_source_was_cleared_is_regretted_once(followed):
    played_to_the_result(followed)
    followed(Cleared(n=4, ids=("t1",), texts=("[cleared]",)))
    assert followed(asked(5, "t2", f"`{SECRET}` is it.")) == [3]
    assert followed(asked(6, "t3", f"Again `{SECRET}`.")) == []


def test_a_summary_that_has_the_name_saves_it(followed):
    played_to_the_result(followed)
    text = (Text(text=f"The bug is in {SECRET}."),)
    followed(Compacted(n=4, first=1, last=3, summary=text))
    assert followed(asked(5, "t2", f"`{SECRET}` is it.")) == []


def test_a_summary_without_the_name_does_not(followed):
    played_to_the_result(followed)
    followed(Compacted(n=4, first=1, last=3, summary=(Text(text="Work was done."),)))
    assert followed(asked(5, "t2", f"`{SECRET}` is it.")) == [3]
