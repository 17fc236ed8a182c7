"""How well the gauge predicts the growth of a context between two calls.

Recorded Claude Code sessions come in (`FILES`, plain or gzipped); one JSON object goes out
as the last line. Each file is gone through as a user's session would be: it starts from the
default weights, predicts the next prompt's size before its usage is read, and calibrates on
it afterwards. The error is |predicted - recorded| / recorded growth, over growths of more
than 500 tokens; bias is the median of the signed error. Beside it stands the plain rule:
characters / 4 x 4/3.
"""

import argparse
import gzip
import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from holdfast.capabilities import capabilities
from holdfast.measure import NOTHING, Measure, measure_content, measure_text
from holdfast.messages import Block, Content, Json, Text, Thinking, ToolUse, content_from_wire
from holdfast.tokens import Calibration, Gauge

SESSIONS = Path(__file__).parents[2] / "shared/data/transcripts/claude-code/entire-cli"
SMALLEST_GROWTH_TOKENS = 500  # below, what clients add unseen is larger than what was said
PLAIN_CHARS_PER_TOKEN = 4 * 3 / 4  # the plain rule: four characters a token, padded by a third
PLAIN_IMAGE_CHARS = 8_000  # the plain rule's flat 2,000 tokens
GENERATED_CALLS, GENERATED_SEED = 60, 1  # enough to see it learn, in well under a second


@dataclass(kw_only=True)
class Call:
    """One answer with its usage, and what was appended from its first piece to the next call."""

    model: str
    prompt_tokens: int
    output_tokens: int = 0
    is_final: bool = False
    reply: Measure = NOTHING
    after: Measure = NOTHING
    chars: int = 0


@dataclass(kw_only=True)
class Score:
    """Signed relative errors of both rules, and how often the margin held."""

    gauge: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    within: int = 0


def read_calls(path: Path) -> Iterator[Call]:
    """Yield the calls of a session's main conversation, in order."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        spoken = [record for line in lines if (record := _spoken(line))]
    is_agent = all(r.get("isSidechain") for r in spoken)
    call, ids, thoughts = None, set(), NOTHING
    for record in spoken:
        message = record["message"]
        if (record.get("isSidechain") and not is_agent) or message.get("model") == "<synthetic>":
            continue
        is_answer = record["type"] == "assistant"
        if is_answer and message.get("usage") and message["id"] not in ids:
            ids.add(message["id"])
            if call:
                yield call
            call = Call(model=message["model"], prompt_tokens=_prompt_tokens(message["usage"]))
        if call is None:
            continue
        content = content_from_wire(message["content"])
        call.chars += sum(map(_plain_chars, content))
        if is_answer:
            _hear(call, message, content)
            thoughts += measure_content(b for b in content if isinstance(b, Thinking))
            continue
        call.after += measure_content(content)
        if any(isinstance(block, Text) for block in content):
            if not capabilities(call.model).keeps_thinking:
                call.after -= thoughts
            thoughts = NOTHING
    if call:
        yield call


def _spoken(line: str) -> Json:
    """Parse a line; give nothing for what is no message, or no JSON at all."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    is_spoken = isinstance(record, dict) and record.get("type") in ("user", "assistant")
    return record if is_spoken and record.get("message") else None


def _hear(call: Call, message: Json, content: Content) -> None:
    """Add a piece of an answer; only the piece with a stop reason has the final usage."""
    call.reply += measure_content(content)
    call.is_final = call.is_final or bool(message.get("stop_reason"))
    output_tokens = (message.get("usage") or {}).get("output_tokens") or 0
    call.output_tokens = max(call.output_tokens, output_tokens)


def _prompt_tokens(usage: Json) -> int:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(usage.get(name) or 0 for name in names)


def _plain_chars(block: Block) -> int:
    """Count the characters that the plain rule counts."""
    match block:
        case Text(text=text) | Thinking(thinking=text):
            return len(text)
        case ToolUse(name=name, input=data):
            return len(name) + len(json.dumps(data))
    content = getattr(block, "content", None)
    if isinstance(content, str):
        return len(content)
    return sum(map(_plain_chars, content)) if content is not None else PLAIN_IMAGE_CHARS


def generate_calls() -> Iterator[Call]:
    """Make up a session of a model nobody knows, whose tokens are word pieces and marks."""
    chance = random.Random(GENERATED_SEED)
    prompt_tokens = 20_000
    for _ in range(GENERATED_CALLS):
        size = chance.randint(300, 900)
        letters = ("etaoinshr", "etaoinshr_.()", "0123456789abcdef")[chance.randrange(3)]
        words = ("".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(size))
        text = "\n ".join(words)
        yield Call(
            model="generated",
            prompt_tokens=prompt_tokens,
            after=measure_text(text),
            chars=len(text),
        )
        prompt_tokens += len(re.findall(r"[a-z]{1,4}|\d|\W|_", text))


def follow(calls: Iterator[Call], score: Score) -> None:
    """Go through one session as its gauge would, scoring each growth before learning from it."""
    known: dict[str, Calibration] = {}
    gauge, total, last = None, NOTHING, None
    for call in calls:
        calibration = known.get(call.model) or Calibration.fresh(call.model)
        if gauge is None:
            gauge = Gauge(calibration=calibration)
        elif last and last.model != call.model:
            gauge = gauge.switched(calibration)
        if last:
            _score(score, gauge, total, last, call)
        gauge = gauge.answered(
            prompt_tokens=call.prompt_tokens,
            before=total,
            reply=call.reply,
            output_tokens=call.output_tokens,
            is_final=call.is_final,
        )
        known[call.model] = gauge.calibration
        total, last = total + call.reply + call.after, call


def _score(score: Score, gauge: Gauge, total: Measure, last: Call, call: Call) -> None:
    grown = call.prompt_tokens - last.prompt_tokens
    if grown <= SMALLEST_GROWTH_TOKENS:
        return
    size = gauge.size_tokens(total)
    score.gauge.append((size - call.prompt_tokens) / grown)
    score.plain.append(last.chars / PLAIN_CHARS_PER_TOKEN / grown - 1)
    score.within += call.prompt_tokens <= size + gauge.margin_tokens(total)


def figures(score: Score) -> dict[str, float]:
    """Sum a score up; percentiles of fewer than two growths say nothing and are left out."""
    if len(score.gauge) < 2:
        return {"n": len(score.gauge)}
    return {
        "n": len(score.gauge),
        **_errors("delta_error_p50", "delta_error_p90", "bias", score.gauge),
        **_errors("plain_p50", "plain_p90", "plain_bias", score.plain),
        "within_margin": round(score.within / len(score.gauge), 4),
    }


def _errors(p50: str, p90: str, bias: str, signed: list[float]) -> dict[str, float]:
    deciles = quantiles(map(abs, signed), n=10, method="inclusive")
    return {p50: round(deciles[4], 4), p90: round(deciles[8], 4), bias: round(median(signed), 4)}


def measuring_speed() -> dict[str, float]:
    """Time the measuring of 5 KB and of 8 MB of this file's text."""
    source = Path(__file__).read_text()
    small, large = source[:5_000], source * (8_000_000 // len(source))
    return {
        "measure_5kb_us": round(_seconds(small, 200) * 1e6, 1),
        "measure_mb_per_s": round(len(large) / _seconds(large, 1) / 1e6),
    }


def _seconds(text: str, times: int) -> float:
    """Give the best time of five for measuring a text once."""
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(times):
            measure_text(text)
        best = min(best, (time.perf_counter() - began) / times)
    return best


def main() -> None:
    """Score the named sessions, the recorded ones where they are, or a generated one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--json", action="store_true", help="print nothing but the JSON object")
    options = parser.parse_args()
    files = options.files or sorted(SESSIONS.glob("*.jsonl.gz"))
    score = Score()
    for path in files:
        follow(read_calls(path), score)
        if not options.json:
            print(f"{path.name}: {len(score.gauge)} growths so far")
    if not files:
        follow(generate_calls(), score)
        if not options.json:
            print("no recorded sessions here: a generated one is used, which says little")
    print(json.dumps(figures(score) | measuring_speed() | {"files": len(files)}))


if __name__ == "__main__":
    main()
