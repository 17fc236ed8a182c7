"""A trial compaction, which is then kept or discarded."""

import tempfile

from longhold.core.log import Header
from longhold.core.log.entries import Compacted, Forked, Ran, Replied, Said, add_measure
from longhold.core.log.stores import default_store
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.settings import Settings, home
from longhold.core.stages.compact.compose import Manner
from longhold.core.stages.compact.owner import CompactRequest
from longhold.session.scratch_session import (
    carry_over,
    draft_compaction,
    open_scratch,
    take,
)
from longhold.session.session import Session

BODY = "\n".join(f"value_{i} = compute(value_{i - 1}, {i})" for i in range(400))
MANUAL = CompactRequest(trigger="manual", by_model=False)


def history():
    use = ToolUse(id="t", name="Read", input={"file_path": "/p/a.py"})
    entries = [
        Said(n=1, content=(Text(text="Fix it"),)),
        Replied(n=2, response_id="a", model="claude-opus-4-6", content=(use,)),
        Ran(n=3, tool_use_id="t", content=BODY),
        Replied(n=4, response_id="b", content=(Text(text="done"),)),
    ]
    return [add_measure(entry) for entry in entries]


async def test_paper_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_scratch(history(), Settings()) as paper:
        await take(paper, await draft_compaction(paper, MANUAL, Manner()), MANUAL)
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []
    assert list(home().rglob("*")) == []


async def test_a_draft_points_at_the_original_and_never_at_the_paper():
    with open_scratch(history(), Settings()) as paper:
        log = str(paper._engine.log.path)
        pointed = await draft_compaction(paper, MANUAL, Manner(log="/their/session.jsonl"))
        bare = await draft_compaction(paper, MANUAL, Manner())
    assert "/their/session.jsonl" in pointed.composed.text
    assert log not in pointed.composed.text + bare.composed.text


async def test_a_draft_changes_nothing_until_it_is_taken():
    with open_scratch(history(), Settings()) as paper:
        before = paper.view.messages()
        await draft_compaction(paper, MANUAL, Manner())
        assert paper.view.messages() == before


async def test_what_a_draft_on_paper_cost_is_known_where_it_is_taken(tmp_path):
    default_store().add(Header(session="s1", directory=str(tmp_path)), history())
    usage = Usage(input_tokens=900, output_tokens=30)
    with (
        open_scratch(history(), Settings()) as paper,
        Session._over(default_store().open("s1"), Settings()) as session,
    ):
        draft = await draft_compaction(paper, MANUAL, Manner())
        paper._engine.record(Forked(source="compact", model="m", usage=usage))
        entry = await take(session, carry_over(paper, session, draft), MANUAL)
        kinds = [type(each) for each in session.view.history[-2:]]
    assert kinds == [Forked, Compacted]
    assert entry.usage is not None
    assert entry.usage.input_tokens == 900
