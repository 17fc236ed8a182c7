"""How well the gauge predicts the growth of a context between two calls.

Recorded sessions come in (`FILES`, plain or gzipped, any format the package reads); one JSON
object goes out as the last line. Each file is imported and folded as a user's session would
be: it starts from the default weights, predicts the next prompt's size before its usage is
read, and calibrates on it afterwards. The error is |predicted - recorded| / recorded growth,
over growths of more than 500 tokens; bias is the median of the signed error. Beside it stands
the plain rule: characters / 4 x 4/3.

    python benchmarks/gauge.py [FILES…] [--json]
"""

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from harness import make_parser, print_result, recordings
from longhold.core.log.entries import AnyEntry, Ran, Replied, Said
from longhold.core.messages import Block, Text, Thinking, ToolUse
from longhold.core.messages.measure import measure_text
from longhold.core.view import View
from longhold.core.view.gauge import Follower
from longhold.core.view.tokens import Gauge, ReportedSize
from longhold.errors import LongholdError
from longhold.insight.transcripts.formats import open_transcript

SMALLEST_GROWTH_TOKENS = 500  # below, what clients add unseen is larger than what was said
PLAIN_CHARS_PER_TOKEN = 4 * 3 / 4  # the plain rule: four characters a token, padded by a third
PLAIN_IMAGE_CHARS = 8_000  # the plain rule's flat 2,000 tokens


@dataclass(kw_only=True)
class Score:
    """Signed relative errors of both rules, and how often the margin held."""

    gauge: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    within: int = 0


def follow(entries: Iterable[AnyEntry], score: Score) -> None:
    """Go through one session as its gauge would, scoring each growth before learning from it."""
    view, follower = View(), Follower()
    gauge, last, chars = None, None, 0
    for entry in entries:
        view.apply(entry)
        reported = view.reported
        if isinstance(entry, Replied) and reported is not None and reported.n == entry.n:
            if gauge is not None and last is not None:
                judge(score, gauge, last, reported, chars)
            last, chars = reported, 0
        if isinstance(entry, Replied):
            gauge = follower.follow(view)
        chars += plain_chars(entry)


def judge(
    score: Score, gauge: Gauge, last: ReportedSize, reported: ReportedSize, chars: int
) -> None:
    """Compare what was predicted for a prompt with what its usage says."""
    recorded = reported.usage.prompt_tokens
    grown = recorded - last.usage.prompt_tokens
    if grown <= SMALLEST_GROWTH_TOKENS:
        return
    if last.model != reported.model:
        return  # another model counts the whole context anew: that is no growth
    size = gauge.size_tokens(reported.then)
    score.gauge.append((size - recorded) / grown)
    score.plain.append(chars / PLAIN_CHARS_PER_TOKEN / grown - 1)
    score.within += recorded <= size + gauge.margin_tokens(reported.then)


def plain_chars(entry: AnyEntry) -> int:
    """Count the characters that the plain rule counts."""
    match entry:
        case Said(content=content) | Replied(content=content):
            return sum(map(block_chars, content))
        case Ran(content=str(text)):
            return len(text)
        case Ran(content=blocks):
            return sum(map(block_chars, blocks))
    return 0


def block_chars(block: Block) -> int:
    """Count one block's characters."""
    match block:
        case Text(text=text) | Thinking(thinking=text):
            return len(text)
        case ToolUse(name=name, input=data):
            return len(name) + len(json.dumps(data))
    return PLAIN_IMAGE_CHARS


def figures(score: Score) -> dict[str, float | None]:
    """Sum a score up; of no growth at all there is nothing to say, and the values are null."""
    return {
        "n": len(score.gauge),
        **errors("delta_error_p50", "delta_error_p90", "bias", score.gauge),
        **errors("plain_p50", "plain_p90", "plain_bias", score.plain),
        "within_margin": round(score.within / len(score.gauge), 4) if score.gauge else None,
    }


def errors(p50: str, p90: str, bias: str, signed: list[float]) -> dict[str, float | None]:
    """Give the percentiles of the error and the median of its sign."""
    if not signed:
        return {p50: None, p90: None, bias: None}
    if len(signed) == 1:
        signed = signed * 2  # one growth is every percentile
    deciles = quantiles(map(abs, signed), n=10, method="inclusive")
    return {p50: round(deciles[4], 4), p90: round(deciles[8], 4), bias: round(median(signed), 4)}


def measuring_speed() -> dict[str, float]:
    """Time the measuring of 5 KB and of 8 MB of this file's text."""
    source = Path(__file__).read_text(encoding="utf-8")
    small, large = source[:5_000], source * (8_000_000 // len(source))
    return {
        "measure_5kb_us": round(seconds(small, 200) * 1e6, 1),
        "measure_mb_per_s": round(len(large) / seconds(large, 1) / 1e6),
    }


def seconds(text: str, times: int) -> float:
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
    options = make_parser(__doc__, takes_files=True).parse_args()
    score = Score()
    with recordings(options.files, within="claude-code/entire-cli") as files:
        for path in files:
            try:
                with open_transcript(path) as transcript:
                    follow(transcript.entries, score)
            except LongholdError as error:
                print(f"left out: {error}", file=sys.stderr)
            if not options.json:
                print(f"{path.name}: {len(score.gauge)} growths so far")
    found = figures(score) | measuring_speed() | {"files": len(files)}
    print_result(found, options.json)


if __name__ == "__main__":
    main()
