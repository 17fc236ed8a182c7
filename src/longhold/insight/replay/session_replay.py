"""Replays a recorded session call by call, with its recorded pauses, under other rules.

Messages, results and answers come from the recording. The given stages decide what leaves the view.
A simulated provider bills every prompt, including overhead calls. Recorded compactions are played
only with `as_recorded`.
"""

import asyncio
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from longhold.core.log import Header, Log
from longhold.core.log.entries import (
    AnyEntry,
    Cleared,
    Compacted,
    Forked,
    Framed,
    Ran,
    Replied,
    Said,
    Section,
    Snipped,
    SpokenContent,
    Switched,
)
from longhold.core.log.shared import FileRecords
from longhold.core.memory.session_memory import MemoryJobs
from longhold.core.messages import JsonObject, Text, ToolUse, Usage
from longhold.core.messages.measure import measure_text
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import price_call, prices
from longhold.core.policy.candidates import weight
from longhold.core.request.billing.cache import SimulatorClock
from longhold.core.request.billing.edits import CLEARED_PLACEHOLDER
from longhold.core.request.lifetime import latch_lifetime, lifetime_seconds
from longhold.core.settings import Settings
from longhold.core.stages.compact.owner import CompactionHooks
from longhold.core.stages.compact.segment import Segment, kept_rounds, shown_paths
from longhold.core.stages.compact.summary import HEADINGS
from longhold.core.stages.layers import build_layers
from longhold.core.stages.spill.spill import Spill
from longhold.core.tools.describe import MEMORY
from longhold.core.turn.answering import own_refusal
from longhold.core.turn.background import Background
from longhold.core.turn.engine import AfterTurn, Engine, Stage
from longhold.core.turn.fork.asking import AskFork, ForkReply, ForkRequest, deny_all
from longhold.core.view.window import scale_tokens
from longhold.errors import BudgetSpent, LongholdError
from longhold.insight.replay.billing import PromptBill, PromptBiller
from longhold.insight.replay.recorded_session import RecordedSession, filler
from longhold.insight.replay.regret import Regrets, RegretSource
from longhold.insight.replay.result import ReplayResult

TOOLS = ("Edit", "Read", "Write", MEMORY)
"""Tools that the frame must list, because some layers need them."""
JOB_SECONDS = 60.0
ASKING_TOKENS = 150
"""Output tokens of an answer that only calls a tool."""
CHARS_PER_TOKEN = 4
WRITTEN = "As the log says."
NO_NOTES = re.compile(rf"^_[^\n]+_$(?!\n\n{WRITTEN})", re.MULTILINE)
"""The description of an empty section of the notes."""
SUMMARY = "\n\n".join(f"## {n}. {title}\n{WRITTEN}" for n, title in HEADINGS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSize:
    calls: int = 1
    output_tokens: int = 0
    """The total over all calls of the fork."""


FORK_SIZES = {
    "compact": ForkSize(output_tokens=5_000),
    "notes": ForkSize(calls=2, output_tokens=950),
    "memory": ForkSize(calls=2, output_tokens=400),
}
"""Typical sizes. Notes and memories take two calls for a few edits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayStages:
    stages: tuple[Stage, ...] = ()
    after_turn: tuple[AfterTurn, ...] = ()
    close: Callable[[], None] = lambda: None


BuildStages = Callable[[Engine, Spill, AskFork, CompactionHooks, Background], ReplayStages]


def standard_stages(
    engine: Engine, spill: Spill, ask: AskFork, hooks: CompactionHooks, background: Background
) -> ReplayStages:
    layers = build_layers(spill, ask=ask, hooks=hooks, background=background, edits_notes=True)
    memory = MemoryJobs(
        engine=engine,
        root=engine.directory,
        home=engine.directory,
        ask=ask,
        unasked=lambda places: deny_all,
        background=background,
        notify=lambda line: None,
        caller="chat",
        clock=engine.monitor.clock,
    )
    return ReplayStages(
        stages=layers.stages,
        after_turn=(*layers.after_turn, memory.after_turn),
        close=memory.store.close,
    )


class _NothingShared(FileRecords):
    """Hides other sessions' calibration, so that a replay has the same figures on every machine."""

    def read(self, name: str) -> bytes:
        return b""


class SessionReplay:
    def __init__(
        self,
        recording: RecordedSession,
        settings: Settings,
        model: str,
        place: Path,
        *,
        build: BuildStages = standard_stages,
        options: JsonObject | None = None,
        as_recorded: bool = False,
    ) -> None:
        self.recording = recording
        self.result = ReplayResult()
        self._clock = SimulatorClock(is_frozen=True)
        self.biller = PromptBiller(self._clock, recording.counter, recording.density)
        self._background, spill = Background(), Spill()
        self.engine = Engine(
            Log.create(place, Header(session="replay"), shared=_NothingShared(place.parent)),
            settings,
            on_result=spill.arrive,
            clock=self._clock.now,
        )
        hooks = CompactionHooks(restore=self._restore)
        self._built = build(self.engine, spill, self.ask, hooks, self._background)
        self._as_recorded = as_recorded
        first = next((entry.at for entry in recording.entries if entry.at), 0.0)
        self._earlier = self._clock.now() - first
        self._numbers: dict[int, int] = {}
        self._responses: set[str] = set()
        self._is_open = False
        self._called_at: float | None = None
        self._regrets = Regrets(
            recording, lambda: self.engine.view, lambda n: self._numbers.get(n, 0)
        )
        self._served: set[str] = set()
        self._begin(model, options or {})

    def _begin(self, model: str, options: JsonObject) -> None:
        self.engine.record(Switched(model=model, reason="replayed"))
        scale = capabilities(self.recording.model).tokenizer_scale * self.recording.density
        text = filler(round(self.recording.frame_tokens / scale))
        tools: tuple[JsonObject, ...] = tuple(
            {"name": name, "description": name, "input_schema": {"type": "object"}}
            for name in TOOLS
        )
        sections = (Section(name="frame", text=text),)
        frame = Framed(sections=sections, tools=tools, options=options, measure=measure_text(text))
        self.engine.record(latch_lifetime(frame, model, self.engine.settings.cache, "chat"))
        if missing := round(self.recording.missing_tokens / scale):
            self._begin_late(filler(missing))

    def _begin_late(self, text: str) -> None:
        """Insert the unrecorded history as one finished answer."""
        around = Text(text="What came before the first record is not known.")
        said = Said(content=(around,), hidden=True, measure=measure_text(around.text))
        answer = Replied(
            response_id="before",
            content=(Text(text=text),),
            stop_reason="end_turn",
            measure=measure_text(text),
        )
        for entry in (said, answer, said):
            self.engine.record(entry)

    async def play(self) -> ReplayResult:
        try:
            for entry in self.recording.entries:
                self._clock.advance(max(0.0, entry.at + self._earlier - self._clock.now()))
                if self._is_open and not (
                    isinstance(entry, Replied) and entry.response_id in self._responses
                ):
                    await self._finish()
                await self._play(entry)
                for source in self._regrets.follow(entry):
                    self._miss(source)
            await self._finish()
        except LongholdError as error:
            self.result.stop(str(error))
        finally:
            await self._background.stop()
            self._built.close()
            self.engine.log.close()
        return self.result

    async def _play(self, entry: AnyEntry) -> None:
        match entry:
            case Replied():
                await self._answer(entry)
            case Ran():
                self._record(structs.replace(entry, file="", sha256=""))
            case Said():
                self._record(entry)
            case Snipped(targets=targets):
                known = tuple(self._numbers[n] for n in targets if n in self._numbers)
                self._record(structs.replace(entry, targets=known, rests_on=()))
                self._regrets.forget(targets)
            case Compacted() if self._as_recorded:
                self._record(self._renumber(entry))
                self.result.add_change(entry)
            case Cleared() if self._as_recorded:
                self._record(structs.replace(entry, rests_on=()))

    def _renumber(self, entry: Compacted) -> Compacted:
        covered = [mine for n, mine in self._numbers.items() if n <= entry.last]
        kept = [self._numbers[n] for n in entry.kept or () if n in self._numbers]
        return structs.replace(
            entry,
            first=1,
            last=max(covered, default=0),
            kept=(kept[0], kept[-1]) if kept else None,
            rests_on=(),
        )

    def _record(self, entry: AnyEntry) -> None:
        written = self.engine.take(structs.replace(entry, n=0, at=self._clock.now()))
        self._numbers[entry.n] = written.n

    async def _answer(self, entry: Replied) -> None:
        said = self.engine.view.messages()[-1:]
        is_sendable = bool(said) and said[0].role == "user"  # not if the recording begins late
        is_call = bool(entry.usage and entry.usage.prompt_tokens) and is_sendable
        usage = None
        if is_call and entry.response_id not in self._responses:
            self._responses.add(entry.response_id)
            assert entry.usage is not None
            if self._as_recorded and entry.model and entry.model != self.engine.model:
                self.engine.record(Switched(model=entry.model, reason="recorded"))
            usage = await self._call(entry.usage.output_tokens)
            self._is_open = True
        is_rest = not any(isinstance(block, ToolUse) for block in entry.content)
        stop = entry.stop_reason or ("end_turn" if is_rest else "tool_use")
        model = self.engine.model if usage else ""
        self._record(structs.replace(entry, model=model, usage=usage, stop_reason=stop))

    def _take_served(self, bill: PromptBill) -> None:
        ids = tuple(sorted(bill.cleared - self._served))
        if ids:
            self._served.update(ids)
            texts = (CLEARED_PLACEHOLDER,) * len(ids)
            entry = self.engine.record(Cleared(ids=ids, texts=texts, how="server"))
            self.result.add_change(entry)

    async def _finish(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self.engine.finish_turn(self._built.after_turn)
        await self._end_jobs()

    async def _end_jobs(self) -> None:
        for job in list(self._background.jobs.values()):
            await job.wait(JOB_SECONDS)

    async def _call(self, output_tokens: int) -> Usage:
        before, stages = len(self.engine.view.history), self._built.stages
        request = await self.engine.prepare(stages, max_output_tokens=1)
        for made in self.engine.view.history[before:]:
            self.result.add_change(made)
            self._regrets.see(made)
        await self._end_jobs()  # such as a summary
        bill = self.biller.bill(request)
        self._count(bill)
        usage = structs.replace(bill.usage, output_tokens=output_tokens)
        self._explain(bill, usage)
        paid = price_call(self.engine.model, usage)
        self.result.add_call(paid, self.engine.fullness().used_tokens)
        return usage

    def _explain(self, bill: PromptBill, usage: Usage) -> None:
        """Add the call's price by cause. If the cache had expired, that is the only cause."""
        now, model = self._clock.now(), self.engine.model
        lives = lifetime_seconds(model, self.engine.frame.lifetime)
        is_cold = self._called_at is not None and now - self._called_at > lives
        self._called_at = now
        if listed := prices(model):
            why = "expired" if is_cold else "moved" if bill.moved else "new"
            self.result.add_paid(listed.price(usage), bill.read_by, why)

    def _count(self, bill: PromptBill) -> None:
        limit = self.engine.settings.window.limit_tokens
        window = limit or capabilities(self.engine.model).window_tokens
        self.result.count(is_over=bill.usage.prompt_tokens > window, is_moved=bill.moved)
        self._take_served(bill)

    async def ask(self, request: ForkRequest) -> ForkReply:
        """Answer an overhead question with a fixed reply, billed as a model's answer."""
        if not request.is_wanted and (why := own_refusal(self.engine, request.source)):
            raise BudgetSpent(f"no call was made: {why}")
        size = FORK_SIZES.get(request.source, ForkSize(output_tokens=300))
        prefix, said = request.prefix or self.engine.prefix(), str(request.say)
        own: list[JsonObject] = [{"role": "user", "content": [{"type": "text", "text": said}]}]
        calls = []
        for number in range(size.calls):
            usage = self.biller.bill(prefix.build_request(own), request.source).usage
            usage = structs.replace(usage, output_tokens=size.output_tokens // size.calls)
            calls.append(usage)
            model, source = self.engine.model, request.source
            self.engine.report(Forked(source=source, model=model, usage=usage, turn=number + 1))
            self.result.add_own_call(source, price_call(model, usage))
        for draft in request.knows if request.source == "notes" else ():
            # Fill each section like a model, because empty notes could not replace history.
            page = draft.path.read_text("utf-8")
            draft.path.write_text(NO_NOTES.sub(rf"\g<0>\n\n{WRITTEN}", page), encoding="utf-8")
        text = SUMMARY if request.source == "compact" else "Done."
        return ForkReply(
            text=text,
            content=(Text(text=text),),
            stop_reason="end_turn",
            reason="completed",
            turns=size.calls,
            calls=tuple(calls),
            seconds=0.0,
        )

    async def _restore(self, segment: Segment) -> SpokenContent:
        kept = shown_paths(kept_rounds(self.engine.view, segment))
        room = self.engine.settings.compact
        each = scale_tokens(room.restore_file_tokens, self.engine.fullness().window.limit_tokens)
        texts = self._regrets.offer(room.restore_files, each * CHARS_PER_TOKEN, without=kept)
        return tuple(Text(text=text) for text in texts)

    def _miss(self, source: RegretSource) -> None:
        prompt = self.result.prompts[-1] if self.result.prompts else 0
        tokens = round(weight(source.measure))
        again = Usage(
            cache_read_tokens=prompt, cache_write_tokens=tokens, output_tokens=ASKING_TOKENS
        )
        self.result.add_need(source.kind, tokens, price_call(self.engine.model, again).usd)


def play_session(
    recording: RecordedSession,
    settings: Settings,
    model: str,
    *,
    build: BuildStages = standard_stages,
    options: JsonObject | None = None,
    as_recorded: bool = False,
) -> ReplayResult:
    with tempfile.TemporaryDirectory() as name:
        replay = SessionReplay(
            recording,
            settings,
            model,
            Path(name) / "log.jsonl",
            build=build,
            options=options,
            as_recorded=as_recorded,
        )
        return asyncio.run(replay.play())
