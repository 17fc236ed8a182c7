"""The lines of the scorecard: a claim, the command that measures it, its figures and their goals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TIMED = 0.5
"""Noise of a figure in milliseconds: the cores are shared."""
COUNTED = 0.0
SAMPLED = 0.05


@dataclass(frozen=True, kw_only=True)
class ScoreLine:
    name: str
    claim: str
    words: Sequence[str]
    """The command, after `python`."""
    figures: Mapping[str, str]
    """What is shown of the result: a name, and where it is in the JSON."""
    goals: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """What a figure should be: `<=` or `>=`, and the value."""
    higher_is_better: frozenset[str] = frozenset()
    """Of the figures without a goal."""
    noise: float = SAMPLED
    """The share by which a figure may be worse before it is marked."""
    seconds: int = 240

    @property
    def command(self) -> str:
        return f"python {' '.join(self.words)}"

    def is_worse(self, name: str, value: float | None, before: float | None) -> bool:
        """Return whether a figure got worse by more than its noise."""
        if value is None or before is None:
            return False
        rises = name in self.higher_is_better or self.goals.get(name, ("<=",))[0] == ">="
        room = abs(before) * self.noise
        return value < before - room if rises else value > before + room

    def missed(self, figures: Mapping[str, Any]) -> list[str]:
        """Name the figures that do not reach their goal."""
        return [
            name
            for name, (sign, goal) in self.goals.items()
            if (value := figures.get(name)) is not None
            and not (value <= goal if sign == "<=" else value >= goal)
        ]


def _line(
    name: str, claim: str, figures: Mapping[str, str], words: str = "", **more: Any
) -> ScoreLine:
    command = words or f"benchmarks/{name}.py --json"
    return ScoreLine(name=name, claim=claim, words=command.split(), figures=figures, **more)


LINES = (
    _line(
        "replay",
        "on real sessions ours is cheaper than what others do, and misses less",
        {
            "ours_usd": "policies.ours.usd",
            "ours_to_cheapest_other": "ours_to_cheapest",
            "ours_regret": "policies.ours.regret",
            "read_ratio": "as_recorded.read_ratio",
            "seconds": "seconds",
        },
        goals={
            "ours_to_cheapest_other": ("<=", 1.0),
            "read_ratio": (">=", 0.95),
            "seconds": ("<=", 120.0),
        },
        seconds=600,
    ),
    _line(
        "peers",
        "a turn costs less than with any peer, and no more when the session is long",
        {
            "ours_ms_1000": "ours.ms_per_turn_1000",
            "ours_ms_10000": "ours.ms_per_turn_10000",
            "fastest_peer_ratio_1000": "fastest_peer_ratio_1000",
            "fastest_peer_ratio_10000": "fastest_peer_ratio_10000",
        },
        goals={"fastest_peer_ratio_1000": (">=", 1.0), "fastest_peer_ratio_10000": (">=", 1.0)},
        noise=TIMED,
        seconds=900,
    ),
    _line(
        "turn_overhead",
        "a turn costs what is new, not what is old",
        {
            "ms_at_100": "sizes.100.p50_ms",
            "ms_at_100000": "sizes.100000.p50_ms",
            "exponent": "growth_exponent",
        },
        goals={"exponent": ("<=", 0.1)},
        noise=TIMED,
    ),
    _line(
        "load",
        "loading is near plain JSON decoding",
        {"times_orjson": "ratio_to_orjson", "peak_mb": "peak_mb"},
        goals={"times_orjson": ("<=", 3.0)},
        noise=TIMED,
    ),
    _line(
        "loop",
        "the loop adds little to a turn",
        {"overhead_ms": "overhead_ms_p50", "sdk_ms": "sdk_ms_p50"},
        goals={"overhead_ms": ("<=", 5.0)},
        noise=TIMED,
    ),
    _line(
        "gauge",
        "the size of the context is known between two calls",
        {"error_median": "delta_error_p50", "error_p90": "delta_error_p90"},
        goals={"error_median": ("<=", 0.05), "error_p90": ("<=", 0.2)},
    ),
    _line(
        "kill_resume",
        "a killed agent loses nothing and repeats nothing",
        {"lost": "lost", "doubled": "doubled"},
        "benchmarks/kill_resume.py --kills 40 --json",
        goals={"lost": ("<=", 0), "doubled": ("<=", 0)},
        noise=COUNTED,
        seconds=400,
    ),
    _line(
        "chaos",
        "failing models do not stop a session",
        {"turns": "turns", "hangs": "hangs", "rejected": "rejected"},
        goals={"hangs": ("<=", 0), "rejected": ("<=", 0)},
        higher_is_better=frozenset({"turns"}),
        noise=COUNTED,
    ),
    _line(
        "breaks_real",
        "cold calls on record have a cause",
        {"explained_share": "explained_share", "cold_calls": "cold_calls"},
        goals={"explained_share": (">=", 0.7)},
    ),
    _line(
        "payback",
        "waiting for the right moment pays",
        {"gap_to_best": "mean_gap", "false_alarms": "false_alarms"},
        goals={"gap_to_best": ("<=", 0.02), "false_alarms": ("<=", 0)},
        seconds=400,
    ),
    _line(
        "fork_prefix",
        "forks read their parent's prefix",
        {"read_share": "fork_read_share", "ten_cost": "ten_forks_cost_ratio"},
        goals={"read_share": (">=", 0.99), "ten_cost": ("<=", 2.0)},
    ),
    _line(
        "clearing",
        "clearing puts the first compaction off",
        {
            "calls_ratio": "median_calls_to_line_ratio",
            "cost_ratio": "cost_ratio",
            "bytes_lost": "bytes_unrecoverable",
        },
        goals={"calls_ratio": (">=", 1.0), "bytes_lost": ("<=", 0)},
        seconds=400,
    ),
    _line(
        "retention",
        "a digest keeps what matters",
        {
            "user_messages": "digest.user_messages.median",
            "changed_files": "digest.changed_files.median",
            "anchors_said": "digest.anchors_said.median",
            "tokens_share": "digest.tokens_share.median",
        },
        goals={"user_messages": (">=", 1.0), "tokens_share": ("<=", 0.12)},
        higher_is_better=frozenset({"changed_files", "anchors_said"}),
    ),
    _line(
        "promises",
        "the layers keep their promises",
        {
            "user_words_kept": "user_words_kept",
            "false_statements": "false_statements",
            "survives_abort": "background_survives_abort",
            "tool_change_read_share": "tool_change_read_share",
        },
        goals={"user_words_kept": (">=", 1.0), "false_statements": ("<=", 0)},
        higher_is_better=frozenset({"survives_abort", "tool_change_read_share"}),
        noise=COUNTED,
        seconds=400,
    ),
    _line(
        "directives",
        "what the user said survives any number of compactions",
        {"kept": "kept_verbatim_share", "resurrected": "resurrected"},
        goals={"kept": (">=", 1.0), "resurrected": ("<=", 0)},
        noise=COUNTED,
    ),
    _line(
        "notes",
        "notes make compaction free",
        {"no_call_share": "no_call_share", "ms_p95": "ms_p95"},
        goals={"no_call_share": (">=", 0.9)},
        noise=TIMED,
        seconds=600,
    ),
    _line(
        "recall",
        "recall is quick",
        {"hit_rate_10000": "10000.hit_rate_at_5", "ms_p50_10000": "10000.p50_ms"},
        goals={"hit_rate_10000": (">=", 0.95), "ms_p50_10000": ("<=", 10.0)},
        noise=TIMED,
    ),
    _line(
        "dream",
        "dreams lose nothing",
        {"planted": "planted", "lost": "lost"},
        goals={"lost": ("<=", 0)},
        higher_is_better=frozenset({"planted"}),
        noise=COUNTED,
        seconds=400,
    ),
    _line(
        "shell_attacks",
        "what is judged read-only only reads",
        {"judged": "judged", "executed": "attacks", "succeeded": "succeeded"},
        goals={"succeeded": ("<=", 0)},
        higher_is_better=frozenset({"judged", "executed"}),
        noise=0.1,
        seconds=400,
    ),
    _line(
        "mail",
        "mail survives kills",
        {"sent": "sent", "lost": "lost", "doubled": "doubled"},
        goals={"lost": ("<=", 0), "doubled": ("<=", 0)},
        higher_is_better=frozenset({"sent"}),
        noise=COUNTED,
    ),
    _line(
        "claims",
        "a task has one worker",
        {"claims": "claims", "double": "double"},
        goals={"double": ("<=", 0)},
        higher_is_better=frozenset({"claims"}),
        noise=0.1,
    ),
    _line(
        "simulator_load",
        "the simulator keeps up",
        {"growing_per_second": "requests_per_second"},
        higher_is_better=frozenset({"growing_per_second"}),
        noise=TIMED,
    ),
)
