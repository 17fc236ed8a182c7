"""The agent's loop, which plays rounds until the work is done and yields all events.

Each pass builds a request, plays a round, and then continues or stops for a stated reason. A
recoverable error is reported only if recovery fails. Every way to continue has a limit, so no
sequence of answers keeps the loop running forever.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

from longhold.core.log.entries import Failed, Snipped
from longhold.core.log.spending import Budget
from longhold.core.messages import is_blank, is_thought, text_of
from longhold.core.models.protocol import Finished, Reply
from longhold.core.models.retry import RETRIES, Backoff, Retries, stream_with_retries
from longhold.core.models.steady import PATIENCE, Patience
from longhold.core.settings import LoopSettings
from longhold.core.turn.abort import run_unless_aborted, stream_until_aborted
from longhold.core.turn.answering import Models
from longhold.core.turn.engine import AfterTurn, Engine, Stage
from longhold.core.turn.round import Played, RoundEvent, ToolBegan, Toolbox, failed_calls, run_round
from longhold.core.view.items import last_round
from longhold.errors import ContextOverflow, ModelError, ModelUnavailable, PromptTooLong

ESCALATED_OUTPUT_TOKENS = 64_000  # requested once after an answer was cut off at the first limit
OUTPUT_RECOVERIES = 3
SAME_FAILURES = 10  # after as many identical failures in a row, the model is stuck
BUDGET_CONTINUATIONS = 50  # how often a token budget may make the model continue in one run

ContinueReason: TypeAlias = Literal[
    "next_turn",
    "output_escalated",
    "output_resumed",
    "overflow_recovered",
    "model_switched",
    "stop_hook",
    "budget",
]

End: TypeAlias = Literal[
    "completed",
    "aborted_streaming",
    "aborted_tools",
    "denied",
    "refused",
    "cut_off",
    "empty",
    "hook_stopped",
    "max_turns",
    "prompt_too_long",
    "context_overflow",
    "model_error",
    "blocking_limit",
    "budget_spent",
]

GO_ON = (
    "Your answer was cut off at the output limit. Continue from exactly where it stopped, without "
    "apology or recap, and do what remains in smaller pieces."
)
EMPTY = "Your answer was empty. Go on with the task, or say what you did and what is left."
MORE_BUDGET = "Most of the token budget for this task is left. Keep working until the task is done."


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    reason: ContinueReason
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    reason: End
    text: str = ""
    detail: str = ""


LoopEvent: TypeAlias = RoundEvent | Continued | Stopped
Recover: TypeAlias = Callable[[ModelError], Awaitable[bool]]
StopHook: TypeAlias = Callable[[str, bool], Awaitable["StopVerdict"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StopVerdict:
    """The decision of the stop hooks: continue for the given reasons, or stop in any case."""

    blocks: tuple[str, ...] = ()
    prevents: str = ""


async def _never_recovers(error: ModelError) -> bool:
    return False


async def _no_stop_hooks(text: str, is_active: bool) -> StopVerdict:
    return StopVerdict()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    turn: int = 1
    max_output_tokens: int
    budget_tokens: int = 0
    recoveries: int = 0
    overflow_tried: bool = False
    stop_blocks: int = 0
    output_tokens: int = 0
    deltas: tuple[int, ...] = ()
    continuations: int = 0
    failed: tuple[bytes, int] = (b"", 0)  # hash of the last failed calls, and their count in a row


Step: TypeAlias = Stopped | tuple[LoopState, Continued]


@dataclass(slots=True, kw_only=True)
class Loop:
    engine: Engine
    models: Models
    toolbox: Toolbox
    settings: LoopSettings
    budget: Budget
    stages: tuple[Stage, ...] = ()
    after_turn: tuple[AfterTurn, ...] = ()
    recover: Recover = _never_recovers
    on_stop: StopHook = _no_stop_hooks
    retries: Retries = RETRIES
    patience: Patience = PATIENCE
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    abort: asyncio.Event = field(default_factory=asyncio.Event)
    source: str = "main"  # source name under which calls are counted and compared
    _backoff: Backoff = field(default_factory=Backoff)  # answers that broke after a tool call

    async def run(self, budget_tokens: int = 0) -> AsyncGenerator[LoopEvent, None]:
        """Play rounds until there is a reason to stop.

        With `budget_tokens`, keep working until about that many output tokens are used.
        """
        self._backoff = Backoff(self.retries)
        state = LoopState(max_output_tokens=self._output_limit(), budget_tokens=budget_tokens)
        while True:
            refusal = self._refusal(state)
            if refusal is not None:
                yield refusal
                return
            played: Played | None = None
            failure: ModelError | None = None
            has_tools = False
            rounds = self._round(state)
            try:
                async for event in rounds:
                    has_tools = has_tools or isinstance(event, ToolBegan)
                    if isinstance(event, Played):
                        played = event
                    else:
                        yield event
            except ModelError as error:
                failure = error
            except ContextOverflow as overflow:
                yield self._report_overflow(overflow)
                return
            finally:
                await rounds.aclose()
            if self.abort.is_set():
                yield Stopped(reason="aborted_tools" if has_tools else "aborted_streaming")
                return
            after = self._handle_failure(state, failure) if failure else self._after(state, played)
            step = await after
            if isinstance(step, Stopped):
                yield step
                return
            state, continued = step
            yield continued

    def _output_limit(self) -> int:
        return self.engine.output_limit(self.models.current().capabilities)

    def _refusal(self, state: LoopState) -> Stopped | None:
        if self.abort.is_set():
            return Stopped(reason="aborted_streaming")
        if self.settings.max_turns and state.turn > self.settings.max_turns:
            return Stopped(reason="max_turns", detail=f"{self.settings.max_turns} turns were made")
        if spent := self.budget.describe_limit():
            return Stopped(reason="budget_spent", detail=spent)
        full = self.engine.fullness()
        if full.is_blocked and not self.engine.makes_room and not self.engine.doubt_report():
            detail = f"{full.used_tokens:,} of {full.window.limit_tokens:,} tokens are used"
            return Stopped(reason="blocking_limit", detail=detail)
        return None

    async def _round(self, state: LoopState) -> AsyncGenerator[RoundEvent, None]:
        preparing = self.engine.prepare(
            self.stages, max_output_tokens=state.max_output_tokens, source=self.source
        )
        request = await run_unless_aborted(self.abort, preparing)
        if request is None:
            return
        answer = stream_with_retries(
            self.models.current(),
            request,
            retries=self.retries,
            patience=self.patience,
            sleep=self.sleep,
        )
        rounds = run_round(answer, self.toolbox, self.engine.take, self.engine.log.wait_for_commit)
        async with aclosing(stream_until_aborted(self.abort, rounds)) as events:
            async for event in events:
                match event:
                    case Finished(reply=reply):  # the answer's tools may still run, and may fork
                        self._pay(reply)
                        self.engine.observe_usage(reply.diagnostics)
                    case Played():
                        self.engine.finish_turn(self.after_turn)
                        await self.engine.log.wait_for_commit()
                yield event

    def _pay(self, reply: Reply) -> None:
        before = self.budget.problem
        self.budget.pay(reply.model, reply.usage)
        if self.budget.problem and not before:
            self.engine.record(Failed(what="spending", error=self.budget.problem))

    async def _after(self, state: LoopState, played: Played | None) -> Step:
        assert played is not None, "a round ends with Played"
        if played.error is not None:
            self.engine.record(Failed(what="stream", error=str(played.error)))
        if played.ends_turn:
            return Stopped(reason="denied", text=_text(played.reply))
        used = played.reply.usage.output_tokens if played.reply else 0
        total, deltas = state.output_tokens + used, (*state.deltas[-9:], used)
        state = replace(state, output_tokens=total, deltas=deltas)
        if played.results:
            return await self._handle_tools(state, played)
        reply = played.reply
        assert reply is not None, "without tools a broken stream raises"
        if reply.stop_reason == "refusal":
            return Stopped(
                reason="refused", text=_text(reply), detail="the model declined to answer"
            )
        if reply.stop_reason == "model_context_window_exceeded":
            return await self._handle_failure(state, PromptTooLong("the answer filled the window"))
        if reply.stop_reason == "pause_turn" and (resumed := self._resume_output(state)):
            return resumed
        if reply.stop_reason == "max_tokens":
            return self._cut_off(state, played)
        if not any(not is_thought(block) and not is_blank(block) for block in reply.content):
            detail = "the model gave no answer, even after a second request"
            return self._resume_output(state, EMPTY) or Stopped(reason="empty", detail=detail)
        return await self._try_to_stop(state, reply)

    async def _handle_tools(self, state: LoopState, played: Played) -> Step:
        if played.error is None:
            self._backoff = Backoff(self.retries)
        else:
            wait = self._backoff.next_seconds(played.error)
            if wait is None:
                return Stopped(reason="model_error", detail=str(played.error))
            await run_unless_aborted(self.abort, self.sleep(wait))
        failed = failed_calls(last_round(self.engine.view.items))
        times = state.failed[1] + 1 if failed and failed == state.failed[0] else 1
        if times > SAME_FAILURES:
            detail = f"the same tool calls failed in the same way {times} times in a row"
            return Stopped(reason="model_error", text=_text(played.reply), detail=detail)
        fresh = replace(
            state,
            turn=state.turn + 1,
            max_output_tokens=self._output_limit(),
            recoveries=0,
            overflow_tried=False,
            failed=(failed, times),
        )
        return fresh, Continued(reason="next_turn")

    def _resume_output(self, state: LoopState, words: str = "") -> Step | None:
        if state.recoveries >= OUTPUT_RECOVERIES:
            return None
        if words:
            self.engine.say(words, hidden=True)
        return replace(state, recoveries=state.recoveries + 1), Continued(reason="output_resumed")

    def _cut_off(self, state: LoopState, played: Played) -> Step:
        """Ask again with a higher limit, then let the model continue, and finally give up."""
        able = self.models.current().capabilities
        most = self.engine.fit_output(min(ESCALATED_OUTPUT_TOKENS, able.max_output_tokens))
        if state.max_output_tokens < most:
            why = (
                f"the answer was cut off at {state.max_output_tokens:,} tokens and requested again"
            )
            self.engine.record(Snipped(targets=played.entries, why=why))
            escalated = replace(state, max_output_tokens=most)
            return escalated, Continued(reason="output_escalated", detail=why)
        detail = "the answer was cut off at the output limit"
        return self._resume_output(state, GO_ON) or Stopped(
            reason="cut_off", text=_text(played.reply), detail=detail
        )

    async def _try_to_stop(self, state: LoopState, reply: Reply) -> Step:
        verdict = await self.on_stop(text_of(reply.content), state.stop_blocks > 0)
        if verdict.prevents:
            return Stopped(reason="hook_stopped", text=_text(reply), detail=verdict.prevents)
        if verdict.blocks and state.stop_blocks < self.settings.stop_blocks:
            self.engine.say("\n".join(verdict.blocks), hidden=True)
            return replace(state, stop_blocks=state.stop_blocks + 1), Continued(reason="stop_hook")
        if self._wants_more(state):
            self.engine.say(MORE_BUDGET, hidden=True)
            again = replace(
                state,
                recoveries=0,
                overflow_tried=False,
                stop_blocks=0,
                continuations=state.continuations + 1,
            )
            return again, Continued(reason="budget")
        return Stopped(reason="completed", text=_text(reply))

    def _wants_more(self, state: LoopState) -> bool:
        if not state.budget_tokens or state.output_tokens >= 0.9 * state.budget_tokens:
            return False
        is_fading = state.continuations >= 3 and all(delta < 500 for delta in state.deltas[-2:])
        return not is_fading and state.continuations < BUDGET_CONTINUATIONS

    async def _handle_failure(self, state: LoopState, error: ModelError) -> Step:
        self.engine.record(Failed(what="model", error=str(error)))
        if isinstance(error, PromptTooLong):
            return await self._handle_overflow(state, error)
        if isinstance(error, ModelUnavailable) and (fallback := self.models.fall_back()):
            self.engine.switch(fallback.name, f"fallback: {error}")
            detail = f"{fallback.name} answers from here on: {error}"
            fresh = replace(state, max_output_tokens=self._output_limit())
            return fresh, Continued(reason="model_switched", detail=detail)
        return Stopped(reason="model_error", detail=str(error))

    async def _handle_overflow(self, state: LoopState, error: PromptTooLong) -> Step:
        """Free space, once per turn, and ask again."""
        try:
            recovering = partial(self.engine.retry_on_overflow, partial(self.recover, error))
            made_room = (
                None if state.overflow_tried else await run_unless_aborted(self.abort, recovering())
            )
        except ContextOverflow as overflow:
            return self._report_overflow(overflow)
        if self.abort.is_set():
            return Stopped(reason="aborted_streaming")
        if made_room:
            return replace(state, overflow_tried=True), Continued(reason="overflow_recovered")
        return Stopped(reason="prompt_too_long", detail=str(error))

    def _report_overflow(self, overflow: ContextOverflow) -> Stopped:
        self.engine.record(Failed(what="compact", error=str(overflow)))
        return Stopped(reason="context_overflow", detail=str(overflow))


def _text(reply: Reply | None) -> str:
    return text_of(reply.content) if reply else ""
