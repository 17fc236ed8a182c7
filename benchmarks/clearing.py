"""How much later a session must be compacted when old results are cleared, and at what price.

Recorded sessions come in (`FILES`, any format the package reads); one JSON object goes out as
the last line. Each session is played again, call by call at its own pace, without the
compactions that were recorded in it: once with everything left in, once through layers 1 and 2
as they stand, once with all but the newest five results cleared at once and for nothing, which
is the ceiling. Every call's prompt is billed by the simulator, answers left out: they are the
same for all. The frame is a text of the size that the recorded one must have had.

Counted are sessions that were compacted and whose first call is under 70K tokens: others were
taken up half way. `median_calls_to_line_ratio` is how many times as many calls come before the
line; a session that ends before it counts with the calls it had made by then, which is the least
it can have been. `cost_ratio` is ours over leaving everything in, for the same calls, however long the prompt. `reread_tokens` are
results of calls that the session itself repeated after the first was cleared.
`bytes_unrecoverable` is what the session's history does not give back exactly.

    python benchmarks/clearing.py [FILES…] [--model NAME] [--lifetime 5m|1h] [--json]
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import msgspec
from msgspec import structs

from holdfast.errors import HoldfastError
from holdfast.log import Header, Log, load
from holdfast.log.entries import (
    AnyEntry,
    Cleared,
    Compacted,
    Framed,
    Ran,
    Replied,
    Said,
    Section,
    Snipped,
    Spilled,
    Switched,
)
from holdfast.messages import ToolUse, Usage, text_of
from holdfast.messages.measure import NOTHING, measure_text
from holdfast.models.capabilities import capabilities
from holdfast.models.prices import prices
from holdfast.request.lifetime import latched
from holdfast.settings import CacheSettings, GaugeSettings, Settings, WindowSettings
from holdfast.simulator import SimulatorClock, SimulatorSettings
from holdfast.simulator.brains.echo import EchoBrain
from holdfast.simulator.request import Caller, parse_request
from holdfast.simulator.simulation import Simulation
from holdfast.stages.clear.candidates import Candidates, weight
from holdfast.stages.clear.clear import Clearing, cleared
from holdfast.stages.clear.placeholder import PlaceholderLines
from holdfast.stages.clear.policy import ClearPlan
from holdfast.stages.spill.spill import Spill
from holdfast.tools.history.history import History
from holdfast.transcripts.formats import open_transcript
from holdfast.turn.engine import AfterTurn, Engine, OnResult, Stage
from holdfast.view.window import window_for

RECORDED = Path(__file__).parents[2] / "shared" / "data" / "transcripts"
MODEL = "claude-opus-5"
"""Priced as the models that were recorded, and its tokens counted about as theirs were."""
WINDOW_TOKENS = 200_000  # the window that the recorded sessions had
FIRST_CALL_TOKENS = 70_000  # a session that begins above was compacted or cut before
KEPT_RESULTS = 5
POLICIES = ("everything", "ours", "ceiling")
WORDS = sorted(set(Path(__file__).read_text(encoding="utf-8").split()))


@dataclass(kw_only=True)
class Played:
    """One session under one policy."""

    prompts: list[int] = field(default_factory=list)
    """What each call's prompt came to, as the gauge saw it: by that a session is compacted."""
    usd: float = 0.0
    removed: list[dict[str, object]] = field(default_factory=list)
    """Before which call, how, how many results and tokens."""
    reread_tokens: float = 0.0
    lost_bytes: int = 0

    def calls_to(self, line: int) -> int | None:
        """Count the calls before the prompt is at the line; None if it never is."""
        return next((i for i, tokens in enumerate(self.prompts) if tokens >= line), None)


class Replay:
    """A session being played again."""

    def __init__(
        self,
        entries: Sequence[AnyEntry],
        settings: Settings,
        model: str,
        place: Path,
        *,
        stages: Sequence[Stage] = (),
        after_turn: Sequence[AfterTurn] = (),
        on_result: OnResult | None = None,
    ) -> None:
        self.entries = entries
        self.played = Played()
        self.simulation = Simulation(
            EchoBrain(),
            SimulatorSettings(accepts_foreign_thinking=True, enforces_binding=False),
            SimulatorClock(is_frozen=True),
        )
        self.stages, self.after_turn = tuple(stages), tuple(after_turn)
        self.engine = Engine(
            Log.create(place, Header(session="replay")),
            settings,
            on_result=on_result,
            clock=self.simulation.clock.now,
        )
        self._earlier = self.simulation.clock.now() - next(e.at for e in entries if e.at)
        self._numbers: dict[int, int] = {}
        self._responses: set[str] = set()
        self._gone: dict[str, int] = {}
        """Calls whose result was cleared, by what they asked for."""
        self.engine.record(Switched(model=model, reason="the benchmark"))
        text = frame_text(entries, self._tokens_per_word(model))
        frame = Framed(sections=(Section(name="frame", text=text),), measure=measure_text(text))
        self.engine.record(latched(frame, model, settings.cache, "chat"))

    def _tokens_per_word(self, model: str) -> float:
        """Count what a word of the frame's text takes."""
        text = " ".join(WORDS * 20)
        scale = capabilities(model).tokenizer_scale
        return self.simulation.bench.counter.text_tokens(text, scale) / len(text.split())

    async def play(self) -> Played:
        """Play every entry, with a call before each new answer."""
        clock = self.simulation.clock
        for entry in self.entries:
            clock.advance(max(0.0, entry.at + self._earlier - clock.now()))
            match entry:
                case Replied():
                    await self._answer(entry)
                case Ran():
                    self._result(entry)
                case Said():
                    self._record(entry)
                case Snipped(targets=targets):
                    known = tuple(self._numbers[n] for n in targets if n in self._numbers)
                    self._record(structs.replace(entry, targets=known, rests_on=()))
        self.engine.log.close()
        self.played.lost_bytes = lost_bytes(self.engine.log.path, self.entries)
        return self.played

    def _record(self, entry: AnyEntry) -> None:
        now = self.simulation.clock.now()
        written = self.engine.record(structs.replace(entry, n=0, at=now))
        self._numbers[entry.n] = written.n

    async def _answer(self, entry: Replied) -> None:
        is_call = entry.usage is not None and entry.usage.prompt_tokens > 0
        usage = None
        if is_call and entry.response_id not in self._responses:
            self._responses.add(entry.response_id)
            usage = await self._call()
        self._record(structs.replace(entry, model="", usage=usage))
        if usage is not None:
            self.engine.finish_turn(self.after_turn)

    def _result(self, entry: Ran) -> None:
        owner = self.engine.view.round_of(entry.tool_use_id)
        use = (
            next((u for u in owner.tool_uses() if u.id == entry.tool_use_id), None)
            if owner
            else None
        )
        if use is not None and asked_for(use) in self._gone:
            self.played.reread_tokens += weight(entry.measure)
        self._record(structs.replace(entry, file="", sha256=""))

    async def _call(self) -> Usage:
        before = len(self.engine.view.history)
        used = self.engine.fullness().used_tokens
        request = await self.engine.prepare(self.stages, max_output_tokens=1)
        for made in self.engine.view.history[before:]:
            if isinstance(made, Cleared):
                self._note(made, used - self.engine.fullness().used_tokens)
        body = msgspec.json.encode(request.kwargs | {"max_tokens": 0})
        caller = Caller(betas=frozenset(request.betas))
        outcome = await self.simulation.create(parse_request(body), caller)
        self.simulation.begin(outcome)
        cost = outcome.usage.cost(self.engine.model)
        assert cost is not None, "the model has a price"
        plan = outcome.usage.message.plan
        self.played.usd += cost.total
        self.played.prompts.append(self.engine.fullness().used_tokens)
        return Usage(
            input_tokens=plan.uncached_tokens,
            cache_read_tokens=plan.read_tokens,
            cache_write_tokens=plan.write_5m_tokens + plan.write_1h_tokens,
            cache_write_5m_tokens=plan.write_5m_tokens,
            cache_write_1h_tokens=plan.write_1h_tokens,
        )

    def _note(self, made: Cleared, tokens: int) -> None:
        """Keep what was cleared, to know it when the session asks for it again."""
        for id in made.ids:
            owner = self.engine.view.round_of(id)
            for use in owner.tool_uses() if owner else ():
                if use.id == id:
                    self._gone[asked_for(use)] = len(self.played.prompts)
        self.played.removed.append(
            {
                "call": len(self.played.prompts),
                "results": len(made.ids),
                "tokens": tokens,
                "why": made.why,
            }
        )


def asked_for(use: ToolUse) -> str:
    """Say what a call asked for, so that the same question is known again."""
    return f"{use.name} {msgspec.json.encode(use.input, order='sorted').decode()}"


def frame_text(entries: Sequence[AnyEntry], tokens_per_word: float) -> str:
    """Make a frame as large as the one must have been that the first call was sent with."""
    said, first = NOTHING, 0
    for entry in entries:
        if isinstance(entry, Replied) and entry.usage and entry.usage.prompt_tokens:
            first = entry.usage.prompt_tokens
            break
        said = said + getattr(entry, "measure", NOTHING)
    words = max(100, round((first - weight(said)) / tokens_per_word))
    return " ".join(random.Random(words).choices(WORDS, k=words))


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
        entry = cleared(
            engine, ClearPlan(way="paid", batch=batch, why="the ceiling"), PlaceholderLines()
        )
        if entry.ids:
            engine.record(entry)


def read(path: Path) -> list[AnyEntry] | None:
    """Read a session that counts, or nothing."""
    with open_transcript(path) as transcript:
        entries = list(transcript.entries)
    calls = [e.usage.prompt_tokens for e in entries if isinstance(e, Replied) and e.usage]
    first = next((tokens for tokens in calls if tokens), 0)
    was_compacted = any(isinstance(entry, Compacted) for entry in entries)
    return entries if was_compacted and 0 < first < FIRST_CALL_TOKENS else None


async def play(entries: Sequence[AnyEntry], policy: str, settings: Settings, model: str) -> Played:
    """Play a session under a policy."""
    with tempfile.TemporaryDirectory() as name:
        spill, stages, on_result = Spill(), (), None
        if policy == "ours":
            stages, on_result = (spill.stage, Clearing()), spill.arrive
        elif policy == "ceiling":
            stock = Candidates(smallest=settings.clear.smallest_tokens)

            async def stage(engine: Engine) -> None:
                instantly(engine, stock)

            stages = (stage,)
        replay = Replay(
            entries,
            settings,
            model,
            Path(name) / "log.jsonl",
            stages=stages,
            on_result=on_result,
        )
        return await replay.play()


def ratio(found: Played, everything: Played, line: int) -> float:
    """Say how many times as many calls come before the line.

    A session that ends before it would have gone on: what it had made by then is the least.
    """
    base, ours = everything.calls_to(line), found.calls_to(line)
    assert base, "a session that never reaches the line is not counted"
    return (len(found.prompts) if ours is None else ours) / base


async def measure(files: Sequence[Path], settings: Settings, model: str, quiet: bool) -> dict:
    """Play all sessions under all policies and sum up."""
    line = window_for(model, settings.window).auto_tokens
    played: list[dict[str, Played]] = []
    skipped: Counter[str] = Counter()
    for path in files:
        try:
            entries = read(path)
        except HoldfastError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        if entries is None:
            skipped["not compacted, or begun half way"] += 1
            continue
        one = {name: await play(entries, name, settings, model) for name in POLICIES}
        if not one["everything"].calls_to(line):
            skipped["does not reach the line"] += 1
            continue
        played.append(one)
        if not quiet:
            tell(path.name, one, line)
    return figures(played, line) | {"skipped": dict(skipped)}


def tell(name: str, one: dict[str, Played], line: int) -> None:
    """Show one session."""
    everything, ours, ceiling = (one[policy] for policy in POLICIES)
    print(
        f"{name[:40]:<40} {len(everything.prompts):>4} calls  line at {everything.calls_to(line)}"
        f" -> {ours.calls_to(line)} (ceiling {ceiling.calls_to(line)})"
        f"  ${everything.usd:.2f} -> ${ours.usd:.2f}  longest {max(ours.prompts):,}"
    )
    for cut in ours.removed:
        print(f"      before call {cut['call']:>4}: {cut['tokens']:>7,} tokens: {cut['why']}")


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
        "reread_tokens": round(sum(one.reread_tokens for one in ours)),
        "bytes_unrecoverable": sum(one.lost_bytes for one in ours),
        "ceiling_calls_to_line_ratio": later("ceiling"),
        "never_at_the_line": sum(one.calls_to(line) is None for one in ours),
        "clearings": sum(len(one.removed) for one in ours),
        "cleared_results": sum(int(str(cut["results"])) for one in ours for cut in one.removed),
        "removed_tokens": sum(int(str(cut["tokens"])) for one in ours for cut in one.removed),
        "dearer_sessions": sum(one["ours"].usd > one["everything"].usd for one in played),
    }


def main() -> None:
    """Play the sessions and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--lifetime", default="1h", choices=("5m", "1h"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    settings = Settings(
        window=WindowSettings(limit_tokens=WINDOW_TOKENS),
        cache=CacheSettings(lifetime=options.lifetime, diagnose=False),
        gauge=GaugeSettings(calibrate=False),
    )
    files = options.files or sorted(RECORDED.rglob("*.jsonl.gz"))
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
    print(json.dumps(found | fixed))


if __name__ == "__main__":
    main()
