"""Notes on recorded sessions: their cost, and what is left when they replace history.

Recorded sessions come in (`FILES`, any format the package reads; by default those beside the
project). Each is played again, call by call, through the stages as they stand, without the
compactions that were recorded in it, in a window of 200K. Notes are kept as the settings say;
where the line is reached they stand for history, without a model. Every compaction is measured
as `retention.py` measures one, over all that stood in the view, and beside it the digest of the
same segment: `from_notes` and `digest`. What stays word for word counts as kept, and its tokens
count as left.

What updates by a model would read and cost is worked out on the simulator for the same moments:
each is one more call on the conversation's own prefix, with the question behind it and an answer
of `ANSWER_TOKENS`. `update_read_share` is how much of the tokens up to the parent's last marker
it reads; `updates_usd` what all of them cost together, `calls_usd` what the prompts of the
session's own calls cost.

`no_call_share` is the share of automatic compactions that needed no model call, `ms_p95` how long
they took without what is restored from disk.

    python benchmarks/notes.py [FILES…] [--json] [--sessions N]
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from clearing import WINDOW_TOKENS, read
from harness import MODEL, RECORDED, make_parser, print_result
from longhold.core.log.entries import AnyEntry, Compacted, Noted
from longhold.core.messages import Usage, text_of
from longhold.core.models.prices import price_call
from longhold.core.settings import (
    CacheSettings,
    ClearSettings,
    GaugeSettings,
    Settings,
    WindowSettings,
)
from longhold.core.stages.compact.owner import CompactionHooks, CompactRequest
from longhold.core.stages.layers import build_layers
from longhold.core.stages.notes.update import ask_for_update
from longhold.core.stages.spill.spill import Spill
from longhold.core.turn.background import Background
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork
from longhold.core.turn.fork.prefix import Prefix
from longhold.core.view.items import Item, Round
from longhold.core.view.tokens import estimate_tokens
from longhold.core.view.window import window_for
from longhold.errors import LongholdError
from longhold.insight.replay.recorded_session import RecordedSession
from longhold.insight.replay.session_replay import ReplayStages, SessionReplay
from retention import Scores, Segment, by_digest, measure, summed, told

ANSWER_TOKENS = 900
"""Of one update: five edits of a few lines each."""
WAYS = ("from_notes", "digest")


@dataclass(kw_only=True)
class Found:
    """What all sessions came to."""

    sessions: int = 0
    updates: int = 0
    update_ms: list[float] = field(default_factory=list)
    reads: list[tuple[int, int]] = field(default_factory=list)
    """Of each update: what it read, of what was left for it."""
    updates_usd: float = 0.0
    calls_usd: float = 0.0
    compactions: int = 0
    without_call: int = 0
    ms: list[float] = field(default_factory=list)
    after_share: list[float] = field(default_factory=list)
    scores: dict[str, list[Scores]] = field(default_factory=lambda: {way: [] for way in WAYS})
    digest_ms: list[float] = field(default_factory=list)


class Played(SessionReplay):
    """A session played through spilling, notes and compaction."""

    def __init__(
        self,
        recording: RecordedSession,
        settings: Settings,
        place: Path,
        found: Found,
        count: object,
    ) -> None:
        self._found, self._tokens_in = found, count
        self._noted = 0
        super().__init__(recording, settings, MODEL, place, build=self._build)

    def _build(
        self,
        engine: Engine,
        spill: Spill,
        ask: AskFork,
        hooks: CompactionHooks,
        background: Background,
    ) -> ReplayStages:
        layers = build_layers(spill, background=background)
        self._notes, self._compaction = layers.notes, layers.compact
        return ReplayStages(stages=(spill, self._compact), after_turn=layers.after_turn)

    async def _finish(self) -> None:
        """Let the update that an answer brings up come to its end, as a real session would."""
        began = time.perf_counter()
        await super()._finish()
        if self._update():
            self._found.update_ms.append((time.perf_counter() - began) * 1_000)

    async def _compact(self, engine: Engine) -> None:
        """Compact if it is time."""
        full = engine.fullness()
        if full.used_tokens < full.window.auto_tokens:
            return
        items, history = list(engine.view.items), list(engine.view.history)
        began = time.perf_counter()
        try:
            entry = await self._compaction.compact(engine, CompactRequest())
        except LongholdError as error:
            print(f"not compacted: {error}", file=sys.stderr)
            return
        self._found.ms.append((time.perf_counter() - began) * 1_000)
        self._found.compactions += 1
        self._found.without_call += entry.usage is None
        self._found.after_share.append(entry.after_tokens / entry.before_tokens)
        self._measure(entry, items, history)

    def _measure(self, entry: Compacted, items: list, history: list[AnyEntry]) -> None:
        count = self._tokens_in
        tokens = sum(count(told(item)) for item in items)
        segment = Segment("", history, items, "", tokens)
        first = entry.kept[0] if entry.kept else entry.n
        kept = [shown(item) for item in items if item.id >= first and item.id > entry.last]
        text = "\n\n".join((text_of(entry.summary), *kept))
        self._found.scores["from_notes"].append(measure(text, segment, count, True))
        began = time.perf_counter()
        digest = by_digest(segment, None, estimate_tokens)
        self._found.digest_ms.append((time.perf_counter() - began) * 1_000)
        self._found.scores["digest"].append(measure(digest, segment, count, True))

    def _update(self) -> bool:
        """Work out what a model's update would read, for each that the engine made."""
        noted = [e for e in self.engine.view.history[self._noted :] if isinstance(e, Noted)]
        self._noted = len(self.engine.view.history)
        if not noted or self.engine.view.reported is None:
            return False
        self._found.updates += len(noted)
        left = self.engine.view.reported.usage
        usage = self._forked(self.engine.prefix())
        marked = left.cache_read_tokens + left.cache_write_tokens
        if marked:
            self._found.reads.append((min(usage.cache_read_tokens, marked), marked))
        self._found.updates_usd += price_call(self.engine.model, usage).usd
        return True

    def _forked(self, prefix: Prefix) -> Usage:
        """Have what a fork would send billed."""
        file = self._notes.file(self.engine)
        asked = ask_for_update(file.read().page, file.draft, Path(tempfile.gettempdir()))
        own = [{"role": "user", "content": [{"type": "text", "text": asked}]}]
        usage = self.biller.bill(prefix.build_request(own), "notes").usage
        return structs.replace(usage, output_tokens=ANSWER_TOKENS)


async def run(files: Sequence[Path], count: object, most: int, quiet: bool) -> dict[str, object]:
    """Play all sessions and sum up."""
    settings = Settings(
        window=WindowSettings(limit_tokens=WINDOW_TOKENS),
        cache=CacheSettings(lifetime="1h", diagnose=False),
        gauge=GaugeSettings(calibrate=False),
        clear=ClearSettings(on=False),  # it would put compactions off, and they are measured here
    )
    found, skipped = Found(), 0
    for path in files:
        try:
            recording = read(path)
        except LongholdError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        if recording is None or found.sessions >= most:
            skipped += 1
            continue
        found.sessions += 1
        with tempfile.TemporaryDirectory() as name:
            before = found.compactions, found.updates
            one = Played(recording, settings, Path(name) / "log.jsonl", found, count)
            await one.play()
            found.calls_usd += one.result.main.usd
        if not quiet:
            made, noted = found.compactions - before[0], found.updates - before[1]
            print(
                f"{path.name[:40]:<40} {noted:>3} updates, {made} compactions, {found.ms[-made:] if made else ''}"
            )
    return figures(found, settings) | {"skipped": skipped}


def figures(found: Found, settings: Settings) -> dict[str, object]:
    """Sum up."""
    ways = {
        "from_notes": summed(found.scores["from_notes"], found.ms),
        "digest": summed(found.scores["digest"], found.digest_ms),
    }
    return {
        "sessions": found.sessions,
        "updates": found.updates,
        "update_read_share": share_of(found.reads),
        "update_read_share_least": share_of([min(found.reads, key=lambda r: r[0] / r[1])])
        if found.reads
        else None,
        "updates_usd": round(found.updates_usd, 4),
        "calls_usd": round(found.calls_usd, 4),
        "update_ms_p95": p95(found.update_ms),
        "compactions": found.compactions,
        "no_call_share": round(found.without_call / found.compactions, 4)
        if found.compactions
        else None,
        "ms_p95": p95(found.ms),
        "tokens_after_share": round(statistics.median(found.after_share), 4)
        if found.after_share
        else None,
        **ways,
        "line_tokens": window_for(MODEL, settings.window).auto_tokens,
        "model": MODEL,
    }


def p95(values: Sequence[float]) -> float | None:
    """Give the 95th percentile."""
    if len(values) < 2:
        return round(values[0], 1) if values else None
    return round(statistics.quantiles(values, n=20, method="inclusive")[-1], 1)


def share_of(reads: Sequence[tuple[int, int]]) -> float | None:
    """Give what was read over what could be."""
    whole = sum(left for _, left in reads)
    return round(sum(read for read, _ in reads) / whole, 4) if whole else None


def shown(item: Item) -> str:
    """Write an item that stays in the view: as `told`, with the inputs of tools as they are."""
    uses = item.tool_uses() if isinstance(item, Round) else ()
    inputs = [value for use in uses for value in use.input.values() if isinstance(value, str)]
    return "\n".join((told(item), *inputs))


def main() -> None:
    """Read the arguments and print one JSON object."""
    parser = make_parser(__doc__, takes_files=True)
    parser.add_argument("--sessions", type=int, default=1_000, help="so many at most")
    given = parser.parse_args()
    import bpe_openai

    encoding = bpe_openai.get_encoding("o200k_base")
    files = given.files or sorted(RECORDED.rglob("*.jsonl.gz"))
    if not files and not given.json:
        print("no recorded sessions here; name some files")
    count = lambda text: len(encoding.encode(text))  # noqa: E731
    print_result(asyncio.run(run(files, count, given.sessions, given.json)), given.json)


if __name__ == "__main__":
    main()
