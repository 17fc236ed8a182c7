"""The usage of a response: the cache plan and the output in the API's fields.

Compaction is an iteration of its own. Only the bill, the sum of all iterations, includes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from longhold.core.models.prices import Cost, usage_cost
from longhold.core.request.billing.api_request import JsonObject
from longhold.core.request.billing.cache import CachePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    kind: Literal["message", "compaction"]
    plan: CachePlan
    output_tokens: int = 0
    thinking_tokens: int = 0

    def to_json(self) -> JsonObject:
        return {"type": self.kind, **_prompt_json(self.plan), "output_tokens": self.output_tokens}


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledUsage:
    iterations: Sequence[Iteration]
    speed: str | None = None
    shows_iterations: bool = False
    shows_deleted: bool = False

    @property
    def message(self) -> Iteration:
        """The iteration in the top-level fields. Empty if only a compaction ran."""
        last = self.iterations[-1]
        return last if last.kind == "message" else Iteration(kind="message", plan=CachePlan())

    def to_json(self, *, is_start: bool = False) -> JsonObject:
        """Render the usage. `is_start` is for message_start, with at most one output token."""
        message = self.message
        output = min(message.output_tokens, 1) if is_start else message.output_tokens
        prompt = _prompt_json(message.plan)
        fields = {**prompt, "output_tokens": output, "service_tier": "standard"}
        if message.thinking_tokens and not is_start:
            fields["output_tokens_details"] = {"thinking_tokens": message.thinking_tokens}
        if self.speed is not None:
            fields["speed"] = self.speed
        if self.shows_deleted:
            fields["cache_deleted_input_tokens"] = message.plan.deleted_tokens
        if self.shows_iterations and not is_start:
            fields["iterations"] = [iteration.to_json() for iteration in self.iterations]
        return fields

    def cost(self, model: str) -> Cost | None:
        parts = [usage_cost(model, i.plan.usage(i.output_tokens)) for i in self.iterations]
        known = [part for part in parts if part is not None]
        return sum(known, Cost()) if known else None


def _prompt_json(plan: CachePlan) -> JsonObject:
    return {
        "input_tokens": plan.uncached_tokens,
        "cache_creation_input_tokens": plan.write_5m_tokens + plan.write_1h_tokens,
        "cache_read_input_tokens": plan.read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": plan.write_5m_tokens,
            "ephemeral_1h_input_tokens": plan.write_1h_tokens,
        },
    }
