"""The tables of a page: correct figures, safe texts, limited size."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import longhold
from generated_sessions import write, write_large
from longhold.core.log.entries import (
    Cleared,
    Compacted,
    Dreamt,
    Ended,
    Noted,
    Ran,
    Recalled,
    Remembered,
    Replied,
    Said,
    Spawned,
    Undone,
    add_measure,
)
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.settings import PageSettings
from longhold.core.view.window import window_for
from longhold.insight.pages.html import render, row_of
from longhold.insight.pages.session_data import session_data
from longhold.insight.pages.tables import changes, fair_limit, length, sanitise
from longhold.insight.transcripts.formats import open_transcript

GOLDEN = Path(__file__).parents[2] / "golden" / "page_data.json"
MODEL = "claude-opus-4-5-20251101"
KEY = "ghp_" + "a8F3kL9qW2xZ7vB4nM6tY1cR5dE0gH" + "3jK8pQ"


def read(history, settings=None):
    return session_data(
        history,
        id="s1",
        name="s1",
        format="test",
        window=window_for(MODEL),
        settings=settings or PageSettings(),
    )


def entries_of(path):
    with open_transcript(path) as transcript:
        return list(transcript.entries)


def said(n, text, **more):
    return Said(n=n, at=float(n), content=(Text(text=text),), **more)


def replied(n, *content, prompt=1_000):
    usage = Usage(input_tokens=prompt, output_tokens=10)
    return Replied(n=n, at=float(n), response_id=f"r{n}", content=content, model=MODEL, usage=usage)


def rows(table):
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def test_agents_memory_and_notes_are_among_the_changes():
    history = [
        said(1, "Deploys go out on Tuesdays."),
        Spawned(n=2, at=2.0, agent="a1", kind="explore", task="Find the login."),
        Ended(n=3, at=12.0, agent="a1", state="completed", text="It is in login.py."),
        Noted(n=4, at=13.0, cursor=1, tokens=300),
        Remembered(n=5, at=14.0, cursor=1, names=("deploys.md",)),
        Recalled(n=6, at=15.0, names=("deploys.md",)),
        Dreamt(n=7, at=16.0, merged=1, names=("deploys.md",)),
    ]
    found = rows(read(history).tables["changes"])
    kinds = ["spawned", "ended", "noted", "remembered", "recalled", "dreamt"]
    assert [row["kind"] for row in found] == kinds
    assert "Find the login." in found[0]["text"]
    assert all("deploys.md" in row["text"] for row in found[3:5])


def test_the_data_of_a_page_is_the_golden_one(tmp_path):
    path = tmp_path / "made-up.jsonl"
    write(path, 3, 14, compactions=1)
    data = json.loads(read(entries_of(path)[:-1]).encode())
    for name, table in data["tables"].items():
        for field, values in table.items():
            if field.endswith("usd"):
                table[field] = ["…" for _ in values]
            if name == "messages" and field == "text":
                table[field] = [text[:60] for text in values]
    data["totals"] = {k: v for k, v in data["totals"].items() if not k.endswith("usd")}
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("LONGHOLD_REWRITE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_the_parts_of_every_prompt_add_up_to_what_the_provider_counted(tmp_path):
    path = tmp_path / "made-up.jsonl"
    write(path, 4, 120, compactions=2)
    data = read(entries_of(path))
    for row in rows(data.tables["context"]):
        parts = [row[name] for name in data.categories]
        assert min(parts) >= 0
        assert abs(sum(parts) - row["tokens"]) <= len(parts)


def test_the_calls_of_a_page_are_those_of_the_cache_command(tmp_path):
    path = tmp_path / "made-up.jsonl"
    write(path, 5, 100)
    found = json.loads(longhold("cache", path, "--json").stdout)
    table = read(entries_of(path)).tables["calls"]
    for name in ("n", "read_tokens", "written_tokens", "uncached_tokens", "cause"):
        assert table[name] == [call[name] for call in found["calls"]]
    assert sum(table["usd"]) == pytest.approx(found["total"]["usd"], abs=1e-3)


def test_a_compaction_says_what_survived_it():
    read_file = ToolUse(id="t1", name="Read", input={"file_path": "/src/login.py"})
    history = [
        said(1, "Fix parse_cookie, and never touch auth_legacy."),
        replied(2, read_file),
        Ran(n=3, at=3.0, tool_use_id="t1", content="def parse_cookie(): ..."),
        replied(4, Text(text="parse_cookie drops SESSION_KEY here.")),
        said(5, "Then mend it."),
        replied(6, Text(text="Done in login.py.")),
        Compacted(
            n=7,
            at=7.0,
            first=1,
            last=6,
            summary=(Text(text="User: Then mend it. parse_cookie in login.py was mended."),),
        ),
        said(8, "And now?"),
        replied(9, Text(text="All is well."), prompt=300),
    ]
    (found,) = rows(read(history).tables["compactions"])
    assert {name for name, _ in found["lost"]} == {"auth_legacy", "SESSION_KEY"}
    assert dict(found["words"]) == {1: False, 5: True}
    assert (found["before"], found["after"]) == (1_000, 300)
    states = {row["n"]: row["state"] for row in rows(read(history).tables["messages"])}
    assert states[1] == states[3] == "compacted"
    assert states[7] == states[8] == "shown"


def test_an_undone_compaction_is_marked_and_its_messages_are_shown():
    summary = (Text(text="A greeting."),)
    history = [
        said(1, "Hello"),
        replied(2, Text(text="Hello.")),
        Compacted(n=3, at=3.0, first=1, last=2, summary=summary),
        Undone(n=4, at=4.0, target=3),
    ]
    data = read(history)
    assert data.tables["compactions"]["is_undone"] == [True]
    states = {row["n"]: row["state"] for row in rows(data.tables["messages"])}
    assert states[1] == states[2] == "shown"


def test_a_cleared_result_names_what_cleared_it():
    call = ToolUse(id="t1", name="Bash", input={"command": "make"})
    history = [
        said(1, "Build it."),
        replied(2, call),
        Ran(n=3, at=3.0, tool_use_id="t1", content="a long log " * 500),
        replied(4, Text(text="Built.")),
        Cleared(n=5, at=5.0, ids=("t1",), texts=("[cleared]",), why="1 result cleared: old"),
    ]
    tables = read([*map(add_measure, history)]).tables
    (result,) = [row for row in rows(tables["messages"]) if row["kind"] == "result"]
    assert (result["state"], result["by"], result["about"]) == ("cleared", 5, "make")
    (change,) = [row for row in rows(tables["changes"]) if row["n"] == 5]
    assert change["saved"] > 500


def test_an_answer_without_words_is_no_message():
    history = [said(1, "Hello"), replied(2), replied(3, Text(text="Hello."))]
    assert read(history).tables["messages"]["n"] == [1, 3]


def test_secrets_and_what_steers_a_terminal_are_not_on_a_page():
    text = f"\x1b[31mred\x1b[0m token={KEY} \u202egnp.exe\x07 end"
    history = [said(1, text), replied(2, Text(text=text))]
    page = render([row_of(read(history))], {"s1": read(history)})
    assert KEY not in page
    assert "[secret: " in page
    assert not [char for char in "\x1b\x07\u202e" if char in page]
    assert "red token=" in page


def test_a_secret_at_a_cut_is_not_shown_in_half():
    assert "ghp_" not in sanitise(f"token={KEY}", 20)


def test_the_page_of_ten_megabytes_stays_under_three(tmp_path):
    path = tmp_path / "large.jsonl"
    write_large(path, 5, 10_000_000)
    data = read(entries_of(path))
    page = render([row_of(data)], {data.id: data}).encode()
    assert len(page) < 3_000_000
    cut = [row for row in rows(data.tables["messages"]) if row["chars"] > len(row["text"])]
    assert len(cut) == data.cut_messages > 0
    assert min(len(row["text"]) for row in cut) > 200


def test_markup_cannot_blow_the_budget():
    history = [said(n, "<b>" * 20_000) for n in range(1, 40)]
    data = read(history, replace(PageSettings(), text_bytes=100_000))
    assert len(render([row_of(data)], {"s1": data})) < 400_000


@given(st.lists(st.integers(0, 500), max_size=30), st.integers(0, 4_000))
def test_texts_cut_to_the_fair_limit_fit_the_budget(sizes, budget):
    limit = fair_limit(sizes, budget)
    assert sum(min(size, limit) for size in sizes) <= max(budget, 0)
    if sum(sizes) <= budget:
        assert limit >= max(sizes, default=0)


def test_what_a_growing_session_adds_makes_the_old_tables_the_new_ones(tmp_path):
    path = tmp_path / "made-up.jsonl"
    write(path, 6, 90, compactions=1)
    history = entries_of(path)[:-1]
    for split in (5, 60, len(history) - 1):
        before, after = read(history[:split]).tables, read(history).tables
        fresh = changes(before, after)
        for name, table in after.items():
            patch = fresh.get(name, {"from": length(table), "rows": {}})
            for field, values in table.items():
                kept = before[name].get(field, [0] * patch["from"])[: patch["from"]]
                assert [*kept, *patch["rows"].get(field, [])] == values
    assert changes(after, after) == {}
