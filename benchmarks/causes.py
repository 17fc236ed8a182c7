"""Whether the stated cause of each cold call agrees with what the transcript records.

Reads the raw JSONL lines next to the reports: the thinking level, the model, the time and the
usage of each answer, and what happened between two answers. A cause is `confirmed` if the file
records it, `contradicted` if the file records the opposite, and `unrecorded` if the file has
nothing about it. `provider` claims nothing and is not judged.

    python benchmarks/causes.py [FILES…] [--json]
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from harness import make_parser, print_result, recordings
from longhold.core.log.entries import Replied
from longhold.core.models.capabilities import canonical_name
from longhold.insight.calls import CallReport, explain_calls
from longhold.insight.transcripts.formats import open_transcript

RESTARTS = ("/exit", "/quit", "/resume")


@dataclass
class Answer:
    """One answer as the file records it."""

    thinking: str
    model: str
    at: float
    asked_at: float
    prompt_tokens: int
    between: list[str] = field(default_factory=list)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def read_answers(path: Path) -> dict[str, Answer]:
    """Return the answers by their record's id, which the imported entries have as `origin`."""
    found: dict[str, Answer] = {}
    thinking, asked_at, between = "", 0.0, []
    for number, record in enumerate(read_lines(path), start=1):
        message = record.get("message") if isinstance(record.get("message"), dict) else {}
        at = _seconds(record.get("timestamp"))
        thinking = _level(record) or thinking
        # An answer that the client made up without a call does not end what came between.
        if message.get("role") != "assistant" or message.get("model") == "<synthetic>":
            asked_at = at or asked_at
            between.append(_label(record))
            continue
        id = str(record.get("uuid") or record.get("id") or f"line-{number}")
        model = str(message.get("model") or "")
        prompt = _prompt_tokens(message.get("usage") or {})
        found[id] = Answer(thinking, model, at, asked_at or at, prompt, between)
        between = []
    return found


def _seconds(raw: object) -> float:
    try:
        return datetime.fromisoformat(str(raw).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0


def _level(record: dict[str, Any]) -> str:
    if record.get("type") == "thinking_level_change":
        return str(record.get("thinkingLevel"))
    return json.dumps(record["thinkingMetadata"]) if record.get("thinkingMetadata") else ""


def _label(record: dict[str, Any]) -> str:
    if record.get("isCompactSummary") or record.get("subtype") == "compact_boundary":
        return "compaction"
    if record.get("type") == "compaction" or record.get("subtype") == "microcompact_boundary":
        return "compaction"
    text = json.dumps(record)
    return "restart" if any(f"<command-name>{word}" in text for word in RESTARTS) else ""


def _prompt_tokens(usage: dict[str, Any]) -> int:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(usage.get(name) or 0 for name in (*names, "input", "cacheRead", "cacheWrite"))


def judge(call: CallReport, before: Answer, after: Answer) -> str:
    """Return confirmed, contradicted or unrecorded for one stated cause."""
    if call.cause == "thinking" and not call.is_expected:
        return _verdict(before.thinking != after.thinking, bool(before.thinking and after.thinking))
    if call.cause in ("thinking", "history"):
        return _verdict(after.prompt_tokens < before.prompt_tokens, True)
    if call.cause == "model":
        return _verdict(canonical_name(before.model) != canonical_name(after.model), True)
    if call.cause.startswith("lifetime_"):
        limit = 3600 if call.cause.endswith("1h") else 300
        return _verdict(after.asked_at - before.asked_at >= 0.9 * limit, bool(after.asked_at))
    if call.cause == "resume":
        return _verdict("restart" in after.between, True)
    if call.cause in ("compaction", "clearing"):
        return "confirmed" if "compaction" in after.between else "unrecorded"
    return "unrecorded"


def _verdict(is_so: bool, is_recorded: bool) -> str:
    if not is_recorded:
        return "unrecorded"
    return "confirmed" if is_so else "contradicted"


def compare(path: Path) -> Iterator[tuple[CallReport, str]]:
    answers = read_answers(path)
    with open_transcript(path) as transcript:
        entries = list(transcript.entries)
    origins = {entry.n: entry.origin for entry in entries if isinstance(entry, Replied)}
    before: Answer | None = None
    for call in explain_calls(entries):
        after = answers.get(origins.get(call.n, ""))
        if after is None:
            continue
        if before and call.is_cold and call.cause != "provider":
            yield call, judge(call, before, after)
        before = after if call.tally.prompt_tokens else before


def main() -> None:
    options = make_parser(__doc__, takes_files=True).parse_args()
    verdicts: Counter[str] = Counter()
    wrong, lost = [], 0.0
    with recordings(options.files) as files:
        for path, (call, verdict) in ((file, row) for file in files for row in compare(file)):
            verdicts[verdict] += 1
            if verdict == "contradicted":
                wrong.append(f"{path.name} #{call.n}: {call.cause}: {call.detail}")
                lost += call.tally.lost_usd
    print_result(
        {
            "stated": verdicts.total(),
            **{name: verdicts[name] for name in ("confirmed", "unrecorded", "contradicted")},
            "contradicted_usd": round(lost, 2),
            "contradictions": wrong,
        },
        options.json,
    )


if __name__ == "__main__":
    main()
