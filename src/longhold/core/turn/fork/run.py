"""Run forks: their calls, tools, transcripts and spending.

The parent pays for each call that the provider began, including broken and aborted calls. Forks of
the same prefix that start together wait for the first byte of the leader.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msgspec import structs

from longhold.core.log import OpenLog
from longhold.core.log.cursor import last_n
from longhold.core.log.entries import AnyEntry, Forked, Said, Switched, add_measure
from longhold.core.log.spending import Budget, is_own
from longhold.core.messages import JsonObject, Text, Usage, text_of
from longhold.core.models.prices import price_call
from longhold.core.models.protocol import Model, Reply, Request, Restarted, Started
from longhold.core.models.retry import RETRIES, Retries, stream_with_retries
from longhold.core.models.steady import PATIENCE, Patience
from longhold.core.request.cache.monitor import SentCall, keep_diff
from longhold.core.request.markers import CachedPrefix, MarkerPlace
from longhold.core.request.request import Wire
from longhold.core.turn.abort import stream_until_aborted
from longhold.core.turn.fork.asking import (
    ForkEnd,
    ForkReply,
    ForkRequest,
    check_may_fork,
    check_says_something,
    shorten_result,
)
from longhold.core.turn.fork.prefix import Prefix, join_messages
from longhold.core.turn.repair import plan_repair
from longhold.core.turn.round import Played, RoundEvent, Toolbox, ToolRan, run_round
from longhold.core.view import View, fold
from longhold.core.view.block_roles import to_spoken
from longhold.errors import BudgetSpent, PromptTooLong, RequestRejected, StoreError

if TYPE_CHECKING:
    from longhold.core.turn.engine import Engine

WAIT_SECONDS = 30.0  # providers read a long prompt faster than this


class PrefixLeader:
    def __init__(
        self, clock: Callable[[], float] = time.time, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._leaders: dict[str, asyncio.Event] = {}
        self._until: dict[str, tuple[float, float]] = {}

    async def wait(self, key: str) -> asyncio.Event | None:
        """Wait until a call on this prefix may start. Only the leader gets an event to set."""
        while not self._is_readable(key):
            leader = self._leaders.get(key)
            if leader is None:
                self._leaders[key] = asyncio.Event()
                return self._leaders[key]
            try:
                async with asyncio.timeout(self._wait_seconds):
                    await leader.wait()
            except TimeoutError:
                return None
        return None

    def _is_readable(self, key: str) -> bool:
        """Whether a call on this prefix was answered recently, by a clock that was not set back."""
        began, until = self._until.get(key, (0.0, 0.0))
        return began <= self._clock() < until

    def began(self, key: str, lifetime_seconds: float) -> None:
        """Record that a call is being answered, so that its prefix is readable from now on."""
        now = self._clock()
        self._until = {key: span for key, span in self._until.items() if span[0] <= now < span[1]}
        self._until[key] = (now, now + lifetime_seconds)
        if key in self._leaders:
            self._leaders.pop(key).set()

    def give_up(self, key: str, leader: asyncio.Event) -> None:
        """Let the next caller lead, unless another has started meanwhile."""
        if self._leaders.get(key) is leader:
            self._leaders.pop(key).set()


@dataclass(slots=True, kw_only=True)
class Forks:
    parent: "Engine"
    model: Callable[[], Model]
    toolbox: Callable[[], Toolbox]  # the current tools, from which each fork makes its own toolbox
    abort: asyncio.Event = field(default_factory=asyncio.Event)
    """Setting this ends every fork made here. Stopping a turn does not set it."""
    budget: Budget | None = None
    refuses: Callable[[str], str] = lambda source: ""  # the reason a layer may not call now, or ''
    retries: Retries = RETRIES
    patience: Patience = PATIENCE
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    leader: PrefixLeader = field(init=False)

    def __post_init__(self) -> None:
        self.leader = PrefixLeader(lambda: self.parent.monitor.clock())

    async def ask(self, request: ForkRequest) -> ForkReply:
        """Run a fork to its end. Failures raise `ModelError`. Cancelling this aborts the fork."""
        toolbox = self.toolbox()
        check_may_fork(toolbox.tool_context)
        check_says_something(request)
        is_limited = is_own(request.source) and not request.is_wanted
        if is_limited and (why := self.refuses(request.source)):
            raise BudgetSpent(f"no call was made: {why}")
        if not self.parent.log.is_open:
            raise RequestRejected("the session is closed, so the cost of a fork cannot be recorded")
        prefix = (request.prefix or self.parent.prefix()).with_output(request.least_output_tokens)
        tool_context = toolbox.tool_context.fork()
        for seen in request.knows:
            tool_context.files.record(seen)
        known = {name: request.instead.get(name, tool) for name, tool in toolbox.tools.items()}
        mine = replace(
            toolbox,
            tools=known,
            tool_context=tool_context,
            gate=request.permit,
            after=shorten_result,
        )
        header, at, log = self.parent.log.header, last_n(self.parent.view.history), None
        if request.keeps_log is not None:
            log = request.keeps_log.open(header, directory=header.directory, at=at)
        own = Own(log)
        try:
            return await Fork(self, prefix, request, mine, own).run()
        finally:
            own.close()
            await tool_context.close()


class Own:
    def __init__(self, log: OpenLog | None) -> None:
        self._log = log
        self._view = View()
        self._wire = Wire()
        if log is not None and log.entries:
            self._view = fold(log.entries)
            log.entries.clear()
            for ran in list(plan_repair(self._view)):
                self.record(ran)

    def record(self, entry: AnyEntry) -> AnyEntry:
        if self._log is None:
            written = structs.replace(add_measure(entry), n=len(self._view.history) + 1)
        else:
            written = self._log.append(entry)
        self._view.apply(written)
        return written

    def messages(self) -> list[JsonObject]:
        return self._wire.messages(self._view.messages())

    async def wait_for_commit(self) -> None:
        if self._log is not None:
            await self._log.wait_for_commit()

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


@dataclass(slots=True, eq=False)
class Fork:
    forks: Forks
    prefix: Prefix
    request: ForkRequest
    toolbox: Toolbox
    own: Own
    _began: float = field(default_factory=time.monotonic)
    _calls: list[Usage] = field(default_factory=list)
    _turn: int = 0
    _before: SentCall | None = field(init=False)
    _cached: CachedPrefix | None = None
    _open: Started | None = None  # the attempt that has begun and whose cost is not yet recorded
    _called: float = 0.0
    _reply: Reply | None = None
    _usd: float = 0.0
    _outcomes: list[bool] = field(default_factory=list)  # for each tool call, whether it failed

    def __post_init__(self) -> None:
        self._before = self.prefix.before

    async def run(self) -> ForkReply:
        say = self.request.say
        words = (Text(text=say),) if isinstance(say, str) else say
        reason = f"forked for {self.request.source}"
        self.own.record(Switched(model=self.prefix.model, reason=reason))
        self.own.record(Said(content=to_spoken(words), mail=self.request.mail))
        while self._turn < self.request.turns:
            if self.forks.abort.is_set():
                return self._make_reply("aborted")
            budget = self.forks.budget
            if budget is not None and (spent := budget.describe_limit()):
                raise BudgetSpent(f"no call was made: {spent}; raise the limit to continue")
            self._turn += 1
            end = self._find_end(await self._play())
            if end is not None:
                return self._make_reply(end)
            if self.request.is_enough():
                return self._make_reply("completed")
            if self.request.max_usd is not None and self._usd >= self.request.max_usd:
                return self._make_reply("max_usd")
        return self._make_reply("max_turns")

    async def _play(self) -> Played | None:
        where = self._places()
        request = self.prefix.build_request(self.own.messages(), where)
        parent = self.forks.parent
        names = [section.name for section in self.prefix.frame.sections]
        call = parent.monitor.track_fork(
            request, parent.view.history, before=self._before, names=names
        )
        key = self.prefix.shared_key(where, call.sent) if self._turn == 1 else ""
        if key and (lives := self.prefix.warm_seconds(call, where)) > 0:
            self.forks.leader.began(key, lives)
        played: Played | None = None
        events = stream_until_aborted(self.forks.abort, self._events(request, key))
        try:
            async with aclosing(events):
                async for event in events:
                    self._take(event)
                    if isinstance(event, Played):
                        played = event
        finally:
            self._finish_call(call, where, played)
        return played

    def _places(self) -> tuple[MarkerPlace, ...]:
        if not self.request.writes_cache:
            return self.prefix.shared_places()
        # After a conversation, the first call caches only the part that its siblings can read.
        own = self.own.messages() if self._turn > 1 or not self.prefix.messages else []
        return self.prefix.growing_places(own, self._cached)

    async def _events(self, request: Request, key: str) -> AsyncGenerator[RoundEvent, None]:
        forks = self.forks
        await forks.parent.log.wait_for_commit()
        await self.own.wait_for_commit()
        ahead = await forks.leader.wait(key) if key else None
        self._called = time.monotonic()
        answer = stream_with_retries(
            forks.model(),
            request,
            retries=self._retries(),
            patience=forks.patience,
            sleep=forks.sleep,
        )
        try:
            async with aclosing(
                run_round(answer, self.toolbox, self.own.record, self.own.wait_for_commit)
            ) as events:
                async for event in events:
                    if isinstance(event, Started) and key:
                        forks.leader.began(key, self.prefix.lives_seconds)
                    if isinstance(event, Restarted) and ahead is not None:
                        forks.leader.give_up(key, ahead)
                    yield event
        finally:
            if ahead is not None:
                forks.leader.give_up(key, ahead)

    def _retries(self) -> Retries:
        own, wanted = self.forks.retries, self.request.retries
        if wanted is None:
            return own
        return replace(
            own,
            attempts=min(own.attempts, wanted.attempts),
            obey_seconds=min(own.obey_seconds, wanted.obey_seconds),
        )

    def _take(self, event: RoundEvent) -> None:
        if isinstance(event, Started):
            self._open = event
        if isinstance(event, Restarted):
            self._pay_unfinished("broken")
            self._called = time.monotonic()
        if isinstance(event, ToolRan):
            self._outcomes.append(event.outcome.is_error)
        if self.request.on_event is not None:
            self.request.on_event(event)

    def _finish_call(
        self, call: SentCall, where: Sequence[MarkerPlace], played: Played | None
    ) -> None:
        reply = played.reply if played else None
        if reply is None:
            self._pay_unfinished("broken" if played else "aborted")
            return
        self._reply = reply
        self._pay(reply.model, reply.usage, reply.stop_reason)
        parent = self.forks.parent
        done = structs.replace(call, usage=reply.usage)
        broke = parent.monitor.observe_fork_reply(
            done,
            parent.view.history,
            before=self._before,
            source=self.request.source,
            diagnostics=reply.diagnostics,
        )
        if broke is not None:
            parent.record(keep_diff(broke, parent.log.keep_text))
        self._before = done
        if where:
            messages = join_messages(self.prefix.messages, self.own.messages())
            self._cached = CachedPrefix(place=where[-1], message=messages[where[-1].message])

    def _pay(self, model: str, usage: Usage, stop_reason: str) -> None:
        self._open = None
        self._calls.append(usage)
        self._usd += price_call(model, usage).usd
        if self.forks.budget is not None:
            self.forks.budget.pay(model, usage)
        self.forks.parent.report(
            Forked(
                source=self.request.source,
                model=model,
                usage=usage,
                turn=self._turn,
                stop_reason=stop_reason,
                seconds=round(time.monotonic() - self._called, 3),
            )
        )

    def _pay_unfinished(self, stop_reason: str) -> None:
        """Pay for the prompt of an answer that began and will not be completed."""
        if self._open is None:
            return
        started = self._open
        with suppress(StoreError):  # a closed session accepts no more entries
            self._pay(started.model, started.usage or Usage(), stop_reason)

    def _find_end(self, played: Played | None) -> ForkEnd | None:
        if played is None:
            return "aborted"
        if played.ends_turn:
            return "denied"
        if played.error is not None and self._turn == self.request.turns:
            raise played.error
        reply = played.reply
        if played.results or reply is None or reply.stop_reason == "pause_turn":
            return None
        match reply.stop_reason:
            case "model_context_window_exceeded":
                raise PromptTooLong("the answer of a fork filled the window")
            case "refusal":
                return "refused"
            case "max_tokens":
                return "cut_off"
        return "completed"

    def _make_reply(self, reason: ForkEnd) -> ForkReply:
        last = self._reply
        return ForkReply(
            text=text_of(last.content) if last else "",
            content=last.content if last else (),
            stop_reason=last.stop_reason if last else "",
            reason=reason,
            turns=self._turn,
            calls=tuple(self._calls),
            seconds=round(time.monotonic() - self._began, 3),
            tool_calls=len(self._outcomes),
            failed_tool_calls=sum(self._outcomes),
        )
