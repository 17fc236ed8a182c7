"""Server-side compaction: its parameters and the new compaction blocks."""

from dataclasses import dataclass

from longhold.core.models.capabilities import Capabilities
from longhold.core.request.billing.api_request import ApiRequest, JsonObject
from longhold.core.request.billing.edits import COMPACT, NO_CHANGES, digest_changes, edits_of
from longhold.core.request.billing.thinking import CompactionSeal, Links, Signer, digest

ON_DEMAND_BETA = "compact-2026-09-04"
THRESHOLD_BETA = "compact-2026-01-12"
DEFAULT_TRIGGER_TOKENS = 150_000  # the API's default
MINIMUM_TRIGGER_TOKENS = 50_000  # the API refuses less


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    trigger_tokens: int
    pauses: bool
    instructions: str | None


def threshold_of(request: ApiRequest) -> Threshold | None:
    for edit in edits_of(request.context_management):
        if edit.get("type") == COMPACT:
            trigger = edit.get("trigger") or {}
            return Threshold(
                trigger_tokens=int(trigger.get("value", DEFAULT_TRIGGER_TOKENS)),
                pauses=bool(edit.get("pause_after_compaction", False)),
                instructions=edit.get("instructions"),
            )
    return None


def instructions_of(request: ApiRequest) -> str | None:
    instructions = (request.compaction or {}).get("instructions")
    if isinstance(instructions, str) and instructions.strip():
        return instructions
    return None


def make_signed_block(
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


def make_threshold_block(summary: str | None) -> JsonObject:
    return {"type": "compaction", "content": summary, "encrypted_content": None}
