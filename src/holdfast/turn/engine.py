"""The path of a turn: `prepare` before the call, `record_reply` after it. Read this first.

The engine owns the log and the view folded from it: an entry is written first, then folded.
`prepare` runs the stages, each of which looks at the view and appends what it decides, then builds
the request. Stages are plain callables in a tuple; which model answers and who runs the tools is
decided elsewhere.
"""

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from holdfast.errors import Aborted, ContextOverflow, PrefixMoved, StoreError
from holdfast.log import Log, outbox
from holdfast.log.entries import AnyEntry, Began, Failed, Framed, Imported, Ran, Said, Switched
from holdfast.log.results import Results, headed, is_over
from holdfast.messages import Content, JsonObject, ResultContent, Text, ToolUse
from holdfast.messages.measure import Measure
from holdfast.models.capabilities import capabilities
from holdfast.models.protocol import Reply, Request
from holdfast.request.build import Caching, Wire, build, first_messages, free_slots
from holdfast.request.cache.advice import window_at_cost
from holdfast.request.cache.monitor import CacheMonitor, keep_diff
from holdfast.request.cache.prior_cache import find_prior_cache
from holdfast.request.edits import placed
from holdfast.request.markers import Markers
from holdfast.settings import Settings
from holdfast.turn.answer import AnswerWriter
from holdfast.turn.fork import Prefix
from holdfast.view import View, fold
from holdfast.view.block_roles import speakable
from holdfast.view.gauge import Follower, load_calibration, save_calibration
from holdfast.view.items import Round
from holdfast.view.tokens import default_weights, weigh
from holdfast.view.window import Window

NOT_RUN = "The tool was not run: the session ended before it began."
MAY_HAVE_RUN = (
    "No result was recorded: the session ended. The tool may have run, fully or in part; "
    "check what it did before calling it again."
)
INTERRUPTED = "The tool was interrupted: the session ended while it ran. It was not run again."
REPAIRS = (NOT_RUN, MAY_HAVE_RUN, INTERRUPTED)
"""What stands for the result of a call that a dead process left open."""

STOPS = (Aborted, ContextOverflow, PrefixMoved, StoreError)
"""Raised by a stage on purpose: no later one can help, or nothing can be written."""

Stage: TypeAlias = Callable[["Engine"], Awaitable[None]]
"""Looks at the engine's view and records what it decides."""
AfterTurn: TypeAlias = Callable[["Engine"], None]
"""Runs after every whole answer; may start background work, and never raises."""
OnResult: TypeAlias = Callable[["Engine", Ran], AnyEntry]
"""Writes a tool's result the moment it arrives, and what is decided about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fullness:
    """How full the context is, and how full it may be."""

    used_tokens: int
    margin_tokens: int
    window: Window

    @property
    def is_blocked(self) -> bool:
        """True if nothing more may be sent before room is made."""
        return self.window.level(self.used_tokens + self.margin_tokens) == "blocking"


class Engine:
    """A session's log, its view, and the path between them."""

    def __init__(
        self,
        log: Log,
        settings: Settings,
        *,
        on_result: OnResult | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.log = log
        self.settings = settings
        self.view: View = fold(log.entries)
        log.entries.clear()  # the view's history holds them
        self.results = Results(self.directory)
        self.limits_chars: dict[str, int | None] = {}
        """How long each tool declares its results may be; for a tool not listed its name decides."""
        self.monitor = CacheMonitor(clock)
        self._on_result = on_result or take_bounded
        self._follower = Follower(load_calibration, learns=settings.gauge.calibrate)
        self._wire = Wire()
        self._markers = Markers()
        self._asked_as = "main"
        self._max_output_tokens = 0

    @property
    def directory(self) -> Path:
        """What belongs to the session beside its log."""
        return self.log.path.with_suffix("")

    @property
    def model(self) -> str:
        """The model that answers from here on."""
        return self.view.model

    @property
    def frame(self) -> Framed:
        """What every request begins with."""
        return self.view.frame or Framed()

    def record(self, entry: AnyEntry) -> AnyEntry:
        """Write an entry to the log, then fold it into the view; a result passes its budget first."""
        return self._on_result(self, entry) if isinstance(entry, Ran) else self.write(entry)

    def write(self, entry: AnyEntry) -> AnyEntry:
        """Write an entry as it is, then fold it into the view."""
        written = self.log.append(entry)
        self.log.entries.clear()
        self.view.apply(written)
        return written

    def report(self, entry: AnyEntry) -> None:
        """Take a report of background work, the one way it reaches the log.

        Once the log is closed a report waits in the outbox for the next process that opens it.
        """
        if self.log.is_open:
            self.record(entry)
        else:
            outbox.leave(self.directory, entry)

    def take_reports(self) -> None:
        """Record what other processes, and jobs that outlived their session, left in the outbox."""
        outbox.take(self.directory, self.view.history, self.record)

    def say(self, content: str | Content, *, hidden: bool = False) -> AnyEntry:
        """Record what the user says, before anything is sent."""
        blocks = (Text(text=content),) if isinstance(content, str) else content
        return self.record(Said(content=speakable(blocks), hidden=hidden))

    def take_result(
        self, tool_use_id: str, content: ResultContent, *, is_error: bool = False
    ) -> AnyEntry:
        return self.record(Ran(tool_use_id=tool_use_id, content=content, is_error=is_error))

    def repair(self) -> list[ToolUse]:
        """Answer the tool uses that a dead process left open, without running any again.

        That a tool never began is only said where beginnings are recorded.
        """
        last = self.view.open_round()
        missing = last.missing() if last else []
        began = {use.id for use in self.view.interrupted()}
        unknown = NOT_RUN if missing and self._records_beginnings() else MAY_HAVE_RUN
        for use in missing:
            self.take_result(use.id, INTERRUPTED if use.id in began else unknown, is_error=True)
        return missing

    def _records_beginnings(self) -> bool:
        """Return whether whoever runs the tools says so each time, as an agent's loop does."""
        begun, ran, is_ours = set[str](), set[str](), self.view.configured is None
        for entry in self.view.history:
            match entry:
                case Began(tool_use_id=id):
                    begun.add(id)
                case Ran(tool_use_id=id, content=content) if content not in REPAIRS:
                    ran.add(id)
                case Imported():
                    is_ours = False
        return ran <= begun and (is_ours or bool(begun))

    @property
    def shows_paths(self) -> bool:
        """Return whether the model may be shown where files of the session lie.

        An agent of ours can read them; what a program's tools reach is not known.
        """
        return self.view.configured is None

    def resume(self) -> None:
        """Continue a session: open tool uses count as interrupted, waiting reports are recorded."""
        self.repair()
        self.take_reports()

    def is_answered(self) -> bool:
        """True if the model has had the last word, so that there is nothing to send."""
        last = self.view.items[-1] if self.view.items else None
        return last is None or (isinstance(last, Round) and not last.tool_uses())

    def fullness(self) -> Fullness:
        """Measure the context against the model's window."""
        gauge, total = self._follower.follow(self.view), self.view.total
        return Fullness(
            used_tokens=gauge.size_tokens(total),
            margin_tokens=gauge.margin_tokens(total),
            window=window_at_cost(self.model, self.settings.window, self.frame.lifetime),
        )

    def size_tokens(self, total: Measure) -> int:
        """Estimate how full the context would be if the view weighed this."""
        return self._follower.follow(self.view).size_tokens(total)

    def output_limit(self) -> int:
        """Return how many tokens an answer may have unless the caller says otherwise."""
        most = capabilities(self.model).max_output_tokens
        return min(self.settings.loop.output_tokens, most)

    def weigher(self) -> Callable[[Measure], float]:
        """Weigh parts of the view in the gauge's tokens: all of them weigh `used_tokens`."""
        weights = default_weights(self.model)
        whole = weigh(self.view.total, weights)
        scale = self.fullness().used_tokens / whole if whole else 1.0
        return lambda measure: scale * weigh(measure, weights)

    def reconfigure(self, settings: Settings) -> None:
        """Go by other settings from here on; the caller records why."""
        self.settings = settings

    def switch(self, model: str, reason: str) -> Fullness:
        """Let another model answer from here on; return how full its window is then."""
        self.record(Switched(model=model, reason=reason))
        return self.fullness()

    async def prepare(
        self, stages: Iterable[Stage] = (), *, max_output_tokens: int, source: str = "main"
    ) -> Request:
        """Run every stage, build the request and record that it is sent."""
        for stage in stages:
            await self._run(stage)
        self._asked_as, self._max_output_tokens = source, max_output_tokens
        request = self._request(max_output_tokens)
        names = [section.name for section in self.frame.sections]
        self.record(self.monitor.sending(request, self.view.history, source=source, names=names))
        return request

    async def _run(self, stage: Stage) -> None:
        """Run a stage; one that fails leaves an entry, and the next one runs."""
        try:
            await stage(self)
        except STOPS:
            raise
        except Exception as error:  # noqa: BLE001 - no bug of one layer may end a session
            said = f"{type(error).__name__}: {error}"
            self.record(Failed(what=f"stage {_name_of(stage)}", error=said))

    def _request(self, max_output_tokens: int) -> Request:
        """Build the request for the view as it is, with markers where they pay."""
        messages, unmoved = self._messages()
        places = self._markers.place(messages, unmoved, slots=free_slots(self.frame))
        return build(
            self.frame,
            messages,
            model=self.model,
            max_output_tokens=max_output_tokens,
            caching=Caching(
                places=places,
                key=self.log.header.session,
                previous_id=self.view.response_id,
            ),
        )

    def _messages(self) -> tuple[list[JsonObject], int]:
        """Give all messages as they are sent, and how many are as when last asked for."""
        first = first_messages(self.frame)
        messages = first + self._wire.messages(self.view.messages(), placed(self.view))
        if self._markers.cached is None and (found := find_prior_cache(self.view, messages)):
            self._markers.remember(found.cached, found.unmoved)
            return messages, len(messages)
        return messages, len(first) + self._wire.unmoved

    def prefix(self) -> Prefix:
        """Give what a fork shares: the conversation as it would be sent now."""
        messages, unmoved = self._messages()
        last = self.view.open_round()
        return Prefix(
            frame=self.frame,
            messages=tuple(messages),
            model=self.model,
            max_output_tokens=self._max_output_tokens or self.output_limit(),
            cached_to=self._markers.cached_in(messages, unmoved),
            before=self.monitor.last(self._asked_as),
            is_whole=last is None or bool(last.stop_reason),
            key=self.log.header.session,
            previous_id=self.view.response_id,
        )

    def record_reply(self, reply: Reply, after_turn: Iterable[AfterTurn] = ()) -> AnyEntry:
        """Record an answer that arrived whole, and finish the turn; the same answer only once."""
        last = self.view.items[-1] if self.view.items else None
        if isinstance(last, Round) and reply.response_id and last.response_id == reply.response_id:
            return self.view.history[-1]
        entry = AnswerWriter(self.record).write(reply)
        self.finish_turn(after_turn, reply.diagnostics)
        return entry

    def finish_turn(
        self, after_turn: Iterable[AfterTurn] = (), diagnostics: JsonObject | None = None
    ) -> None:
        """Observe the answer unless that was done, make the turn durable, begin background work."""
        self.observe_usage(diagnostics)
        self.log.sync_soon()
        self.take_reports()
        for begin in after_turn:
            begin(self)

    def observe_usage(self, diagnostics: JsonObject | None = None) -> None:
        """Learn from the last answer's usage, and record a cache break."""
        self._follower.follow(self.view)
        self._markers.observe_reply()
        source = self.view.asked.source if self.view.asked else "main"
        broke = self.monitor.observe_reply(
            self.view.history, source=source, diagnostics=diagnostics
        )
        if broke is not None:
            self.record(keep_diff(broke, self.directory))

    def close(self) -> None:
        """Save what was learnt about tokens, and close the log."""
        if self.settings.gauge.calibrate:
            for calibration in self._follower.calibrations.values():
                save_calibration(calibration)
        self.log.close()


def _name_of(stage: Stage) -> str:
    """Name a stage: a function by its own name, an object by its class."""
    return str(getattr(stage, "__qualname__", type(stage).__name__))


def take_bounded(engine: Engine, ran: Ran) -> AnyEntry:
    """Record a result; a body too large for the log goes to a file, and its head stays."""
    limit = engine.settings.log.body_limit_bytes
    if not is_over(ran.content, limit):
        return engine.write(ran)
    cap = engine.settings.spill.file_bytes
    body = engine.results.body(ran.tool_use_id, ran.content, cap_bytes=cap)
    try:
        engine.results.keep(body, is_only_copy=True)
    except StoreError as error:
        written = engine.write(ran)
        engine.write(Failed(what="spill", error=f"{error}; the whole result stays in the log"))
        return written
    return engine.write(headed(ran, body, limit))
