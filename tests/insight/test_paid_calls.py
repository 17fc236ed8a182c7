"""Every call in a transcript is billed once, compared with a naive reader."""

import gzip
import json
from contextlib import suppress
from pathlib import Path

import pytest

from command_line import longhold
from longhold.core.log.entries import AnyEntry, Cleared, Failed, Forked
from longhold.core.view.window import infer_window
from longhold.insight.cost import bill
from longhold.insight.transcripts.formats import open_transcript, read_lines

PRICES = {
    "claude-opus-4-5": (5.0, 0.5, 6.25, 10.0, 25.0),
    "claude-opus-4-6": (5.0, 0.5, 6.25, 10.0, 25.0),
    "claude-sonnet-4-5": (3.0, 0.3, 3.75, 6.0, 15.0),
    "claude-sonnet-4": (3.0, 0.3, 3.75, 6.0, 15.0),
    "claude-3-sonnet": (3.0, 0.3, 3.75, 6.0, 15.0),
    "claude-haiku-4-5": (1.0, 0.1, 1.25, 2.0, 5.0),
}
"""Published dollars for a million tokens: uncached, read, written for 5 minutes and an hour, output."""


def records(file: Path) -> list[dict]:
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    found = []
    for line in text.split(b"\n"):
        with suppress(ValueError):
            found.append(json.loads(line))
    return [record for record in found if isinstance(record, dict)]


def claude_calls(file: Path) -> dict[str, dict]:
    """Collect the last usage of each answer, of sub-agents too."""
    calls: dict[str, dict] = {}
    for record in records(file):
        message = record.get("message")
        if record.get("type") == "progress":
            message = ((record.get("data") or {}).get("message") or {}).get("message")
        is_call = isinstance(message, dict) and message.get("usage") and message.get("id")
        if is_call and message.get("model") != "<synthetic>":
            calls[message["id"]] = message
    name = file.name.removesuffix(".gz").removesuffix(".jsonl")
    for agent in sorted(file.with_name(name).glob("subagents/agent-*")):
        calls |= claude_calls(agent)
    return calls


def naive_claude(file: Path) -> tuple[int, int, int, float]:
    count = reads = writes = 0
    usd = 0.0
    for message in claude_calls(file).values():
        usage = message["usage"]
        read, written = (
            usage.get("cache_read_input_tokens") or 0,
            usage.get("cache_creation_input_tokens") or 0,
        )
        uncached, output = usage.get("input_tokens") or 0, usage.get("output_tokens") or 0
        if not read + written + uncached + output:
            continue
        hour = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0
        name = max((name for name in PRICES if message["model"].startswith(name)), key=len)
        parts = (uncached, read, written - hour, hour, output)
        usd += sum(n * price for n, price in zip(parts, PRICES[name], strict=True)) / 1e6
        count, reads, writes = count + 1, reads + read, writes + written
    return count, reads, writes, usd


def naive_pi(file: Path) -> tuple[int, int, int, float]:
    count = reads = writes = 0
    usd = 0.0
    for record in records(file):
        message = record.get("message") or {}
        usage = message.get("usage") or {}
        if message.get("role") == "assistant" and usage.get("totalTokens", 0) >= 0:
            parts = [usage.get(name, 0) for name in ("input", "output", "cacheRead", "cacheWrite")]
            if sum(parts):
                count, reads, writes = count + 1, reads + parts[2], writes + parts[3]
                usd += usage["cost"]["total"]
    return count, reads, writes, usd


def entries_of(file: Path) -> list[AnyEntry]:
    with open_transcript(file) as transcript:
        return list(transcript.entries)


def test_calls_reads_writes_and_dollars_are_those_of_a_naive_count(recorded):
    naive = naive_pi if recorded.parent.name == "pi" else naive_claude
    total = bill(entries_of(recorded)).total
    tally = total.tally
    found = (tally.calls, tally.cache_read_tokens, tally.cache_write_tokens)
    assert tally.usd == pytest.approx(total.cost.total)
    assert (*found, pytest.approx(total.cost.total, abs=1e-6)) == naive(recorded)


def lines(*found: dict) -> list[bytes]:
    return [json.dumps(record).encode() for record in found]


def spoken(kind: str, uuid: str, content, *, at: int = 0, **more) -> dict:
    return {
        "type": kind,
        "uuid": uuid,
        "sessionId": "s",
        "timestamp": f"2026-01-01T00:00:{at:02}Z",
        "message": {"role": kind, "content": content} | more.pop("message", {}),
        **more,
    }


def answer(uuid: str, id: str, *, at: int = 0, output: int = 5, **more) -> dict:
    usage = {"input_tokens": 100, "output_tokens": output, **more.pop("usage", {})}
    facts = {"id": id, "model": "claude-sonnet-4-5", "usage": usage}
    return spoken("assistant", uuid, [{"type": "text", "text": "ok"}], at=at, message=facts, **more)


def test_a_side_chain_is_paid_for_and_not_part_of_the_conversation():
    found = list(
        read_lines(
            lines(
                spoken("user", "u1", "look"),
                answer("a1", "m1", at=1),
                answer("s1", "side", at=2, output=1, isSidechain=True, agentId="x"),
                answer("s2", "side", at=2, output=9, isSidechain=True, agentId="x"),
                spoken("user", "u2", "and now?", at=3),
            ),
            "claude-code",
        )
    )
    calls = [entry for entry in found if isinstance(entry, Forked)]
    assert [(call.source, call.usage.output_tokens) for call in calls] == [("agent:x", 9)]
    assert bill(found).total.tally.calls == 2


def test_web_searches_are_billed():
    searched = answer("a1", "m1", usage={"server_tool_use": {"web_search_requests": 3}})
    total = bill(read_lines(lines(spoken("user", "u1", "look"), searched), "claude-code")).total
    assert total.cost.searches == pytest.approx(0.03)
    assert total.cost.total == pytest.approx(0.03 + (100 * 3 + 5 * 15) / 1e6)


def test_two_records_on_one_line_are_both_read():
    joined = b"".join(lines(spoken("user", "u1", "a } { b"), answer("a1", "m1")))
    found = list(read_lines([joined, *lines(answer("a2", "m2"))], "claude-code"))
    assert bill(found).total.tally.calls == 2


def test_an_answer_nobody_asked_for_is_no_failure():
    made_up = {"model": "<synthetic>", "id": "x"}
    found = list(
        read_lines(
            lines(
                spoken("user", "u1", "hello"),
                spoken("assistant", "a1", "No response requested.", message=made_up),
                spoken("assistant", "a2", "API Error: overloaded", message=made_up),
            ),
            "claude-code",
        )
    )
    assert [entry.error for entry in found if isinstance(entry, Failed)] == [
        "API Error: overloaded"
    ]


def test_a_microcompaction_says_itself_what_it_saved():
    use = [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "x" * 50}]
    boundary = {
        "type": "system",
        "subtype": "microcompact_boundary",
        "uuid": "b1",
        "microcompactMetadata": {"tokensSaved": 38_535, "compactedToolIds": ["t1"]},
    }
    found = list(
        read_lines(
            lines(
                spoken("user", "u1", "read"),
                spoken("assistant", "a1", use, message={"id": "m1"}),
                spoken("user", "u2", result),
                boundary,
            ),
            "claude-code",
        )
    )
    assert [entry.saved_tokens for entry in found if isinstance(entry, Cleared)] == [38_535]


def pi_message(id: str, parent: str | None, **message) -> dict:
    usage = {"input": 100, "output": 10, "cacheRead": 0, "cacheWrite": 0}
    body = {"role": "assistant", "content": [], "model": "claude-sonnet-4-5", "usage": usage}
    return {"type": "message", "id": id, "parentId": parent, "message": body | message}


def test_pi_answers_that_were_stopped_or_left_behind_are_paid_for():
    header = {"type": "session", "version": 3, "id": "s", "cwd": "/x"}
    asked = {"type": "message", "id": "a", "parentId": None, "message": {"role": "user"}}
    asked["message"]["content"] = "hello"
    found = list(
        read_lines(
            lines(
                header,
                asked,
                pi_message("b", "a", stopReason="stop"),
                pi_message("c", "a", stopReason="aborted"),
                pi_message("d", "a", stopReason="stop"),
            ),
            "pi",
        )
    )
    sources = {item.name: item.tally.calls for item in bill(found).sources}
    assert sources == {"main": 1, "branch": 2}
    found = list(read_lines(lines(header, asked, pi_message("c", "a", stopReason="aborted")), "pi"))
    assert [entry.source for entry in found if isinstance(entry, Forked)] == ["stopped"]


def proved_window(file: Path) -> int:
    """Return the window that a file proves, read without any of our readers: 0 if it proves none."""
    full = largest = 0
    for record in records(file):
        metadata = record.get("compactMetadata") or {}
        if metadata.get("trigger") == "auto":
            full = max(full, metadata["preTokens"])
        message = record.get("message")
        usage = (message.get("usage") if isinstance(message, dict) else None) or {}
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        largest = max(largest, sum(usage.get(name) or 0 for name in names))
    return 0 if not full else 200_000 if max(full, largest) <= 200_000 else 1_000_000


def test_windows_are_right_wherever_the_file_proves_them(recorded):
    if (window := proved_window(recorded)) == 0:
        pytest.skip("this file proves no window")
    shown = json.loads(longhold("context", recorded, "--json").stdout)["context"]
    assert shown["window"]["limit_tokens"] == window
    assert all(part["tokens"] >= 0 for part in shown["parts"])


def test_codex_states_its_window():
    usage = {"input_tokens": 100, "output_tokens": 10}
    counted = {"last_token_usage": usage, "total_token_usage": usage}
    event = {"type": "token_count", "info": counted | {"model_context_window": 258_400}}
    answer = {"type": "message", "role": "assistant", "content": []}
    answer["content"] = [{"type": "output_text", "text": "done"}]
    found = read_lines(
        lines(
            {"type": "session_meta", "payload": {"id": "x", "cwd": "/x"}},
            {"type": "turn_context", "payload": {"model": "gpt-5.6-sol"}},
            {"type": "response_item", "payload": answer},
            {"type": "event_msg", "payload": event},
        ),
        "codex",
    )
    assert infer_window(found) == 258_400
