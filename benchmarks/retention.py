"""What remains of a recorded segment after a compaction, by digest and as recorded.

Recorded sessions that were compacted come in (`FILES`, any format the package reads; by default
those beside the project). For each compaction the segment it covered is compacted again by
digest, at its own budget (`digest`) and cut to the size of the recorded summary
(`digest_at_recorded_size`); the recorded summary is measured by the same rules (`recorded`).
With `--model NAME` that model writes a summary of each as in a session, and its row, under its
name, says also in how many it did (`written`): where it fails the digest stands, as always.

Shares, each the median and the tenth percentile over all compactions that have any:
- `user_messages`: what the user typed, verbatim but for white space; one of more than 1,500
  characters also counts with its first and last 150 and a pointer (recorded ones need none);
- `changed_files`, `read_files`: by their names without directories, calls that failed left out;
- `commands`, `errors` of the last 50 rounds: by their first 80 characters;
- `anchors_said`: exact names in prompts, answers and tool inputs of the last 10 rounds and the
  last 5 messages; `anchors_seen`: names that stood only in tool results there;
- `tokens_share`: tokens after over tokens before, of the whole segment, by o200k_base.

    python benchmarks/retention.py [FILES…] [--json] [--model NAME [--base-url URL]]
"""

import argparse
import asyncio
import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from longhold.core.log.entries import AnyEntry, Compacted, Directed
from longhold.core.messages import Block, Text, Thinking, ToolResult, ToolUse, text_of
from longhold.core.models import open_model
from longhold.core.models.protocol import Model
from longhold.core.settings import Settings
from longhold.core.stages.compact.compose import Manner, check_survival, recent_names
from longhold.core.stages.compact.digest import FactPieces, budget_for
from longhold.core.stages.compact.digest.context import LIMITS
from longhold.core.stages.compact.directives import DirectiveLedger, bounded_tokens, words_tokens
from longhold.core.stages.compact.owner import CompactRequest
from longhold.core.stages.facts.names import find_names
from longhold.core.stages.facts.tool_steps import gather
from longhold.core.stages.facts.user_text import read_typed
from longhold.core.tools.describe import description_of
from longhold.core.view import fold_stepwise
from longhold.core.view.items import Item, Round, Spoken
from longhold.core.view.tokens import estimate_tokens
from longhold.errors import LongholdError
from longhold.insight.transcripts.formats import open_transcript
from longhold.session.scratch_session import draft_compaction, open_scratch

RECORDED = Path(__file__).parents[2] / "shared" / "data" / "transcripts"
TOKENIZER = "o200k_base"
PASTE_CHARS, END_CHARS = 1_500, 150
"""A message longer than the first counts as kept with so much of either end."""
HEAD_CHARS = 80
"""By so much of its beginning a command or an error is known."""
ROUNDS = 50
WAYS = ("digest", "digest_at_recorded_size", "recorded")
LINES = (
    *("user_messages", "changed_files", "read_files", "commands", "errors"),
    *("anchors_said", "anchors_seen", "tokens_share"),
)
BAR = re.compile(r"^\| ?", re.MULTILINE)
"""Begins a quoted line of a digest."""
Count = Callable[[str], int]
Scores = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Segment:
    """What one recorded compaction covered."""

    name: str
    history: list[AnyEntry]
    items: list[Item]
    summary: str
    tokens: int


def segments(path: Path, count: Count) -> Iterator[Segment]:
    """Yield the segment of every compaction in a file, as the model saw it."""
    with open_transcript(path) as transcript:
        entries = list(transcript.entries)
    if not any(isinstance(entry, Compacted) for entry in entries):
        return
    views = fold_stepwise(entries)
    for i, (view, coming) in enumerate(zip(views, entries[1:], strict=False), 1):
        if isinstance(coming, Compacted):
            kept = coming.kept or (coming.n, coming.n)
            covered = [item for item in view.items if not kept[0] <= item.order <= kept[1]]
            tokens = sum(count(told(item)) for item in covered)
            yield Segment(path.name, entries[:i], covered, text_of(coming.summary), tokens)


def measure(text: str, segment: Segment, count: Count, is_ours: bool) -> Scores:
    """Score a text by what of a segment is in it."""
    flat = one_line(BAR.sub("", text))
    changed, read, commands, errors = deeds(segment)
    names = recent_names(segment.items)
    return {
        "user_messages": share(is_kept(item, flat, is_ours) for item in typed_by_user(segment)),
        "changed_files": share(Path(path).name in text for path in changed),
        "read_files": share(Path(path).name in text for path in read),
        "commands": share(one_line(command)[:HEAD_CHARS] in flat for command in commands),
        "errors": share(one_line(error)[:HEAD_CHARS] in flat for error in errors),
        "anchors_said": share(name in text for name in names.said),
        "anchors_seen": share(
            name in text for name in seen_names(segment) if name not in names.said
        ),
        "tokens_share": count(text) / segment.tokens if segment.tokens else None,
    }


def seen_names(segment: Segment) -> set[str]:
    """Return the names in the results of the segment's last rounds."""
    rounds = [item for item in segment.items if isinstance(item, Round)][-LIMITS.current_rounds :]
    results = (result for one in rounds for result in one.results)
    return {name for result in results for name in find_names(text_of(result.content))}


def typed_by_user(segment: Segment) -> list[tuple[int, str]]:
    """List what the user typed in a segment, with the messages' numbers."""
    asked = [item for item in segment.items if isinstance(item, Spoken) and item.is_asked()]
    said = [(item.id, read_typed(item.content)) for item in asked]
    return [(id, own.text) for id, own in said if own and own.text and own.via != "shell"]


def is_kept(message: tuple[int, str], flat: str, is_ours: bool) -> bool:
    """Say whether a message is there, or both ends of a long one and a pointer."""
    id, text = message[0], one_line(message[1])
    if text in flat:
        return True
    ends = text[:END_CHARS] in flat and text[-END_CHARS:] in flat
    return len(text) > PASTE_CHARS and ends and (not is_ours or f"[#{id}]" in flat)


def deeds(segment: Segment) -> tuple[set[str], set[str], list[str], list[str]]:
    """List changed and read files, and the commands and errors of the last rounds."""
    changed, read, commands, errors = set(), set(), [], []
    rounds = [item for item in segment.items if isinstance(item, Round)]
    for left, item in zip(range(len(rounds), 0, -1), rounds, strict=True):
        for use in item.tool_uses():
            kind, result = description_of(use.name), item.result_of(use.id)
            failed = result is None or result.is_error
            paths = {p for key in kind.path_inputs if isinstance(p := use.input.get(key), str)}
            if not failed and kind.kind in ("write", "read"):
                (changed if kind.kind == "write" else read).update(paths)
            command = use.input.get(kind.command_input) if kind.command_input else None
            if left <= ROUNDS and isinstance(command, str):
                commands.append(command)
            if left <= ROUNDS and result is not None and result.is_error:
                errors.append(text_of(result.content))
    return changed, read, commands, errors


def by_digest(segment: Segment, size_tokens: int | None, count: Count) -> str:
    """Compact a segment without a model, into a size if one is given."""
    facts = gather(segment.history, segment.items)
    directed = (entry for entry in segment.history if isinstance(entry, Directed))
    ledger = DirectiveLedger().follow(facts.words(), directed)
    most = bounded_tokens(ledger, int(segment.tokens * LIMITS.words_ratio))
    words = 0 if size_tokens else min(words_tokens(ledger), most)
    budget = size_tokens or budget_for(segment.tokens, facts, words)
    reserve = int(budget * LIMITS.index_ratio)
    made = FactPieces(facts=facts, marks=ledger.marks()).digest(
        budget - reserve, count=count, words_tokens=words
    )
    names = recent_names(segment.items, ledger.open_texts())
    index = check_survival(made, names, reserve, count).index
    return f"{made}\n\n{index}" if index else made


async def by_model(segment: Segment, name: str, client: Model) -> tuple[str, bool]:
    """Have a model write the summary, as in a session, and say whether it did."""
    with open_scratch(segment.history, Settings(), client=client, model=name) as session:
        draft = await draft_compaction(session, CompactRequest(trigger="manual"), Manner())
        return draft.composed.text, draft.by == "model"


def told(item: Item) -> str:
    """Write an item as the text a tokenizer would count."""
    if isinstance(item, Spoken):
        return "\n".join(map(block_text, item.content))
    results = (text_of(result.content) for result in item.results)
    return "\n".join((*map(block_text, item.content), *results))


def block_text(block: Block) -> str:
    """Write a block as text."""
    match block:
        case Text(text=text) | Thinking(thinking=text):
            return text
        case ToolUse(name=name, input=given):
            return f"{name} {json.dumps(given, ensure_ascii=False)}"
        case ToolResult(content=content):
            return text_of(content)
    return ""


def one_line(text: str) -> str:
    """Write a text on one line."""
    return " ".join(text.split())


def share(found: Iterator[bool]) -> float | None:
    """Give the share that was found, if there was anything to find."""
    each = list(found)
    return sum(each) / len(each) if each else None


def summed(scores: list[Scores], times_ms: list[float]) -> dict[str, object]:
    """Give the median and the tenth percentile of each line."""
    lines: dict[str, object] = {}
    for line in LINES:
        values = [value for each in scores if (value := each[line]) is not None]
        lines[line] = {"median": middle(values), "p10": tenth(values)}
    return lines | {"ms_p50": round(statistics.median(times_ms), 1) if times_ms else None}


def middle(values: list[float]) -> float | None:
    """Give the median."""
    return round(statistics.median(values), 4) if values else None


def tenth(values: list[float]) -> float | None:
    """Give the tenth percentile."""
    if len(values) < 2:
        return middle(values)
    return round(statistics.quantiles(values, n=10, method="inclusive")[0], 4)


class Tally:
    """What was measured so far, by the ways the texts were made."""

    def __init__(self, ways: tuple[str, ...]) -> None:
        self.scores: dict[str, list[Scores]] = {way: [] for way in ways}
        self.times_ms: dict[str, list[float]] = {way: [] for way in ways}
        self.written = 0
        self.sessions = 0

    def add(self, way: str, scores: Scores, ms: float | None) -> None:
        """Take in one text."""
        self.scores[way].append(scores)
        if ms is not None:
            self.times_ms[way].append(ms)

    def summed(self, model: str) -> dict[str, object]:
        """Give the rows, one for each way."""
        rows: dict[str, object] = {
            way: summed(each, self.times_ms[way]) for way, each in self.scores.items()
        }
        if model:
            rows[model] = {
                **summed(self.scores[model], self.times_ms[model]),
                "written": self.written,
            }
        return rows


def measured_ways(tally: Tally, segment: Segment, count: Count) -> None:
    """Measure a segment in all ways that need no model."""
    ways: dict[str, Callable[[], str]] = {
        "digest": lambda: by_digest(segment, None, estimate_tokens),
        "digest_at_recorded_size": lambda: by_digest(segment, count(segment.summary), count),
        "recorded": lambda: segment.summary,
    }
    for way, make in ways.items():
        began = time.perf_counter()
        text = make()
        ms = (time.perf_counter() - began) * 1_000
        is_ours = way != "recorded"
        tally.add(way, measure(text, segment, count, is_ours), ms if is_ours else None)


async def run(
    files: list[Path], count: Count, *, quiet: bool, model: str = "", client: Model | None = None
) -> dict[str, object]:
    """Measure every compaction of the files in all ways."""
    tally = Tally((*WAYS, model) if model else WAYS)
    skipped = {}
    for path in files:
        try:
            found = list(segments(path, count))
        except LongholdError as error:
            skipped[path.name] = str(error)
            continue
        for segment in found:
            tally.sessions += 1
            measured_ways(tally, segment, count)
            if client is not None:
                began = time.perf_counter()
                text, is_written = await by_model(segment, model, client)
                ms = (time.perf_counter() - began) * 1_000
                tally.add(model, measure(text, segment, count, is_ours=True), ms)
                tally.written += is_written
            if not quiet:
                shares = {way: rows[-1]["tokens_share"] for way, rows in tally.scores.items()}
                print(segment.name, shares)
    rows = tally.summed(model)
    return rows | {"sessions": tally.sessions, "tokenizer": TOKENIZER, "skipped": skipped}


async def measured(
    files: list[Path], count: Count, *, quiet: bool, model: str, base_url: str
) -> dict[str, object]:
    """Measure, with a model's summaries too if one is named."""
    client = open_model(model, base_url=base_url or None) if model else None
    try:
        return await run(files, count, quiet=quiet, model=model, client=client)
    finally:
        if client is not None:
            await client.close()


def main() -> None:
    """Read the arguments and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--json", action="store_true", help="print nothing but the result")
    parser.add_argument("--model", default="", help="have this model write summaries too")
    parser.add_argument("--base-url", default="", help="where it answers, if not at its provider's")
    given = parser.parse_args()
    import bpe_openai

    encoding = bpe_openai.get_encoding(TOKENIZER)
    files = given.files or sorted(RECORDED.rglob("*.jsonl.gz"))
    if not files and not given.json:
        print("no recorded sessions here; name some files")
    result = measured(
        files,
        lambda text: len(encoding.encode(text)),
        quiet=given.json,
        model=given.model,
        base_url=given.base_url,
    )
    print(json.dumps(asyncio.run(result)))


if __name__ == "__main__":
    main()
