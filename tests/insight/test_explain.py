"""A session described turn by turn."""

import itertools
from datetime import UTC, datetime

import pytest

from generated_sessions import generate
from longhold.core.log.entries import (
    CacheBroke,
    Cleared,
    Compacted,
    Dreamt,
    Dropped,
    Failed,
    Forked,
    Pinned,
    Recalled,
    Remembered,
    Replied,
    Said,
    Snipped,
    Swept,
    Switched,
    Undone,
)
from longhold.core.log.entry_lines import describe_entry
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.messages.measure import measure_content
from longhold.insight.cost import bill
from longhold.insight.explain import explain
from longhold.insight.transcripts.formats import read_lines


def said(n, text="word " * 500):
    content = (Text(text=text),)
    return Said(n=n, content=content, measure=measure_content(content))


def replied(n, id, *blocks, read=0):
    usage = Usage(input_tokens=100, cache_read_tokens=read, output_tokens=10)
    return Replied(n=n, response_id=id, model="claude-opus-4-6", content=blocks, usage=usage)


def test_a_turn_runs_from_one_thing_said_to_the_next():
    use = ToolUse(id="t", name="Read", input={})
    turns = explain(
        [said(1, "first"), replied(2, "a", use), replied(3, "b", read=900), said(4, "second")]
    )
    assert [turn.said for turn in turns] == ["first", "second"]
    assert turns[0].answers == 2
    assert turns[0].calls == {"Read": 1}
    assert turns[0].spent.cache_read_tokens == 900


def test_turns_have_the_numbers_that_summaries_give_them():
    turns = explain([Switched(n=1, model="x"), said(2, "first"), said(3, "second")])
    assert [(turn.number, turn.said) for turn in turns] == [(0, ""), (1, "first"), (2, "second")]
    assert [turn.number for turn in explain([said(1, "first")])] == [1]


def test_pieces_of_one_answer_are_paid_for_once():
    [turn] = explain([said(1), replied(2, "a"), replied(3, "a"), replied(4, "a")])
    assert turn.answers == 1
    assert turn.spent.input_tokens == 100


def test_every_act_is_told_with_what_it_saved():
    summary = (Text(text="short"),)
    cut = Compacted(n=3, first=1, last=2, summary=summary, measure=measure_content(summary))
    turns = explain(
        [
            said(1),
            said(2),
            cut,
            Undone(n=4, target=3),
            Switched(n=5, model="x"),
            Failed(n=6, what="api", error="529"),
        ]
    )
    acts = turns[-1].acts
    assert [act.kind for act in acts] == ["compacted", "undone", "switched", "failed"]
    assert acts[0].saved_tokens > 500
    assert acts[1].saved_tokens == -acts[0].saved_tokens


def test_what_a_snip_says_is_kept():
    turns = explain([said(1), said(2), Snipped(n=3, targets=(1,), why="the user went back")])
    assert turns[-1].acts[0].text == "1 message left the view: the user went back"


def test_the_whole_of_a_made_up_session_is_told():
    turns = explain(read_lines(generate(2, 200, compactions=1), "claude-code"))
    assert sum(turn.calls.total() for turn in turns) > 20
    assert all(a.tokens_after == b.tokens_before for a, b in itertools.pairwise(turns))
    assert any(act.kind == "compacted" for turn in turns for act in turn.acts)


def test_a_break_of_the_cache_is_an_act_of_its_turn():
    broke = CacheBroke(n=3, cause="tool", detail="tool X changed", lost_tokens=30_000, usd=0.12)
    told = CacheBroke(n=4, cause="compaction", detail="message 1 changed", expected="compacted")
    [turn] = explain([said(1), replied(2, "a"), broke, told])
    assert [(act.kind, act.text) for act in turn.acts] == [
        ("cachebroke", "30,000 tokens were not read from the cache ($0.1200): tool X changed"),
        (
            "cachebroke",
            "0 tokens were not read from the cache ($0.0000): message 1 changed (expected: compacted)",
        ),
    ]


def test_forks_are_told_and_paid_in_their_turn():
    usage = Usage(input_tokens=100, cache_read_tokens=900)
    fork = Forked(n=3, source="notes", model="claude-opus-4-6", usage=usage, stop_reason="aborted")
    [turn] = explain([said(1), replied(2, "a"), fork])
    assert (turn.answers, turn.spent.calls, turn.spent.cache_read_tokens) == (1, 2, 900)
    assert turn.acts[0].text == (
        "notes asked the model outside the conversation: 1,000 tokens, 90% from the cache (aborted)"
    )


def test_explain_and_cost_give_the_same_dollars():
    day = datetime(2026, 3, 1, tzinfo=UTC).timestamp()  # long prompts cost double until 2026-03-13
    long = Usage(input_tokens=250_000, cache_write_tokens=9, cache_write_1h_tokens=9)
    answers = [
        Replied(n=n, at=day, response_id=id, model="claude-opus-4-6", content=(), usage=long)
        for n, id in [(2, "a"), (3, "a"), (5, "b"), (6, "a")]
    ]
    fork = Forked(n=7, at=day, source="notes", model="claude-opus-4-6", usage=long)
    history = [said(1), *answers[:2], said(4), *answers[2:], fork]
    told, paid = explain(history), bill(history)
    assert sum(turn.spent.usd for turn in told) == pytest.approx(paid.total.tally.usd)
    assert told[1].spent.usd == 2 * told[0].spent.usd > 5


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (
            Cleared(ids=("a",), texts=("",), why="cleared 1 old result, about 9 tokens"),
            "cleared 1 old result, about 9 tokens",
        ),
        (Cleared(ids=("a", "b"), texts=("", ""), how="edited"), "2 results cleared (edited)"),
        (Snipped(targets=(4,), why="the user dropped it"), "1 message left the view: the user"),
        (Pinned(targets=(4, 5)), "2 messages pinned"),
        (Swept(files=("a",), bytes=1_200, why="too old"), "1 file of 1,200 bytes removed, too old"),
    ],
)
def test_a_line_says_it_once(entry, line):
    assert describe_entry(entry).startswith(line)


def test_what_happened_to_memories_is_one_line_each():
    [turn] = explain(
        [
            said(1, "hello"),
            Recalled(n=2, names=("a.md", "b.md"), said=1),
            Remembered(n=3, cursor=1, names=("c.md",)),
            Remembered(n=4, cursor=1, names=("d.md",), by="agent", inbox=True),
            Remembered(n=5, cursor=1),
            Dreamt(n=6, commit="7", by="model", why="2 merged"),
            Dreamt(n=7),
            Dropped(n=8, targets=(1,)),
            Failed(n=9, what="dream", error="it was stopped by the user"),
        ]
    )
    assert [f"{act.kind}: {act.text}" for act in turn.acts] == [
        "recalled: shown to the model in message 1: a.md, b.md",
        "remembered: c.md (written by a background job)",
        "remembered: d.md (waits for your consent)",
        "remembered: nothing new up to message 1",
        "dreamt: memories were tidied by a model: 2 merged (undo: longhold memory undo 7)",
        "dreamt: memories were tidied without a model: no change",
        "dropped: 1 message marked to leave the view by the user",
        "failed: dream: it was stopped by the user",
    ]


def test_what_was_cleared_is_named():
    uses = [ToolUse(id=f"t{n}", name="Read", input={"file_path": f"{n}.py"}) for n in range(6)]
    two = Cleared(n=3, ids=("t0", "t1"), texts=("", ""), why="cleared 2 old results")
    all_six = Cleared(n=4, ids=tuple(use.id for use in uses), texts=("",) * 6)
    [turn] = explain([said(1), replied(2, "a", *uses), two, all_six])
    assert [act.text for act in turn.acts] == [
        "cleared 2 old results (Read 0.py, Read 1.py)",
        "6 results cleared (rewritten) (Read 0.py, Read 1.py, Read 2.py, Read 3.py and 2 more)",
    ]


def test_what_is_no_request_of_the_user_begins_no_turn():
    texts = (
        "fix it",
        "<command-name>/exit</command-name>\n<command-args></command-args>",
        "<bash-stdout>ok</bash-stdout>",
        "[Request interrupted by user]",
        "<system-reminder>be brief</system-reminder>and now this",
    )
    turns = explain(Said(n=n, content=(Text(text=text),)) for n, text in enumerate(texts, 1))
    assert [turn.said for turn in turns] == ["fix it", "and now this"]


def prompted(n: int, tokens: int) -> Replied:
    return Replied(
        n=n,
        response_id=f"r{n}",
        content=(),
        model="claude-opus-4-6",
        usage=Usage(input_tokens=tokens, output_tokens=1),
    )


def test_a_compaction_by_a_client_is_an_act():
    said = Said(n=1, content=(Text(text="go"),))
    cut = Compacted(n=3, first=1, last=2, summary=(Text(text="so far"),), by="import")
    (turn,) = explain([said, prompted(2, 104_500), cut, prompted(4, 74_400)])
    assert [act.kind for act in turn.acts] == ["compacted"]
    assert "by its client" in turn.acts[0].text


def test_a_failure_that_repeats_is_one_line():
    entries = [
        Said(n=1, content=(Text(text="go"),)),
        *(Failed(n=n, what="api", error="529 Overloaded") for n in range(2, 14)),
        Failed(n=14, what="api", error="500 Internal"),
    ]
    acts = explain(entries)[0].acts
    assert [(act.n, act.times, act.text) for act in acts] == [
        (2, 12, "api: 529 Overloaded"),
        (14, 1, "api: 500 Internal"),
    ]
