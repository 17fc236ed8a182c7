"""Regret: a source counts once, and only if nothing in the view shows what was named."""

import pytest

from longhold.core.log.entries import Cleared, Compacted, Ran, Replied, Restored, Said, Spilled
from longhold.core.messages import Text, ToolUse
from longhold.core.view import View
from longhold.insight.replay.recorded_session import RecordedSession
from longhold.insight.replay.regret import Regrets

SECRET = "parse_invoice_header"


@pytest.fixture
def followed():
    """A view and what follows it; entries are played into both."""
    view, recording = View(), RecordedSession("made", [])
    regrets = Regrets(recording, lambda: view, lambda n: n)

    def play(entry):
        view.apply(entry)
        regrets.see(entry)
        return [source.n for source in regrets.follow(entry)]

    play.offer = regrets.offer
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


PATH = "/home/ann/shop/billing/invoices/totals.py"


def test_a_path_is_known_by_its_end(followed):
    followed(Said(n=1, content=(Text(text="Find the bug."),)))
    followed(asked(2, "t1"))
    followed(Ran(n=3, tool_use_id="t1", content=f"{PATH}:3: total"))
    text = (Text(text="The bug is in billing/invoices/totals.py."),)
    followed(Compacted(n=4, first=1, last=3, summary=text))
    assert followed(asked(5, "t2", f"`{PATH}` is it.")) == []


def read(n, id, text, **given):
    use = ToolUse(id=id, name="Read", input={"file_path": PATH, **given})
    return [
        Replied(n=n, response_id=f"r{n}", content=(use,)),
        Ran(n=n + 1, tool_use_id=id, content=text),
    ]


def edit(n):
    use = ToolUse(id=f"e{n}", name="Edit", input={"file_path": PATH, "old_string": "total = 1"})
    return [
        Replied(n=n, response_id=f"r{n}", content=(use,)),
        Ran(n=n + 1, tool_use_id=f"e{n}", content="done"),
    ]


def test_a_result_shown_as_the_same_as_another_is_missed_only_with_that(followed):
    entries = [
        Said(n=1, content=(Text(text="Fix it."),)),
        *read(2, "t1", "total = 1"),
        *read(4, "t2", "total = 1"),
        Spilled(n=6, tool_use_id="t2", text="[The same as t1.]", same_as="t1"),
    ]
    assert [n for entry in (*entries, *edit(7)) for n in followed(entry)] == []
    followed(Cleared(n=9, ids=("t1",), texts=("[cleared]",)))
    assert [n for entry in edit(10) for n in followed(entry)] == [5]


def test_a_file_that_a_compaction_offered_is_missed_unless_it_was_brought_back(followed):
    said = Said(n=1, content=(Text(text="Fix it."),))
    for entry in (said, *read(2, "t1", "total = 1")):
        followed(entry)
    (text,) = followed.offer(5, 1_000)
    summary = (Text(text="Work was done."),)
    followed(Compacted(n=4, first=1, last=3, summary=summary))
    followed(Restored(n=5, compaction=4, content=(Text(text=text),)))
    assert [n for entry in edit(6) for n in followed(entry)] == []
    assert followed.offer(5, 1_000)
    followed(Compacted(n=8, first=1, last=7, summary=summary))
    assert 3 in [n for entry in edit(9) for n in followed(entry)]
