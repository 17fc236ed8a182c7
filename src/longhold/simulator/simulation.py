"""The simulated service, which prepares requests, manages the cache, calls the brain and bills.

Other requests can read an answer's cache entries only after `begin`, at its first byte.
"""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from longhold.core.models.capabilities import Capabilities
from longhold.core.request.billing.api_request import (
    ApiRequest,
    Caller,
    JsonObject,
    invalid_request,
)
from longhold.core.request.billing.cache import CachePlan, PrefixCache, PromptCache, SimulatorClock
from longhold.core.request.billing.edits import NO_CHANGES, digest_changes
from longhold.core.request.billing.preparation import (
    CACHE_EDITS_BETA,
    PreparedPrompt,
    Workbench,
    capabilities_for,
    messages_of,
    prepare,
)
from longhold.core.request.billing.prompt import chain_prompt, salts_of
from longhold.core.request.billing.thinking import (
    BINDING_BETA,
    CompactionSeal,
    Links,
    Signer,
    digest,
    link_conversation,
)
from longhold.simulator.brains import Brain, BrainAnswer, BrainRequest
from longhold.simulator.diagnostics import Diagnostics
from longhold.simulator.faults import Faults
from longhold.simulator.finishing import FinishedAnswer, finish, new_id
from longhold.simulator.settings import SimulatorSettings
from longhold.simulator.stats import BilledUsage, Iteration, ServedRequest, Stats
from longhold.simulator.validate import (
    ON_DEMAND_BETA,
    THRESHOLD_BETA,
    Threshold,
    check_request,
    threshold_of,
)

SUMMARY_OUTPUT_TOKENS = 8_000  # limit for a summary, regardless of the request's limit


class ServedOutcome(NamedTuple):
    prepared: PreparedPrompt
    message: JsonObject
    usage: BilledUsage
    started: float


class Simulation:
    def __init__(
        self,
        brain: Brain,
        settings: SimulatorSettings | None = None,
        clock: SimulatorClock | None = None,
    ) -> None:
        self.settings = settings or SimulatorSettings()
        self.clock = clock or SimulatorClock()
        self.brain = brain
        self.faults = Faults()
        self.stats = Stats(self.settings.remembered_requests)
        self.cache = PromptCache()
        self.prefixes = PrefixCache()
        self.bench = Workbench(self.settings)
        self._diagnostics = Diagnostics()

    def reset(self) -> None:
        """Clear cache, faults, statistics and diagnostics. The clock keeps its time."""
        self.cache.clear()
        self.prefixes.clear()
        self.faults.clear()
        self.stats.clear()
        self._diagnostics.clear()

    def count(self, request: ApiRequest, caller: Caller) -> JsonObject:
        """Count a request's tokens without caching and without triggering a compaction."""
        prepared = self._prepare(request, caller, is_count=True)
        counted: JsonObject = {"input_tokens": prepared.prompt.total_tokens}
        if request.context_management is not None:
            counted["context_management"] = {"original_input_tokens": prepared.original_tokens}
        return counted

    def _prepare(
        self, request: ApiRequest, caller: Caller, *, is_count: bool = False
    ) -> PreparedPrompt:
        able = capabilities_for(request, caller)
        check_request(request, caller, able, self.settings, is_count=is_count)
        return prepare(request, caller, self.bench)

    async def create(self, request: ApiRequest, caller: Caller) -> ServedOutcome:
        started = self.clock.now()
        prepared = self._prepare(request, caller)
        plan = self._look_up(prepared, started)
        _check_window(prepared, plan.prompt_tokens)
        if request.compaction is not None:
            return await self._compact_on_demand(prepared, plan, started)
        threshold = threshold_of(request)
        if threshold is not None and plan.prompt_tokens > threshold.trigger_tokens:
            return await self._compact_and_answer(prepared, plan, threshold, started)
        return await self._answer(prepared, plan, started)

    def _look_up(self, prepared: PreparedPrompt, now: float) -> CachePlan:
        minimum = prepared.able.cache_minimum_tokens
        return self.cache.look_up(prepared.prompt, prepared.caller.workspace, minimum, now)

    def begin(self, outcome: ServedOutcome) -> None:
        """Make the cache entries readable. Call this when the first byte of a response is sent."""
        now = self.clock.now()
        for iteration in outcome.usage.iterations:
            self.cache.commit(iteration.plan, now)
        if outcome.prepared.request.diagnostics is not None:
            self._diagnostics.remember(outcome.prepared, outcome.message["id"])

    def record(self, outcome: ServedOutcome, fault: str | None = None) -> None:
        request, usage = outcome.prepared.request, outcome.usage
        compactions = [i for i in usage.iterations if i.kind == "compaction"]
        self.stats.add(
            ServedRequest(
                endpoint="messages",
                model=request.model,
                workspace=outcome.prepared.caller.workspace,
                at=outcome.started,
                status=200,
                stop_reason=outcome.message["stop_reason"],
                message_id=outcome.message["id"],
                plan=usage.message.plan,
                output_tokens=usage.message.output_tokens,
                compaction_input_tokens=sum(i.plan.prompt_tokens for i in compactions),
                compaction_output_tokens=sum(i.output_tokens for i in compactions),
                cost=usage.cost(request.model),
                fault=fault,
            )
        )

    async def ask(self, request: BrainRequest) -> BrainAnswer:
        answer = self.brain.answer(request)
        return await answer if inspect.isawaitable(answer) else answer

    async def _answer(
        self, prepared: PreparedPrompt, plan: CachePlan, started: float
    ) -> ServedOutcome:
        if prepared.request.max_tokens == 0:
            return self._outcome(prepared, [Iteration(kind="message", plan=plan)], [], started)
        finished = await self._finish(prepared, plan)
        iterations = [_message_iteration(plan, finished)]
        return self._outcome(prepared, iterations, finished.blocks, started, finished)

    async def _finish(self, prepared: PreparedPrompt, plan: CachePlan) -> FinishedAnswer:
        answer = await self.ask(_brain_request(prepared))
        return finish(answer, prepared, plan.prompt_tokens, self.bench.signer)

    async def _compact_on_demand(
        self, prepared: PreparedPrompt, plan: CachePlan, started: float
    ) -> ServedOutcome:
        instructions = str((prepared.request.compaction or {}).get("instructions") or "")
        summary = await self._summarise(prepared, instructions.strip() or None)
        links = link_conversation(prepared.sent, self.bench.signer)
        last_role = prepared.request.messages[-1].role
        block = _make_signed_block(summary, links, prepared.able, last_role, self.bench.signer)
        iterations = [_compaction_iteration(prepared, plan, summary)]
        return self._outcome(prepared, iterations, [block], started)

    async def _compact_and_answer(
        self, prepared: PreparedPrompt, plan: CachePlan, threshold: Threshold, started: float
    ) -> ServedOutcome:
        """Summarise beyond the threshold, then answer from the summary unless asked to pause."""
        summary = await self._summarise(prepared, threshold.instructions)
        block = {"type": "compaction", "content": summary, "encrypted_content": None}
        closing = _compaction_iteration(prepared, plan, summary)
        if threshold.pauses:
            return self._outcome(prepared, [closing], [block], started)
        shorter = _replace_conversation(prepared, block)
        rest = self._look_up(shorter, started)
        finished = await self._finish(shorter, rest)
        iterations = [closing, _message_iteration(rest, finished)]
        return self._outcome(prepared, iterations, [block, *finished.blocks], started, finished)

    async def _summarise(self, prepared: PreparedPrompt, instructions: str | None) -> str:
        asked = replace(
            _brain_request(prepared),
            purpose="summary",
            instructions=instructions,
            max_tokens=SUMMARY_OUTPUT_TOKENS,
        )
        answer = await self.ask(asked)
        texts = [str(block["text"]) for block in answer.blocks if block.get("type") == "text"]
        return "\n".join(texts) or "The conversation so far held nothing to keep."

    def _outcome(
        self,
        prepared: PreparedPrompt,
        iterations: Sequence[Iteration],
        blocks: list[JsonObject],
        started: float,
        finished: FinishedAnswer | None = None,
    ) -> ServedOutcome:
        request, betas = prepared.request, prepared.caller.betas
        usage = BilledUsage(
            iterations=iterations,
            speed=request.speed,
            shows_iterations=bool(betas & {ON_DEMAND_BETA, THRESHOLD_BETA}),
            shows_deleted=CACHE_EDITS_BETA in betas,
        )
        otherwise = "compaction" if blocks else "max_tokens"
        message: JsonObject = {
            "id": new_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": blocks,
            "stop_reason": finished.stop_reason if finished else otherwise,
            "stop_sequence": finished.stop_sequence if finished else None,
            "usage": usage.to_json(),
        }
        if request.context_management is not None:
            message["context_management"] = {"applied_edits": list(prepared.applied_edits)}
        if request.diagnostics is not None:
            message["diagnostics"] = self._diagnostics.diagnose(prepared)
        if BINDING_BETA in betas:
            message["input_transformations"] = list(prepared.transformations)
        return ServedOutcome(prepared=prepared, message=message, usage=usage, started=started)


def _brain_request(prepared: PreparedPrompt) -> BrainRequest:
    request = prepared.request
    choice = request.tool_choice or {}
    forced = {"any": "any", "tool": choice.get("name")}.get(str(choice.get("type")))
    return BrainRequest(
        model=request.model,
        system=tuple(request.system_blocks()),
        tools=tuple(request.tools or ()),
        messages=messages_of(prepared.read),
        max_tokens=request.max_tokens or 0,
        forced_tool=forced,
    )


def _check_window(prepared: PreparedPrompt, tokens: int) -> None:
    """Refuse a prompt that does not fit. Older models also reserve space for the output."""
    window = prepared.able.window_tokens
    if tokens > window:
        raise invalid_request(f"prompt is too long: {tokens} tokens > {window} maximum")
    limit = prepared.request.max_tokens or 0
    if not prepared.able.overruns_window and tokens + limit > window:
        raise invalid_request(
            f"input length and `max_tokens` exceed context limit: {tokens} + {limit} > {window}, "
            "decrease input length or `max_tokens` and try again"
        )


def _replace_conversation(prepared: PreparedPrompt, block: JsonObject) -> PreparedPrompt:
    pieces = [piece for piece in prepared.read if piece.tier != "messages"]
    pieces.append(prepared.measure.piece("messages", "assistant", block, (0, 0)))
    salts = salts_of(prepared.request, pieces, prepared.able)
    return replace(prepared, read=pieces, prompt=chain_prompt(pieces, salts, frozenset()))


def _compaction_iteration(prepared: PreparedPrompt, plan: CachePlan, summary: str) -> Iteration:
    tokens = prepared.measure.text_tokens(summary)
    return Iteration(kind="compaction", plan=plan, output_tokens=tokens)


def _message_iteration(plan: CachePlan, finished: FinishedAnswer) -> Iteration:
    return Iteration(
        kind="message",
        plan=plan,
        output_tokens=finished.output_tokens,
        thinking_tokens=finished.thinking_tokens,
    )


def _make_signed_block(
    summary: str, links: Links, able: Capabilities, last_role: str, signer: Signer
) -> JsonObject:
    seal = CompactionSeal(
        model=able.model,
        frame=links.frame,
        prefix=links.end,
        previous=links.last_seal,
        text=digest(summary.encode()),
        tool_changes=digest_changes(NO_CHANGES),
        binds_thinking=able.binds_thinking,
        last_role=last_role,
    )
    return {
        "type": "compaction",
        "content": summary,
        "signature": signer.sign(seal),
        "tool_changes": list(NO_CHANGES),
    }
