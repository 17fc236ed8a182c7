"""A recorded session played again, call by call at its own pace, under other rules.

What people, tools and the model said is the recording's; what leaves the view, and when, is decided
anew by the stages that are given. Every prompt is billed by a simulated provider with its cache, as
is every call that the engine makes for itself. Recorded compactions are left out. The frame is a text
of the size that the recorded one must have had.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import structs

from holdfast.errors import BudgetSpent
from holdfast.log import Header, Log
from holdfast.log.entries import (
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
from holdfast.log.spending import spent_on
from holdfast.memory.jobs import MemoryJobs
from holdfast.memory.tool import MEMORY
from holdfast.messages import JsonObject, Text, ToolUse, Usage
from holdfast.messages.measure import NOTHING, measure_text
from holdfast.models.capabilities import capabilities
from holdfast.models.protocol import Request
from holdfast.request.lifetime import latched
from holdfast.settings import Settings
from holdfast.simulator.brains.echo import EchoBrain
from holdfast.simulator.clock import SimulatorClock
from holdfast.simulator.needs import Need, Needs
from holdfast.simulator.request import Caller, parse_request
from holdfast.simulator.settings import SimulatorSettings
from holdfast.simulator.simulation import Simulation
from holdfast.stages.clear.candidates import weight
from holdfast.stages.compact.hooks import CompactionHooks
from holdfast.stages.compact.segment import Segment
from holdfast.stages.compact.summary import HEADINGS
from holdfast.stages.spill.spill import Spill
from holdfast.stages.standard import build_layers
from holdfast.turn.background import Background
from holdfast.turn.engine import AfterTurn, Engine, Stage
from holdfast.turn.fork import AskFork, ForkReply, ForkRequest
from holdfast.turn.fork.asking import deny_all
from holdfast.turn.own_calls import own_refusal

WORDS = sorted(set(Path(__file__).read_text(encoding="utf-8").split()))
TOOLS = ("Edit", "Read", "Write", MEMORY)
"""Listed in the frame, so that layers which need them find them."""
JOB_SECONDS = 60.0
RESTORED_FILES = 5
RESTORED_CHARS = 20_000
SUMMARY = "\n\n".join(f"## {n}. {title}\nAs the log says." for n, title in HEADINGS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSize:
    """What one question of the engine's own to the model comes to."""

    calls: int = 1
    output_tokens: int = 0
    """Of all its calls together."""


FORK_SIZES = {
    "compact": ForkSize(output_tokens=5_000),
    "notes": ForkSize(calls=2, output_tokens=950),
    "memory": ForkSize(calls=2, output_tokens=400),
}
"""A typical summary; a few edits of a page, or a memory, and the answer that ends it."""


@dataclass(slots=True, kw_only=True)
class ReplayResult:
    """What came of one session under one policy."""

    prompts: list[int] = field(default_factory=list)
    """Each call's prompt as the gauge saw it."""
    usd: float = 0.0
    """The conversation's calls; what was answered is the recording's under every policy."""
    own_usd: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """What the engine asked for itself, by layer."""
    own_calls: Counter[str] = field(default_factory=Counter)
    cleared: list[tuple[int, Cleared]] = field(default_factory=list)
    """Clearings, each with the number of the call it came before."""
    compactions: int = 0
    needed_tokens: Counter[str] = field(default_factory=Counter)
    """Results that had left the view when a later call needed them, by kind."""
    needed: Counter[str] = field(default_factory=Counter)

    def add_call(self, usd: float, prompt_tokens: int) -> None:
        self.usd += usd
        self.prompts.append(prompt_tokens)

    def add_change(self, entry: AnyEntry) -> None:
        """Take what the stages decided before a call."""
        if isinstance(entry, Cleared):
            self.cleared.append((len(self.prompts), entry))
        self.compactions += isinstance(entry, Compacted)

    @property
    def total_usd(self) -> float:
        return self.usd + sum(self.own_usd.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayStages:
    stages: tuple[Stage, ...] = ()
    after_turn: tuple[AfterTurn, ...] = ()
    close: Callable[[], None] = lambda: None


BuildStages = Callable[[Engine, Spill, AskFork, CompactionHooks, Background], ReplayStages]


def standard_stages(
    engine: Engine, spill: Spill, ask: AskFork, hooks: CompactionHooks, background: Background
) -> ReplayStages:
    """Put the layers together as an agent has them."""
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


class SessionReplay:
    """A session being played again."""

    def __init__(
        self,
        entries: Sequence[AnyEntry],
        settings: Settings,
        model: str,
        place: Path,
        *,
        build: BuildStages = standard_stages,
    ) -> None:
        self.entries = entries
        self.result = ReplayResult()
        self.simulation = Simulation(
            EchoBrain(),
            SimulatorSettings(accepts_foreign_thinking=True, enforces_binding=False),
            SimulatorClock(is_frozen=True),
        )
        spill, self._background = Spill(), Background()
        self.engine = Engine(
            Log.create(place, Header(session="replay")),
            settings,
            on_result=spill.arrive,
            clock=self.simulation.clock.now,
        )
        hooks = CompactionHooks(restore=self._restore)
        self._built = build(self.engine, spill, self.ask, hooks, self._background)
        self._earlier = self.simulation.clock.now() - next(e.at for e in entries if e.at)
        self._numbers: dict[int, int] = {}
        self._responses: set[str] = set()
        self._is_open = False
        """An answer to a call of ours is being recorded, piece by piece."""
        self._needs = Needs()
        self._restored: frozenset[str] = frozenset()
        self._shown: set[str] = set()
        """Results that the view has shown, until one was needed in vain."""
        self._begin(model)

    def _begin(self, model: str) -> None:
        self.engine.record(Switched(model=model, reason="replayed"))
        text = frame_text(self.entries, self._tokens_per_word(model))
        tools: tuple[JsonObject, ...] = tuple(
            {"name": name, "description": name, "input_schema": {"type": "object"}}
            for name in TOOLS
        )
        sections = (Section(name="frame", text=text),)
        frame = Framed(sections=sections, tools=tools, measure=measure_text(text))
        self.engine.record(latched(frame, model, self.engine.settings.cache, "chat"))

    def _tokens_per_word(self, model: str) -> float:
        text = " ".join(WORDS * 20)
        scale = capabilities(model).tokenizer_scale
        return self.simulation.bench.counter.text_tokens(text, scale) / len(text.split())

    async def play(self) -> ReplayResult:
        """Play every entry, with a call before each new answer."""
        clock = self.simulation.clock
        for entry in self.entries:
            clock.advance(max(0.0, entry.at + self._earlier - clock.now()))
            if self._is_open and not (
                isinstance(entry, Replied) and entry.response_id in self._responses
            ):
                await self._finish()
            match entry:
                case Replied():
                    await self._answer(entry)
                case Ran():
                    self._record(structs.replace(entry, file="", sha256=""))
                    if self.engine.view.round_of(entry.tool_use_id):
                        self._shown.add(entry.tool_use_id)
                case Said():
                    self._record(entry)
                case Snipped(targets=targets):
                    known = tuple(self._numbers[n] for n in targets if n in self._numbers)
                    self._record(structs.replace(entry, targets=known, rests_on=()))
                    self._shown = {id for id in self._shown if self.engine.view.round_of(id)}
            if (need := self._needs.follow(entry)) is not None:
                self._count_need(need)
        await self._finish()
        await self._background.stop()
        self._built.close()
        self.engine.log.close()
        return self.result

    def _record(self, entry: AnyEntry) -> None:
        now = self.simulation.clock.now()
        written = self.engine.record(structs.replace(entry, n=0, at=now))
        self._numbers[entry.n] = written.n

    async def _answer(self, entry: Replied) -> None:
        said = self.engine.view.messages()[-1:]
        is_sendable = bool(said) and said[0].role == "user"  # not so where a recording begins late
        is_call = bool(entry.usage and entry.usage.prompt_tokens) and is_sendable
        usage = None
        if is_call and entry.response_id not in self._responses:
            self._responses.add(entry.response_id)
            assert entry.usage is not None
            usage = await self._call(entry.usage.output_tokens)
            self._is_open = True
        is_rest = not any(isinstance(block, ToolUse) for block in entry.content)
        stop = entry.stop_reason or ("end_turn" if is_rest else "tool_use")
        model = self.engine.model if usage else ""
        self._record(structs.replace(entry, model=model, usage=usage, stop_reason=stop))

    async def _finish(self) -> None:
        """End a turn, and let the background work that it begins come to its end."""
        if not self._is_open:
            return
        self._is_open = False
        self.engine.finish_turn(self._built.after_turn)
        for job in list(self._background.jobs.values()):
            await job.wait(JOB_SECONDS)

    async def _call(self, output_tokens: int) -> Usage:
        before, stages = len(self.engine.view.history), self._built.stages
        request = await self.engine.prepare(stages, max_output_tokens=1)
        for made in self.engine.view.history[before:]:
            self.result.add_change(made)
        for job in list(self._background.jobs.values()):  # a summary that is prepared
            await job.wait(JOB_SECONDS)
        usage = structs.replace(await self._billed(request), output_tokens=output_tokens)
        paid = spent_on(self.engine.model, usage).usd
        self.result.add_call(paid, self.engine.fullness().used_tokens)
        return usage

    async def _billed(self, request: Request) -> Usage:
        """Have a prompt billed, with what the provider's cache holds by then."""
        body = parse_request(msgspec.json.encode(request.kwargs | {"max_tokens": 0}))
        outcome = await self.simulation.create(body, Caller(betas=frozenset(request.betas)))
        self.simulation.begin(outcome)
        plan = outcome.usage.message.plan
        return Usage(
            input_tokens=plan.uncached_tokens,
            cache_read_tokens=plan.read_tokens,
            cache_write_tokens=plan.write_5m_tokens + plan.write_1h_tokens,
            cache_write_5m_tokens=plan.write_5m_tokens,
            cache_write_1h_tokens=plan.write_1h_tokens,
        )

    async def ask(self, request: ForkRequest) -> ForkReply:
        """Answer a question of the engine's own, at the price that a model's answer has."""
        if not request.is_wanted and (why := own_refusal(self.engine, request.source)):
            raise BudgetSpent(f"no call was made: {why}")
        size = FORK_SIZES.get(request.source, ForkSize(output_tokens=300))
        prefix, said = request.prefix or self.engine.prefix(), str(request.say)
        own: list[JsonObject] = [{"role": "user", "content": [{"type": "text", "text": said}]}]
        calls = []
        for number in range(size.calls):
            usage = await self._billed(prefix.forked(own))
            usage = structs.replace(usage, output_tokens=size.output_tokens // size.calls)
            calls.append(usage)
            model, source = self.engine.model, request.source
            self.engine.report(Forked(source=source, model=model, usage=usage, turn=number + 1))
            self.result.own_usd[source] += spent_on(model, usage).usd
            self.result.own_calls[source] += 1
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
        """Show the files read last again, as they were when they were read."""
        read = self._needs.newest_reads(RESTORED_FILES)
        self._restored = frozenset(one.tool_use_id for one in read)
        return tuple(Text(text=one.text[:RESTORED_CHARS]) for one in read)

    def _count_need(self, need: Need) -> None:
        """Count a result that was needed and is not in the view any more, once: it would be back."""
        id, view = need.result.tool_use_id, self.engine.view
        owner = view.round_of(id)
        shown = owner is not None and view.item_of(owner.id) is not None
        result = owner.result_of(id) if owner is not None and shown else None
        is_gone = result.cleared is not None if result else id not in self._restored
        if is_gone and id in self._shown:
            self._shown.remove(id)
            self.result.needed[need.result.kind] += 1
            measure = measure_text(need.result.text)
            self.result.needed_tokens[need.result.kind] += round(weight(measure))


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
