"""How much later a session must be compacted when old results are cleared, and at what price.

Reads recorded sessions (`FILES`, in any format that Longhold reads) and prints one JSON object as
the last line. Each session is replayed three times (`longhold.insight.replay`): without clearing,
with layers 1 and 2, and with all but the newest five results cleared at no cost, which is the upper
bound.

Only sessions that were compacted and begin with a call under 70K tokens count; others were already
in progress. `median_calls_to_line_ratio` is the factor by which the number of calls before the
threshold grows. A session that ends earlier counts with its calls until then, which is a lower
bound. `cost_ratio` is the cost with Longhold divided by the cost without clearing, for the same
calls. `regret_tokens` counts sources that had left the view when the session needed them.
`bytes_unrecoverable` counts bytes that the session's history does not return exactly.

    python benchmarks/clearing.py [FILES…] [--model NAME] [--lifetime 5m|1h] [--json]
"""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness import make_replay_parser, print_result, recordings
from longhold.core.log import load
from longhold.core.log.entries import AnyEntry, Cleared, Compacted, Ran, Spilled
from longhold.core.messages import text_of
from longhold.core.models.prices import prices
from longhold.core.policy.candidates import Candidates
from longhold.core.policy.clearing import Clear
from longhold.core.settings import CacheSettings, GaugeSettings, Settings, WindowSettings
from longhold.core.stages.clear.clear import Clearing, make_cleared
from longhold.core.stages.compact.owner import CompactionHooks
from longhold.core.stages.spill.spill import Spill
from longhold.core.tools.history.history import History
from longhold.core.turn.background import Background
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork
from longhold.core.view.window import window_for
from longhold.errors import LongholdError
from longhold.insight.replay.policies import NO_LAYERS, apply_changes, no_stages
from longhold.insight.replay.recorded_session import RecordedSession, read_recording
from longhold.insight.replay.result import ReplayResult
from longhold.insight.replay.session_replay import BuildStages, ReplayStages, SessionReplay

WINDOW_TOKENS = 200_000  # the window that the recorded sessions had
FIRST_CALL_TOKENS = 70_000  # a session that begins above was compacted or cut before
KEPT_RESULTS = 5
POLICIES = ("everything", "ours", "ceiling")


@dataclass(kw_only=True)
class Played:
    """One session under one policy."""

    result: ReplayResult
    lost_bytes: int

    @property
    def usd(self) -> float:
        return self.result.total.usd

    def calls_to(self, line: int) -> int | None:
        """Count the calls before the prompt is at the line; None if it never is."""
        gauged = self.result.gauged
        return next((i for i, tokens in enumerate(gauged) if tokens >= line), None)


def lost_bytes(path: Path, entries: Sequence[AnyEntry]) -> int:
    """Count the bytes of results that left the view and do not come back exactly."""
    history = load(path).entries
    past = History(lambda: history, directory=path.with_suffix(""))
    left = {
        id
        for entry in history
        for id in (
            entry.ids
            if isinstance(entry, Cleared)
            else (entry.tool_use_id,)
            if isinstance(entry, Spilled)
            else ()
        )
    }
    whole = {
        entry.tool_use_id: text_of(entry.content) for entry in entries if isinstance(entry, Ran)
    }
    lost = 0
    for id in sorted(left):
        text = whole[id]
        shown = past.open(id, limit_chars=len(text) + 1).page.text if text else ""
        lost += 0 if shown == text else len(text.encode())
    past.close()
    return lost


def instantly(engine: Engine, stock: Candidates) -> None:
    """Clear all but the newest, whatever it costs."""
    stock.follow(engine.view)
    batch = stock.batch(KEPT_RESULTS)
    if batch:
        entry = make_cleared(engine, Clear(batch=batch, why="the ceiling"))
        if entry.ids:
            engine.record(entry)


def read(path: Path) -> RecordedSession | None:
    """Read a session that counts, or nothing."""
    recording = read_recording(path)
    first = recording.answers[0].usage.prompt_tokens if recording.answers else 0
    was_compacted = any(isinstance(entry, Compacted) for entry in recording.entries)
    return recording if was_compacted and 0 < first < FIRST_CALL_TOKENS else None


def first_layers(
    engine: Engine, spill: Spill, ask: AskFork, hooks: CompactionHooks, background: Background
) -> ReplayStages:
    return ReplayStages(stages=(spill, Clearing()))


def ceiling(
    engine: Engine, spill: Spill, ask: AskFork, hooks: CompactionHooks, background: Background
) -> ReplayStages:
    stock = Candidates(smallest=engine.settings.clear.smallest_tokens)

    async def stage(engine: Engine) -> None:
        instantly(engine, stock)

    return ReplayStages(stages=(stage,))


BUILDS: dict[str, BuildStages] = {
    "everything": no_stages,
    "ours": first_layers,
    "ceiling": ceiling,
}


async def play(recording: RecordedSession, policy: str, settings: Settings, model: str) -> Played:
    """Play a session under a policy."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "log.jsonl"
        chosen = settings if policy == "ours" else apply_changes(settings, NO_LAYERS)
        replay = SessionReplay(recording, chosen, model, place, build=BUILDS[policy])
        result = await replay.play()
        return Played(result=result, lost_bytes=lost_bytes(place, recording.entries))


def ratio(found: Played, everything: Played, line: int) -> float:
    """Say how many times as many calls come before the line.

    A session that ends before it would have gone on: what it had made by then is the least.
    """
    base, ours = everything.calls_to(line), found.calls_to(line)
    assert base, "a session that never reaches the line is not counted"
    return (len(found.result.prompts) if ours is None else ours) / base


async def measure(files: Sequence[Path], settings: Settings, model: str, quiet: bool) -> dict:
    """Play all sessions under all policies and sum up."""
    line = window_for(model, settings.window).auto_tokens
    played: list[dict[str, Played]] = []
    skipped: Counter[str] = Counter()
    for path in files:
        try:
            recording = read(path)
        except LongholdError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        if recording is None:
            skipped["not compacted, or begun half way"] += 1
            continue
        one = {name: await play(recording, name, settings, model) for name in POLICIES}
        if not one["everything"].calls_to(line):
            skipped["does not reach the line"] += 1
            continue
        played.append(one)
        if not quiet:
            tell(path.name, one, line)
    return figures(played, line) | {"skipped": dict(skipped)}


def tell(name: str, one: dict[str, Played], line: int) -> None:
    """Show one session."""
    everything, ours, most = (one[policy] for policy in POLICIES)
    print(
        f"{name[:40]:<40} {len(everything.result.prompts):>4} calls"
        f"  line at {everything.calls_to(line)} -> {ours.calls_to(line)}"
        f" (ceiling {most.calls_to(line)})  ${everything.usd:.2f} -> ${ours.usd:.2f}"
    )
    for call, made in ours.result.cleared:
        print(f"      before call {call:>4}: {made.why}")


def figures(played: Sequence[dict[str, Played]], line: int) -> dict:
    """Sum up."""

    def later(policy: str) -> float | None:
        ratios = [ratio(one[policy], one["everything"], line) for one in played]
        return round(median(ratios), 3) if ratios else None

    ours = [one["ours"] for one in played]
    paid = sum(one["everything"].usd for one in played)
    return {
        "sessions": len(played),
        "median_calls_to_line_ratio": later("ours"),
        "cost_ratio": round(sum(one.usd for one in ours) / paid, 4) if paid else None,
        "regret_tokens": sum(one.result.needed_tokens.total() for one in ours),
        "bytes_unrecoverable": sum(one.lost_bytes for one in ours),
        "ceiling_calls_to_line_ratio": later("ceiling"),
        "never_at_the_line": sum(one.calls_to(line) is None for one in ours),
        "clearings": sum(len(one.result.cleared) for one in ours),
        "cleared_results": sum(len(made.ids) for one in ours for _, made in one.result.cleared),
        "dearer_sessions": sum(one["ours"].usd > one["everything"].usd for one in played),
    }


def main() -> None:
    """Play the sessions and print what came of it."""
    options = make_replay_parser(__doc__).parse_args()
    settings = Settings(
        window=WindowSettings(limit_tokens=WINDOW_TOKENS),
        cache=CacheSettings(lifetime=options.lifetime or "5m", diagnose=False),
        gauge=GaugeSettings(calibrate=False),
    )
    with recordings(options.files, options.sessions) as files:
        found = asyncio.run(measure(files, settings, options.model, options.json))
    listed = prices(options.model)
    assert listed is not None
    fixed = {
        "model": options.model,
        "line_tokens": window_for(options.model, settings.window).auto_tokens,
        "lifetime": options.lifetime,
        "usd_per_mtok": {
            "read": listed.read,
            "write": listed.write_1h if options.lifetime == "1h" else listed.write_5m,
        },
    }
    print_result(found | fixed, options.json)


if __name__ == "__main__":
    main()
