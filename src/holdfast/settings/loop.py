"""How long an agent works by itself."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """How long an agent works by itself."""

    output_tokens: int = setting(
        8_000, "99 % of answers are under 5,000; asking for more reserves more", low=1
    )
    escalated_output_tokens: int = setting(
        64_000, "asked for once when an answer was cut off at the first limit", low=1
    )
    output_recoveries: int = setting(
        3, "how often a cut answer is resumed before it is left as it is", low=0, high=20
    )
    max_turns: int = setting(0, "answers with tool calls per run; 0 is no limit", low=0)
    parallel_tools: int = setting(10, "tools that change nothing run side by side", low=1, high=64)
    stop_blocks: int = setting(
        8, "how often in a row stop hooks may keep the agent going", low=0, high=1_000
    )
    budget_continuations: int = setting(
        50, "how often a token budget may ask for more work in one run", low=0, high=1_000
    )
