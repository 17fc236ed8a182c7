"""What fills a window, by kind."""

import pytest

from generated_sessions import generate
from longhold.core.log.entries import (
    Cleared,
    Compacted,
    Configured,
    Framed,
    Ran,
    Replied,
    Said,
    Section,
    Source,
)
from longhold.core.messages import Image, Text, ToolUse, Usage
from longhold.core.messages.measure import measure_content, measure_text
from longhold.core.settings import Settings
from longhold.core.view import fold
from longhold.core.view.gauge import replay
from longhold.core.view.window import window_for
from longhold.insight.context import UNSEEN, UNSEEN_FRAME, describe, session_window
from longhold.insight.transcripts.formats import read_lines

USE = ToolUse(id="t1", name="Read", input={"file_path": "a.py"})


def history(*more):
    asked = (Text(text="please " * 100), Image(source={"type": "base64", "data": ""}))
    answer = (Text(text="reading"), USE)
    return [
        Said(n=1, content=asked, measure=measure_content(asked)),
        Replied(
            n=2,
            response_id="r",
            model="claude-opus-4-6",
            content=answer,
            measure=measure_content(answer),
        ),
        Ran(n=3, tool_use_id="t1", content="line\n" * 500, measure=measure_content("line\n" * 500)),
        *more,
    ]


def parts(entries):
    view, gauge = replay(entries)
    context = describe(view, gauge, window_for(view.model))
    return {part.name: part for part in context.parts}, context


def test_each_thing_is_in_its_category():
    found, context = parts(history())
    assert set(found) == {
        "user messages",
        "images and documents",
        "answers",
        "tool calls",
        "tool results",
    }
    assert found["tool results"].parts[0].name == "Read"
    assert abs(sum(part.tokens for part in found.values()) - context.used_tokens) <= len(found)


def test_a_cleared_result_is_told_apart():
    short = "cleared"
    clear = Cleared(n=4, ids=("t1",), texts=(short,), measures=(measure_content(short),))
    found, _ = parts(history(clear))
    assert "tool results" not in found
    assert found["cleared results"].tokens < 40


def test_the_frame_is_shown_by_section_and_tool():
    frame = Framed(
        n=4,
        sections=(Section(name="rules", text="be careful " * 50),),
        tools=({"name": "Read", "description": "reads a file"},),
        instructions="tests first",
        measure=measure_text("x"),
    )
    found, _ = parts(history(frame))
    assert found["system prompt"].parts[0].name == "rules"
    assert found["tools"].parts[0].name == "Read"
    assert found["instructions"].tokens > 0


def test_what_the_provider_counts_beyond_the_log_is_the_frame():
    last = (Text(text="done"),)
    answer = Replied(
        n=4,
        response_id="r2",
        model="claude-opus-4-6",
        content=last,
        stop_reason="end_turn",
        usage=Usage(input_tokens=30_000, output_tokens=5),
        measure=measure_content(last),
    )
    found, context = parts(history(answer))
    assert context.used_tokens == 30_005
    assert found[UNSEEN_FRAME].tokens > 20_000


def test_a_made_up_session_is_below_its_lines_or_says_so():
    _, context = parts(read_lines(generate(4, 150), "claude-code"))
    assert context.level == context.window.level(context.used_tokens + context.margin_tokens)
    assert 0 <= context.percent_left <= 100


def test_parts_add_up_to_the_reported_size_whatever_the_estimates_say():
    last = (Text(text="done " * 900),)
    answer = Replied(
        n=4,
        response_id="r2",
        model="claude-opus-4-6",
        content=last,
        stop_reason="end_turn",
        usage=Usage(input_tokens=100, output_tokens=5),
        measure=measure_content(last),
    )
    found, context = parts(history(answer))
    assert all(part.tokens >= 0 for part in found.values())
    assert sum(part.tokens for part in found.values()) == pytest.approx(context.used_tokens, abs=9)
    assert context.used_tokens == 105


def answered(n: int, prompt: int, text: str = "done") -> Replied:
    last = (Text(text=text),)
    return Replied(
        n=n,
        response_id=f"r{n}",
        model="claude-opus-4-6",
        content=last,
        stop_reason="end_turn",
        usage=Usage(input_tokens=prompt, output_tokens=5),
        measure=measure_content(last),
    )


def test_system_prompt_and_tools_are_no_more_than_the_first_call_shows():
    found, context = parts(history(answered(4, 30_000), answered(5, 70_000)))
    assert 25_000 < found[UNSEEN_FRAME].tokens < 30_000
    assert found[UNSEEN].tokens > 30_000
    assert sum(part.tokens for part in found.values()) == pytest.approx(context.used_tokens, abs=9)


def test_instruction_files_are_told_apart():
    files = (
        Source(file="/p/AGENTS.md", measure=measure_text("word " * 50)),
        Source(file="/p/CLAUDE.md", measure=measure_text("word " * 200)),
    )
    found, _ = parts(history(Framed(n=4, instructions="x", sources=files)))
    assert [part.name for part in found["instructions"].parts] == ["/p/CLAUDE.md", "/p/AGENTS.md"]
    found, _ = parts(history(Framed(n=4, instructions="x")))
    assert found["instructions"].parts == ()


def test_a_compaction_shows_how_small_system_prompt_and_tools_really_are():
    summary = (Text(text="what was done"),)
    compacted = Compacted(n=5, first=1, last=4, summary=summary, measure=measure_content(summary))
    entries = history(answered(4, 130_000), compacted, answered(6, 20_000))
    found, _ = parts(entries)
    assert found[UNSEEN_FRAME].tokens < 20_000


def sized(n, prompt, stated=0):
    extra = {"model_context_window": stated} if stated else None
    usage = Usage(input_tokens=prompt, output_tokens=10, extra=extra)
    model = "claude-opus-4-5-20251101"
    return Replied(n=n, response_id=f"r{n}", content=(), model=model, usage=usage)


def compacted_at(n, tokens, trigger="auto"):
    return Compacted(
        n=n,
        first=1,
        last=n - 1,
        summary="so far",
        by="import",
        trigger=trigger,
        before_tokens=tokens,
    )


@pytest.mark.parametrize(
    ("agent", "entries", "line"),
    [
        ("claude-code", [sized(1, 122_600)], 167_000),
        ("codex", [sized(1, 9_000, stated=272_000)], 244_800),
        ("pi", [sized(1, 9_000)], 183_616),
        ("claude-code", [sized(1, 155_000), compacted_at(2, 155_200), sized(3, 9_000)], 155_200),
        ("claude-code", [sized(1, 80_000), compacted_at(2, 80_000, "manual")], 167_000),
        # It went on past what an earlier version did, and past what its version does.
        ("claude-code", [sized(1, 150_000), compacted_at(2, 150_000), sized(3, 160_000)], 167_000),
        ("claude-code", [sized(1, 190_000)], None),
        ("anthropic", [sized(1, 9_000)], None),
    ],
)
def test_the_line_of_another_agents_session_is_that_agents(agent, entries, line):
    window = session_window(agent, fold(entries), Settings())
    assert window.auto == (line is not None)
    assert window.base_tokens == (line or window.limit_tokens)
    assert window.level(window.base_tokens - 20_001) == "ok"


def test_a_gateway_acts_at_the_windows_own_line_and_a_session_of_ours_where_it_costs_least():
    ours = session_window("longhold", fold([sized(1, 9_000)]), Settings())
    served = [Configured(n=1, client="claude-cli"), sized(2, 9_000)]
    assert ours.auto_tokens < 167_000
    assert session_window("longhold", fold(served), Settings()).auto_tokens == 167_000
