"""Generated sessions have the shape of recorded sessions and match their parameters."""

import hashlib
import itertools
import json
import os
import statistics
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generated_sessions import generate, write, write_large

SEEDS = range(1, 13)
OVERSHOOT_RECORDS = 90
"""The largest round: eight calls, each with signs of life, a snapshot and a result."""


@pytest.fixture(scope="module")
def sessions():
    """A dozen plain sessions, parsed."""
    return [parse(generate(seed, 500)) for seed in SEEDS]


def parse(lines):
    return [json.loads(line) for line in lines]


def blocks(record, kind):
    content = (record.get("message") or {}).get("content")
    return (
        [block for block in content if block["type"] == kind] if isinstance(content, list) else []
    )


def answers(records):
    """Group the pieces of each response, in file order."""
    grouped = {}
    for record in records:
        if record["type"] == "assistant" and record["message"]["model"] != "<synthetic>":
            grouped.setdefault(record["message"]["id"], []).append(record)
    return list(grouped.values())


def prompt_tokens(record):
    usage = record["message"]["usage"]
    return (
        usage["input_tokens"]
        + usage["cache_creation_input_tokens"]
        + usage["cache_read_input_tokens"]
    )


def text_of_result(block):
    content = block["content"]
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


def count_pictures(record):
    parts = [block["content"] for block in blocks(record, "tool_result")]
    inside = [part for content in parts if isinstance(content, list) for part in content]
    return len(blocks(record, "image")) + sum(part["type"] == "image" for part in inside)


def block_chars(block):
    match block["type"]:
        case "tool_use":
            return len(block["name"]) + len(json.dumps(block["input"], ensure_ascii=False))
        case "tool_result":
            return len(text_of_result(block))
        case kind:
            return len(block.get(kind, ""))


def chars_by_role(records):
    """Count characters as the recorded shares were counted: summaries of compactions left out."""
    chars = Counter()
    for record in records:
        content = (record.get("message") or {}).get("content", [])
        if record.get("isCompactSummary"):
            continue
        if isinstance(content, str):
            chars["user"] += len(content)
            continue
        for block in content:
            role = "result" if block["type"] == "tool_result" else record["type"]
            chars[role] += block_chars(block)
    return chars


def test_the_same_seed_gives_the_same_bytes():
    assert list(generate(7, 120)) == list(generate(7, 120))
    assert list(generate(7, 120)) != list(generate(8, 120))


def test_the_hash_seed_of_the_process_does_not_matter():
    script = (
        "import hashlib;from generated_sessions import generate;"
        "print(hashlib.sha256(b''.join(generate(3, 150))).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert digests == {hashlib.sha256(b"".join(generate(3, 150))).hexdigest()}


def test_characters_are_shared_between_roles_as_in_recorded_sessions(sessions):
    chars = sum((chars_by_role(records) for records in sessions), Counter())
    total = chars.total()
    assert chars["result"] / total == pytest.approx(0.68, abs=0.03)
    assert chars["assistant"] / total == pytest.approx(0.29, abs=0.03)
    assert chars["user"] / total == pytest.approx(0.03, abs=0.01)


def test_no_single_session_strays_far_from_the_shares(sessions):
    for records in sessions:
        chars = chars_by_role(records)
        assert chars["result"] / chars.total() == pytest.approx(0.68, abs=0.08)
        assert chars["user"] / chars.total() == pytest.approx(0.03, abs=0.025)


def test_result_sizes_have_a_long_tail(sessions):
    sizes = sorted(
        len(text_of_result(block))
        for records in sessions
        for record in records
        for block in blocks(record, "tool_result")
    )
    assert 250 < sizes[len(sizes) // 2] < 1_100
    assert 3_500 < sizes[len(sizes) * 9 // 10] < 8_000
    assert sizes[-1] > 15_000


def test_parallel_calls_are_as_common_as_recorded(sessions):
    counts, streamed, batched = Counter(), 0, 0
    for records in sessions:
        position = {record.get("uuid"): index for index, record in enumerate(records)}
        for pieces in answers(records):
            uses = [piece for piece in pieces if blocks(piece, "tool_use")]
            counts[min(len(uses), 2)] += 1
            if len(uses) > 1:
                gap = records[position[uses[0]["uuid"]] : position[uses[-1]["uuid"]]]
                is_streamed = any(blocks(record, "tool_result") for record in gap)
                streamed, batched = streamed + is_streamed, batched + (not is_streamed)
    assert 0.04 < counts[2] / (counts[1] + counts[2]) < 0.13
    assert streamed > 5
    assert batched > 5


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    records=st.integers(1, 160),
    compactions=st.integers(0, 3),
    microcompactions=st.integers(0, 3),
    images=st.integers(0, 3),
    sidechain=st.booleans(),
)
def test_every_tool_use_has_its_one_result_before_the_next_answer(
    seed, records, compactions, microcompactions, images, sidechain
):
    lines = generate(
        seed,
        records,
        compactions=compactions,
        microcompactions=microcompactions,
        images=images,
        sidechain=sidechain,
    )
    open_calls, answer = {}, None
    for record in parse(lines):
        message = record.get("message") or {}
        if record["type"] == "assistant" and message["id"] != answer:
            assert not open_calls
            answer = message["id"]
        for block in blocks(record, "tool_use"):
            open_calls[block["id"]] = record["uuid"]
        for block in blocks(record, "tool_result"):
            asked = open_calls.pop(block["tool_use_id"])
            assert record["parentUuid"] == record["sourceToolAssistantUUID"] == asked
    assert not open_calls


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), records=st.integers(1, 160), events=st.integers(0, 4))
def test_a_session_has_what_was_asked_for(seed, records, events):
    wished = {"compactions": events, "microcompactions": events // 2, "images": events}
    told = parse(generate(seed, records, **wished))
    subtypes = Counter(record.get("subtype") for record in told)
    shown = sum(count_pictures(record) for record in told)
    assert subtypes["compact_boundary"] == events
    assert subtypes["microcompact_boundary"] == events // 2
    assert shown == events
    assert len(told) >= records
    if not events:
        assert len(told) <= records + OVERSHOOT_RECORDS


def test_pieces_of_a_response_share_id_request_and_prompt(sessions):
    for pieces in itertools.chain.from_iterable(answers(records) for records in sessions):
        first, *_ = pieces
        assert {piece["requestId"] for piece in pieces} == {first["requestId"]}
        assert {prompt_tokens(piece) for piece in pieces} == {prompt_tokens(first)}
        assert all(len(piece["message"]["content"]) == 1 for piece in pieces)
        assert all(piece["message"]["usage"]["output_tokens"] <= 8 for piece in pieces[:-1])
        assert all(piece["message"]["stop_reason"] is None for piece in pieces[:-1])


def test_the_chain_of_parents_holds_but_for_a_few(sessions):
    dangling = total = 0
    for records in sessions:
        seen = set()
        for record in records:
            if "uuid" not in record:
                continue
            assert record["uuid"] not in seen
            parent = record["parentUuid"]
            dangling += parent is not None and parent not in seen
            seen.add(record["uuid"])
            total += 1
    assert 0 < dangling < total * 0.01


def test_time_never_runs_backwards(sessions):
    for records in sessions:
        stamps = [record["timestamp"] for record in records if "timestamp" in record]
        assert stamps == sorted(stamps)


def test_prompts_grow_by_what_was_appended(sessions):
    ratios = []
    for records in sessions:
        appended, prompt, answer = 0, None, None
        for record in records:
            message = record.get("message") or {}
            if message.get("model") == "<synthetic>":
                continue
            if record["type"] == "assistant" and message["id"] != answer:
                if prompt is not None and prompt_tokens(record) - prompt > 500:
                    ratios.append(appended / (prompt_tokens(record) - prompt))
                appended, prompt, answer = 0, prompt_tokens(record), message["id"]
            appended += sum(chars_by_role([record]).values())
    deciles = statistics.quantiles(ratios, n=10)
    low, median, high = deciles[0], deciles[4], deciles[8]
    assert median == pytest.approx(2.77, abs=0.2)
    assert low > 0.75 * median
    assert high < 1.3 * median
    assert min(ratios) > 1.2
    assert max(ratios) < 5.0


def test_a_warm_cache_is_read_up_to_the_last_prompt(sessions):
    warm = cold = 0
    for records in sessions:
        usages = [pieces[0]["message"]["usage"] for pieces in answers(records)]
        for before, after in itertools.pairwise(usages):
            cached = before["cache_read_input_tokens"] + before["cache_creation_input_tokens"]
            assert after["cache_read_input_tokens"] <= cached
            is_warm = after["cache_read_input_tokens"] == cached
            warm, cold = warm + is_warm, cold + (not is_warm)
    assert cold > 0
    assert warm > 20 * cold


def test_a_compaction_restarts_the_chain_and_the_prompt():
    records = parse(generate(5, 400, compactions=2))
    for index, record in enumerate(records):
        if record.get("subtype") != "compact_boundary":
            continue
        before = [each for each in records[:index] if each["type"] == "assistant"][-1]
        after = next(each for each in records[index:] if each["type"] == "assistant")
        assert record["parentUuid"] is None
        assert record["logicalParentUuid"] == records[index - 1]["uuid"]
        assert records[index + 1]["isCompactSummary"] is True
        assert records[index + 1]["parentUuid"] == record["uuid"]
        assert record["compactMetadata"]["preTokens"] > prompt_tokens(before) - 20
        assert prompt_tokens(after) < record["compactMetadata"]["preTokens"] * 0.8


def test_a_microcompaction_clears_earlier_results_and_breaks_the_cache():
    records = parse(generate(9, 300, microcompactions=1))
    index = next(
        i for i, each in enumerate(records) if each.get("subtype") == "microcompact_boundary"
    )
    metadata = records[index]["microcompactMetadata"]
    earlier = [
        block["tool_use_id"] for each in records[:index] for block in blocks(each, "tool_result")
    ]
    second_answer = answers(records)[1][0]
    after = next(each for each in records[index:] if each["type"] == "assistant")
    assert metadata["compactedToolIds"] == earlier[:-3]
    assert prompt_tokens(after) - 10 <= metadata["preTokens"] - metadata["tokensSaved"]
    assert after["message"]["usage"]["cache_read_input_tokens"] <= prompt_tokens(second_answer)


def test_malformed_lines_come_on_top_and_are_not_json():
    spoiled = list(generate(4, 200, malformed=6))
    clean = list(generate(4, 200))
    extra = Counter(spoiled) - Counter(clean)
    assert extra.total() == 6
    assert [line for line in spoiled if line not in extra] == clean
    for line in extra:
        assert line.endswith(b"\n")
        with pytest.raises(ValueError):
            json.loads(line)


def test_a_sidechain_is_one_prompt_and_its_rounds():
    records = parse(generate(6, 150, sidechain=True))
    assert all(
        record["isSidechain"] and record["agentId"] == records[0]["agentId"] for record in records
    )
    said = [
        record
        for record in records
        if record["type"] == "user" and not blocks(record, "tool_result")
    ]
    assert said == records[:1]


def test_all_kinds_of_records_occur():
    met = set()
    for seed in SEEDS:
        for record in parse(generate(seed, 400, compactions=1, microcompactions=1, images=1)):
            data = record.get("data", {})
            met.add(record.get("subtype") or data.get("type") or record["type"])
            met |= {flag for flag in ("isMeta", "isCompactSummary") if record.get(flag)}
            met.add((record.get("message") or {}).get("model"))
    assert met >= {
        "user", "assistant", "summary", "file-history-snapshot", "queue-operation",
        "bash_progress", "hook_progress", "agent_progress",
        "stop_hook_summary", "turn_duration", "api_error", "local_command",
        "compact_boundary", "microcompact_boundary", "isMeta", "isCompactSummary", "<synthetic>",
    }  # fmt: skip


def test_edits_are_what_later_edits_find(sessions):
    checked = 0
    for records in sessions:
        files = {}
        for record in records:
            detail = record.get("toolUseResult")
            if not isinstance(detail, dict) or "oldString" not in detail:
                continue
            path, before, old = detail["filePath"], detail["originalFile"], detail["oldString"]
            assert before.count(old) >= 1
            assert detail["newString"] != old
            assert files.get(path, before) == before
            patch = detail["structuredPatch"][0]
            start = (
                patch["oldStart"]
                - 1
                + sum(
                    line[0] == " "
                    for line in itertools.takewhile(lambda line: line[0] == " ", patch["lines"])
                )
            )
            lines = before.split("\n")
            count = old.count("\n") + 1
            lines[start : start + count] = detail["newString"].split("\n")
            checked += path in files
            files[path] = "\n".join(lines)
    assert checked > 20


def test_texts_do_not_repeat_everywhere(sessions):
    long_texts = Counter(
        text
        for records in sessions
        for record in records
        for text in (
            *(block["thinking"] for block in blocks(record, "thinking")),
            *(text_of_result(block) for block in blocks(record, "tool_result")),
        )
        if len(text) > 400
    )
    assert len(long_texts) > 0.92 * long_texts.total()


def test_write_puts_the_same_lines_into_a_file(tmp_path):
    path = tmp_path / "session.jsonl"
    size = write(path, 11, 100, compactions=1)
    assert path.read_bytes() == b"".join(generate(11, 100, compactions=1))
    assert path.stat().st_size == size


def test_a_large_file_has_the_wanted_size_and_mean_record(tmp_path):
    path = tmp_path / "large.jsonl"
    size = write_large(path, 2, size_bytes=6_000_000)
    records = parse(path.read_bytes().splitlines())
    assert 6_000_000 <= size == path.stat().st_size < 6_500_000
    assert 4_000 < size / len(records) < 6_000
    assert max(prompt_tokens(pieces[0]) for pieces in answers(records)) < 200_000
    assert blocks(answers(records)[-1][-1], "text")
