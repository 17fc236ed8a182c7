"""The path of a turn: `prepare` before the call, `record_reply` after it. Read this first.

The engine owns the log and the view folded from it. It writes each entry first and then folds it.
`prepare` runs the stages, which append their decisions, and then builds the request. The model and
the tools are chosen elsewhere.
"""

import logging
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from msgspec import structs

from longhold.core.log import OpenLog
from longhold.core.log.entries import (
    AnyEntry,
    Cleared,
    Failed,
    Framed,
    Ran,
    Replied,
    Said,
    Spilled,
    Switched,
    ViewChange,
    Withheld,
)
from longhold.core.log.spending import OwnSpending
from longhold.core.messages import Content, JsonObject, ResultContent, Text
from longhold.core.messages.measure import IMAGE_TOKENS, Measure
from longhold.core.models.capabilities import Capabilities, capabilities, is_known, is_simulated
from longhold.core.models.protocol import Reply, Request
from longhold.core.policy.threshold import Fullness
from longhold.core.request.cache.monitor import CacheMonitor, find_prior_cache, keep_diff
from longhold.core.request.lifetime import hold_system
from longhold.core.request.markers import Markers
from longhold.core.request.request import (
    Caching,
    Wire,
    build,
    count_hidden,
    first_messages,
    free_slots,
)
from longhold.core.settings import Settings
from longhold.core.turn.answer_writer import AnswerWriter
from longhold.core.turn.fork.prefix import Prefix
from longhold.core.turn.repair import ENDED, plan_repair, plan_report
from longhold.core.turn.repair import WHAT as DAMAGE
from longhold.core.view import View, fold
from longhold.core.view.block_roles import to_spoken, with_own_ids
from longhold.core.view.gauge import Follower, load_calibration, save_calibration
from longhold.core.view.items import Round, Spoken
from longhold.core.view.tokens import default_weights, weigh
from longhold.core.view.window import scale_tokens
from longhold.errors import Aborted, ContextOverflow, PrefixMoved, StoreError

STOPS = (Aborted, ContextOverflow, PrefixMoved, StoreError)
"""Errors that a stage raises on purpose, because later stages cannot help."""

LOG = logging.getLogger("longhold")
"""Logs failures as warnings and view changes as information, with `session` and `entry`."""
LOG.addHandler(logging.NullHandler())

LEAST_OUTPUT_TOKENS = 1_000
"""Shorter answers are useless. If not even this fits, the request counts as an overflow."""

T = TypeVar("T")
Stage: TypeAlias = Callable[["Engine"], Awaitable[None]]
"""A function that looks at the engine's view and records its decisions."""
AfterTurn: TypeAlias = Callable[["Engine"], None]
"""A function that runs after every complete answer. It may start background work."""
OnResult: TypeAlias = Callable[["Engine", Ran], tuple[Ran, Spilled | Failed | None]]
"""Returns a new result in the form that the log keeps, and the decision to record after it."""


class Engine:
    """A session's log and view, and the steps of a turn."""

    def __init__(
        self,
        log: OpenLog,
        settings: Settings,
        *,
        on_result: OnResult | None = None,
        clock: Callable[[], float] = time.time,
        windows: Mapping[str, int] | None = None,
    ) -> None:
        self.log = log
        self.settings = settings
        self.windows = dict(windows or {})
        """Windows declared by model objects and servers, by model. They override the table."""
        self.view: View = fold(log.entries)
        log.entries.clear()  # the view's history has them now
        self.results = log.results
        self.limits_chars: dict[str, int | None] = {}
        """Result limits that tools declare. For other tools the name decides."""
        self.monitor = CacheMonitor(clock)
        self.own = OwnSpending()
        self._on_result = on_result or keep_long
        self._follower = Follower(
            partial(load_calibration, log.shared), settings.gauge, window=settings.window
        )
        self._wire = Wire()
        self._hidden = 0  # how many images the last request left out
        self._markers = Markers()
        self._asked_as = "main"
        self._max_output_tokens = 0

    @property
    def directory(self) -> Path:
        return self.log.path.with_suffix("")

    @property
    def model(self) -> str:
        return self.view.model

    @property
    def frame(self) -> Framed:
        return self.view.frame or Framed()

    def record(self, entry: AnyEntry) -> AnyEntry:
        """Write an entry, then fold it into the view. An entry without effect is reported."""
        written = self.log.append(entry)
        misfits = len(self.view.damage)
        self.view.apply(written)
        if isinstance(written, Failed | Withheld | ViewChange):
            self._announce(written)
        # This excludes `Failed`, which would otherwise report its own failure endlessly.
        if len(self.view.damage) > misfits and not isinstance(entry, Failed):
            why = f"entry {written.n} has no effect: {self.view.damage[-1][1]}"
            self.record(Failed(what=DAMAGE, error=why, detail={"entries": [written.n]}))
        return written

    def report(self, entry: AnyEntry) -> None:
        """Record a report of background work, or leave it in the outbox if the log is closed."""
        if self.log.is_open:
            self.record(entry)
        else:
            self.log.leave(entry)
            self._announce(entry)

    def _announce(self, entry: AnyEntry) -> None:
        id = self.log.header.session
        told = {"session": id, "entry": entry.n, "kind": type(entry).__name__}
        if isinstance(entry, Failed):
            LOG.warning("session %s: %s: %s", id, entry.what, entry.error, extra=told)
        elif isinstance(entry, Withheld | ViewChange) and entry.why:
            LOG.info("session %s: %s", id, entry.why, extra=told)

    def take_reports(self) -> None:
        """Record the reports that other processes and late jobs left in the outbox."""
        self.log.take(self.view.history, self.record)

    def say(self, content: str | Content, *, hidden: bool = False) -> AnyEntry:
        blocks = (Text(text=content),) if isinstance(content, str) else content
        return self.record(Said(content=to_spoken(blocks), hidden=hidden))

    def take(self, entry: AnyEntry) -> AnyEntry:
        """Take an entry of a round from the model or a tool, and return it as recorded.

        If the id of a tool use is taken, the tool use and its result get another id. A long result
        is stored in a file and adds a second entry.
        """
        if isinstance(entry, Replied):
            return self.record(with_own_ids(entry, self.view.called))
        if not isinstance(entry, Ran):
            return self.record(entry)
        own = self.view.find_call(entry.tool_use_id) or entry.tool_use_id
        kept, decision = self._on_result(self, structs.replace(entry, tool_use_id=own))
        written = self.record(kept)
        if isinstance(decision, Spilled):
            decision = structs.replace(decision, rests_on=(written.n,))
        if decision is not None:
            self.record(decision)
        return written

    def take_result(
        self, tool_use_id: str, content: ResultContent, *, is_error: bool = False
    ) -> AnyEntry:
        return self.take(Ran(tool_use_id=tool_use_id, content=content, is_error=is_error))

    def repair(self, reason: str = ENDED) -> list[str]:
        """Add results for tool uses that were left open, without running any tool again."""
        results = list(plan_repair(self.view, reason))
        for ran in results:
            self.record(ran)
        return [ran.tool_use_id for ran in results]

    @property
    def shows_paths(self) -> bool:
        """Whether the model may see paths of session files, because its tools can read them."""
        configured = self.view.configured
        return self.log.has_file and (configured is None or configured.paths)

    def resume(self, *, repairs: bool = True) -> list[str]:
        """Resume a session and return warnings about its log. Open tool uses are interrupted."""
        damaged = plan_report(self.log.damage, self.view.damage, self.view.history)
        if damaged is not None:
            self.record(damaged)
        if repairs:
            self.repair()
        self.take_reports()
        # A crash leaves a torn last line. It stays in the log, but the user need not act.
        is_torn = all(found.torn for found in self.log.damage) and not self.view.damage
        return [damaged.error] if damaged is not None and not is_torn else []

    def is_answered(self) -> bool:
        """Return whether the last message is the model's, so that there is nothing to send."""
        last = self.view.items[-1] if self.view.items else None
        return last is None or (isinstance(last, Round) and not last.tool_uses())

    def ends_with_answer(self) -> bool:
        """Return whether the last message is the model's, or the results of its calls."""
        return bool(self.view.items) and isinstance(self.view.items[-1], Round)

    def has_news(self) -> bool:
        last = self.view.items[-1] if self.view.items else None
        asked = self.view.asked.n if self.view.asked else 0
        return isinstance(last, Spoken) and last.kind in ("said", "late") and last.id > asked

    def fullness(self) -> Fullness:
        return Fullness.of(self.view, self._follower.size(self.view), self.settings)

    @property
    def makes_room(self) -> bool:
        """Whether Longhold compacts a full window instead of ending the session."""
        return self.settings.compact.on and self.settings.window.auto

    def doubt_report(self) -> bool:
        """Drop the reported size and return True if only that size fills the window."""
        full, total = self.fullness(), self.view.total
        own = self._follower.estimate(self.view)
        size = own.size_tokens(total)
        if size + own.margin_tokens(total) >= full.window.full_tokens or full.used_tokens <= size:
            return False
        self._follower.doubt(self.view)
        said = f"{full.used_tokens:,} tokens by the last usage, {size:,} by Longhold's estimate"
        self.record(
            Failed(what="gauge", error=f"{said}; the estimate is used until the next answer")
        )
        return True

    async def retry_on_overflow(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run work that may overflow. Repeat it if a wrong reported size caused the overflow."""
        try:
            return await work()
        except ContextOverflow:
            # A provider's wrong count must not end a session.
            if not self.doubt_report():
                raise
            return await work()

    def size_tokens(self, total: Measure) -> int:
        return self._follower.follow(self.view).size_tokens(total)

    def output_limit(self, able: Capabilities | None = None) -> int:
        """Return the output limit from the settings and the model's capabilities (`able`).

        Without `able`, the program's limit comes first, and an unknown model's window is a limit.
        """
        configured, settings = self.view.configured, self.settings
        if able is None and configured is not None and configured.max_tokens:
            return configured.max_tokens
        most = (able or capabilities(self.model)).max_output_tokens
        limit = min(settings.loop.output_tokens, most)
        if able is not None or is_known(self.model) or not settings.window.limit_tokens:
            return limit
        return max(1, min(limit, self.fullness().window.reserve_tokens))

    def fit_output(self, wanted_tokens: int) -> int:
        """Return the output limit to request, so that the prompt and the output fit the window."""
        full = self.fullness()
        limit = full.window.limit_tokens
        left = limit - full.used_tokens
        if wanted_tokens <= left // 2:  # checked first, because computing the margin is slow
            return wanted_tokens
        least = scale_tokens(LEAST_OUTPUT_TOKENS, limit)
        return min(wanted_tokens, max(left - full.margin_tokens, least))

    def make_weigher(self) -> Callable[[Measure], float]:
        """Return a function that weighs parts of the view so that they add up to `used_tokens`."""
        weights = default_weights(self.model)
        whole = weigh(self.view.total, weights)
        scale = self.fullness().used_tokens / whole if whole else 1.0
        return lambda measure: scale * weigh(measure, weights)

    def reconfigure(self, settings: Settings) -> None:
        self.settings = settings
        self._follower.use_window(settings.window)

    def learn_window(self, model: str, tokens: int) -> None:
        """Record a model's declared window. 0 restores the window in the table."""
        is_chosen = self.settings.window.limit_tokens != self.windows.get(self.model, 0)
        self.windows[model] = tokens
        if model == self.model and not is_chosen:
            window = replace(self.settings.window, limit_tokens=tokens)
            self.reconfigure(replace(self.settings, window=window))

    def settings_for(self, model: str) -> Settings:
        """Return the settings for another model, with its window unless the user chose one."""
        window, known = self.settings.window, self.windows
        if window.limit_tokens != known.get(self.model, 0):
            return self.settings
        return replace(self.settings, window=replace(window, limit_tokens=known.get(model, 0)))

    def switch(self, model: str, reason: str) -> Fullness:
        self.reconfigure(self.settings_for(model))
        self.record(Switched(model=model, reason=reason))
        return self.fullness()

    async def prepare(
        self,
        stages: Iterable[Stage] = (),
        *,
        max_output_tokens: int,
        source: str = "main",
        build: Callable[[], Request] | None = None,
    ) -> Request:
        """Run every stage, build the request, record it, and wait until the log is durable.

        A caller with its own request format passes `build`, which is called after the stages.
        """
        await self.retry_on_overflow(partial(self._run_all, tuple(stages)))
        max_output_tokens = self.fit_output(max_output_tokens)
        self._announce_images()
        is_auto = self.settings.cache.lifetime == "auto"
        if is_auto and build is None and source == "main" and (asked := self.view.asked):
            idle = self.monitor.clock() - asked.at
            if held := hold_system(self.frame, self.model, idle):
                self.record(held)
        self._asked_as, self._max_output_tokens = source, max_output_tokens
        request = build() if build is not None else self._request(max_output_tokens)
        names = [section.name for section in self.frame.sections]
        self.record(
            self.monitor.track_request(request, self.view.history, source=source, names=names)
        )
        # The request is recorded before sending, because after a crash the log must reproduce the
        # prefix in the provider's cache.
        await self.log.wait_for_commit()
        return request

    def _announce_images(self) -> None:
        """Record that the request omits older images, because this changes its prefix."""
        view, limit = self.view, capabilities(self.model).image_limit
        if not self._hidden and view.total.media_tokens <= limit * IMAGE_TOKENS:
            return  # without counting
        before, self._hidden = self._hidden, count_hidden(view.sent, limit)
        if self._hidden <= before:
            return
        bound = view.items if capabilities(self.model).binds_thinking else ()
        rounds = tuple(one.id for one in bound if isinstance(one, Round))
        why = f"{self.model} takes {limit} images, so the oldest {self._hidden} are left out"
        self.record(Cleared(ids=(), texts=(), how="limit", thinking=rounds, why=why))

    async def _run_all(self, stages: tuple[Stage, ...]) -> None:
        for stage in stages:
            await self.run_stage(stage)

    async def run_stage(self, stage: Stage) -> None:
        """Run a stage. A failure becomes an entry, and the next stage runs."""
        try:
            await stage(self)
        except STOPS:
            raise
        except Exception as error:  # noqa: BLE001 - a bug in one layer must not end a session
            said = f"{type(error).__name__}: {error}"
            self.record(Failed(what=f"stage {_name_of(stage)}", error=said))

    def _request(self, max_output_tokens: int) -> Request:
        messages, unmoved = self._messages()
        places = self._markers.place(messages, unmoved, slots=free_slots(self.frame))
        return build(
            self.frame,
            messages,
            model=self.model,
            max_output_tokens=max_output_tokens,
            caching=Caching(
                places=places, key=self.log.header.session, previous_id=self.view.response_id
            ),
        )

    def _messages(self) -> tuple[list[JsonObject], int]:
        first = first_messages(self.frame)
        messages = self._wire.render(self.view)
        messages = first + messages if first else messages
        # A process that has just resumed has set no breakpoints, but the log records which were
        # sent.
        if self._markers.cached is None and (found := find_prior_cache(self.view, messages)):
            self._markers.remember(*found)
            return messages, len(messages)
        return messages, len(first) + self._wire.unmoved

    def find_live_end(self) -> int:
        """Return the order of the first item that is not in the last answered call's cache, or 0.

        Only changed bytes count. Expiry is ignored.
        """
        messages, unmoved = self._messages()
        self._markers.cached_in(messages, unmoved)  # records the changes so far
        opening = len(messages) - len(self.view.messages())
        caching = Caching(key=self.log.header.session, previous_id=self.view.response_id)
        request = build(
            self.frame, messages, model=self.model, max_output_tokens=1, caching=caching
        )
        names = [section.name for section in self.frame.sections]
        live = self.monitor.count_live(request, source=self._asked_as, names=names)
        if live is None:  # in a resumed session, the log has the last request
            prior = find_prior_cache(self.view, messages)
            live = prior[1] if prior else 0
        items, ends = self.view.items, self.view.message_from
        if live <= opening or not items:
            return 0
        at = bisect_left(items, live - opening, key=lambda item: ends(item.order))
        return items[at].order if at < len(items) else items[-1].order + 1

    def prefix(self) -> Prefix:
        """Return the shared prefix of a fork: the conversation as it would be sent now."""
        messages, unmoved = self._messages()
        last = self.view.open_round()
        return Prefix(
            frame=self.frame,
            messages=tuple(messages),
            model=self.model,
            # The limit is the same as in the last request. Another limit can change the thinking
            # budget, and with it the prefix.
            max_output_tokens=self._max_output_tokens or self.output_limit(),
            cached_to=self._markers.cached_in(messages, unmoved),
            before=self.monitor.last(self._asked_as),
            is_whole=last is None or bool(last.stop_reason),
            key=self.log.header.session,
            previous_id=self.view.response_id,
        )

    def record_reply(self, reply: Reply, after_turn: Iterable[AfterTurn] = ()) -> AnyEntry:
        """Record a complete answer and finish the turn. Recording an answer twice has no effect."""
        last = self.view.items[-1] if self.view.items else None
        is_named = isinstance(last, Round) and reply.response_id == last.response_id != ""
        if last is not None and is_named and not self.view.has_asked_since(last):
            return self.view.history[-1]
        entry = AnswerWriter(self.take).write(reply)
        self.finish_turn(after_turn, reply.diagnostics)
        return entry

    def finish_turn(
        self, after_turn: Iterable[AfterTurn] = (), diagnostics: JsonObject | None = None
    ) -> None:
        """Process the usage, make the turn durable, and start background work."""
        self.observe_usage(diagnostics)
        self.log.sync_soon()
        self.take_reports()
        for begin in after_turn:
            begin(self)

    def observe_usage(self, diagnostics: JsonObject | None = None) -> None:
        self._follower.follow(self.view)
        self._markers.observe_reply()
        source = self.view.asked.source if self.view.asked else "main"
        broke = self.monitor.observe_reply(
            self.view.history, source=source, diagnostics=diagnostics
        )
        if broke is not None:
            self.record(keep_diff(broke, self.log.keep_text))

    def close(self) -> None:
        """Save the token calibration if possible, and close the log."""
        try:
            if self.settings.gauge.calibrate and not self._was_simulated():
                for calibration in self._follower.calibrations.values():
                    save_calibration(self.log.shared, calibration)
        except (OSError, StoreError) as error:
            with suppress(StoreError):
                self.report(Failed(what="calibration", error=f"not saved: {error}"))
        finally:
            self.log.close()

    def _was_simulated(self) -> bool:
        """Return whether the simulator answered. Its counts do not describe the real model."""
        switches = (entry for entry in self.view.history if isinstance(entry, Switched))
        return any(is_simulated(entry.model) for entry in switches)


def keep_long(engine: Engine, ran: Ran) -> tuple[Ran, Failed | None]:
    body, short = engine.results.shorten(ran, engine.settings)
    try:
        if body is not None:
            engine.results.keep(body, is_only_copy=True)
    except StoreError as error:
        return ran, Failed(what="spill", error=f"{error}; the whole result stays in the log")
    return short, None


def _name_of(stage: Stage) -> str:
    stage = getattr(stage, "func", stage)
    return str(getattr(stage, "__qualname__", type(stage).__name__))
