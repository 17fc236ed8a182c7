"""The lines of the scorecard, with the goals that were set for them."""

from collections.abc import Mapping
from typing import Any

from scoring.line import ScoreLine

TIMED = 0.5
"""Noise of a figure in milliseconds: the cores are shared."""
COUNTED = 0.0
RECORDED = "recorded sessions; without them some are made up, and the goals say nothing"


def _line(
    name: str, claim: str, figures: Mapping[str, str], words: str = "", **more: Any
) -> ScoreLine:
    command = words or f"benchmarks/{name}.py --json"
    return ScoreLine(name=name, claim=claim, words=command.split(), figures=figures, **more)


def none(*names: str) -> dict[str, tuple[str, float]]:
    """Set the goal of figures that must be 0."""
    return dict.fromkeys(names, ("<=", 0))


def at_most(**most: float) -> dict[str, tuple[str, float]]:
    return {name: ("<=", value) for name, value in most.items()}


def named(*names: str, under: str = "") -> dict[str, str]:
    """Show figures by the names that they have in the JSON."""
    return {name: f"{under}{name}" for name in names}


LINES = (
    _line(
        "replay",
        "on real sessions ours is cheaper than what others do, and misses less",
        {
            "ours_usd": "policies.ours.usd",
            "ours_to_cheapest_other": "ours_to_cheapest",
            "ours_regret": "policies.ours.regret",
            "ours_regret_losses": "ours_regret_losses",
            "read_ratio": "as_recorded.read_ratio",
            "seconds": "seconds",
            "cpu_seconds_per_core": "cpu_seconds_per_core",
        },
        goals=at_most(
            ours_to_cheapest_other=1.0,
            ours_regret_losses=0,
            seconds=120.0,
            cpu_seconds_per_core=120.0,
        )
        | {"read_ratio": (">=", 0.95)},
        noise=0.1,
        seconds=900,
        needs=RECORDED,
    ),
    _line(
        "peers",
        "a turn costs less than with any peer, and no more when the session is long",
        {
            "ours_ms_1000": "ours.ms_per_turn_1000",
            "ours_ms_10000": "ours.ms_per_turn_10000",
            "fastest_peer_ratio_1000": "fastest_peer_ratio_1000",
            "fastest_peer_ratio_10000": "fastest_peer_ratio_10000",
            "fastest_on_disk_ratio_1000": "fastest_on_disk_ratio_1000",
            "fastest_on_disk_ratio_10000": "fastest_on_disk_ratio_10000",
            "ours_growth": "ours_growth",
            "ours_usd": "ours.usd",
            "cheapest_peer_usd": "cheapest_peer_usd",
        },
        "benchmarks/peers.py --page benchmarks/results/peers.md --json",
        goals=at_most(ours_growth=1.5)
        | dict.fromkeys(
            (
                f"{words}_ratio_{n}"
                for words in ("fastest_peer", "fastest_on_disk")
                for n in (1_000, 10_000)
            ),
            (">=", 1.0),
        ),
        noise=TIMED,
        seconds=2_400,
        details="peers",
        needs="a package registry, or the peers installed already",
    ),
    _line(
        "turn_overhead",
        "a turn costs what is new, not what is old",
        {
            "ms_at_100": "sizes.100.p50_ms",
            "ms_at_100000": "sizes.100000.p50_ms",
            "p99_ms_at_10000": "sizes.10000.p99_ms",
            "exponent": "growth_exponent",
        },
        goals=at_most(exponent=0.1, p99_ms_at_10000=1.0),
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
        goals={"overhead_ms": ("<=", 2.0)},
        noise=TIMED,
    ),
    _line(
        "gauge",
        "the size of the context is known between two calls",
        {"error_median": "delta_error_p50", "error_p90": "delta_error_p90"},
        goals=at_most(error_median=0.05, error_p90=0.2),
    ),
    _line(
        "kill_resume",
        "a killed agent loses nothing and repeats nothing",
        named("lost", "doubled"),
        "benchmarks/kill_resume.py --kills 40 --json",
        goals=none("lost", "doubled"),
        noise=COUNTED,
        seconds=400,
    ),
    _line(
        "chaos",
        "failing models do not stop a session",
        named("turns", "hangs", "rejected"),
        goals=none("hangs", "rejected"),
        higher_is_better=frozenset({"turns"}),
        noise=COUNTED,
    ),
    _line(
        "breaks_real",
        "cold calls on record have a cause",
        named("explained_share", "cold_calls"),
        goals={"explained_share": (">=", 0.65)},
        # 0.7 counted guesses about thinking, which these transcripts contradict
    ),
    _line(
        "history",
        "a search finds the session that is meant",
        named("first", "first_three"),
        goals={"first": (">=", 0.85), "first_three": (">=", 0.95)},
    ),
    _line(
        "causes",
        "no stated cause contradicts the transcript",
        named("stated", "confirmed", "contradicted"),
        goals=none("contradicted"),
    ),
    _line(
        "payback",
        "waiting for the right moment pays",
        {"gap_to_best": "mean_gap", "false_alarms": "false_alarms"},
        goals=none("false_alarms") | at_most(gap_to_best=0.02),
        seconds=900,
    ),
    _line(
        "fork_prefix",
        "forks read their parent's prefix",
        {"read_share": "fork_read_share", "ten_cost": "ten_forks_cost_ratio"},
        goals=at_most(ten_cost=2.0) | {"read_share": (">=", 0.99)},
    ),
    _line(
        "clearing",
        "clearing puts the first compaction off",
        {
            "calls_ratio": "median_calls_to_line_ratio",
            "cost_ratio": "cost_ratio",
            "bytes_lost": "bytes_unrecoverable",
        },
        goals=none("bytes_lost") | {"calls_ratio": (">=", 1.0)},
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
        goals=at_most(tokens_share=0.12) | {"user_messages": (">=", 1.0)},
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
        goals=none("false_statements") | {"user_words_kept": (">=", 1.0)},
        higher_is_better=frozenset({"survives_abort", "tool_change_read_share"}),
        noise=COUNTED,
        seconds=900,
    ),
    _line(
        "defaults",
        "at default settings nothing is lost, repeated or rewritten, in any situation",
        named(
            "unread_lost",
            "calls_repeated",
            "open_turn_visible_share",
            "user_words_lost",
            "past_threshold_share",
            "ended_with_room",
            "model_summary_share",
            "live_tokens_rewritten",
            "paid_unused_share",
            "wrong_windows",
        ),
        goals=none(
            "unread_lost",
            "calls_repeated",
            "user_words_lost",
            "ended_with_room",
            "live_tokens_rewritten",
            "wrong_windows",
        )
        | at_most(past_threshold_share=0.05, paid_unused_share=0.01)
        | {"open_turn_visible_share": (">=", 1.0), "model_summary_share": (">=", 0.8)},
        details="usd_without",
        seconds=900,
    ),
    _line(
        "directives",
        "what the user said survives any number of compactions",
        {"kept": "kept_verbatim_share", "resurrected": "resurrected"},
        goals=none("resurrected") | {"kept": (">=", 1.0)},
        noise=COUNTED,
    ),
    _line(
        "notes",
        "notes make compaction free",
        named("no_call_share", "ms_p95"),
        goals={"no_call_share": (">=", 0.9)},
        noise=TIMED,
        seconds=600,
    ),
    _line(
        "recall",
        "recall is quick",
        {"hit_rate_10000": "10000.hit_rate_at_5", "ms_p99_10000": "10000.p99_ms"},
        goals={"ms_p99_10000": ("<=", 10.0)},
        higher_is_better=frozenset({"hit_rate_10000"}),
        noise=TIMED,
        seconds=600,
        needs="the LoCoMo conversations for hit rates that say something of the world",
    ),
    _line(
        "dream",
        "dreams lose nothing",
        named("planted", "lost"),
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
        seconds=900,
    ),
    _line(
        "mail",
        "mail survives kills",
        named("sent", "lost", "doubled"),
        goals=none("lost", "doubled"),
        higher_is_better=frozenset({"sent"}),
        noise=COUNTED,
    ),
    _line(
        "simulator_load",
        "the simulator keeps up",
        {"growing_per_second": "requests_per_second"},
        goals={"growing_per_second": (">=", 500.0)},
        noise=TIMED,
        needs_quiet=True,
    ),
    _line(
        "folds",
        "on projects that nothing was chosen on, ours costs 7 % less than the cheapest other and"
        " misses 15 % less",
        {
            "usd_ratio": "out_of_fold.usd_ratio",
            "regret_usd_ratio": "out_of_fold.regret_usd_ratio",
            "default_usd_ratio": "all_sessions.ours.usd_ratio",
            "default_regret_usd_ratio": "all_sessions.ours.regret_usd_ratio",
        },
        "benchmarks/replay.py --folds 4 --json",
        goals=at_most(
            usd_ratio=0.93,
            regret_usd_ratio=0.85,
            default_usd_ratio=0.93,
            default_regret_usd_ratio=0.85,
        ),
        seconds=1_800,
        needs=RECORDED,
    ),
    _line(
        "own_cost",
        "the engine's own calls pay for themselves",
        named("own_share", "own_usd", "saved_usd"),
        goals={"own_share": ("<=", 0.05)},
        higher_is_better=frozenset({"saved_usd"}),
        seconds=400,
        needs=RECORDED,
    ),
    _line(
        "exam",
        "what can still be answered after a compaction, read by patterns",
        {
            "digest": "digest.score",
            "digest_tokens_share": "digest.tokens_share.median",
            "digest_at_recorded_size": "digest_at_recorded_size.score",
            "recorded_summary": "recorded.score",
            "recorded_with_engine": "recorded_with_engine.score",
        },
        higher_is_better=frozenset(
            {"digest", "digest_at_recorded_size", "recorded_summary", "recorded_with_engine"}
        ),
        needs="recorded sessions for all but the digest's score; a model as reader is optional",
    ),
    _line(
        "adopt",
        "a program that adopts it loses nothing, whichever way; the worst of all ways",
        named("read_share", "violations", "lost", "doubled", "false", under="ways.*.")
        | {"follow_ms_at_10000": "follow_10000_p50_ms"}
        | named("us_per_known_message", "loop_lag_p99_ms")
        | named("mb_per_session", "descriptors_per_session"),
        goals=none("violations", "lost", "doubled", "false")
        | at_most(
            follow_ms_at_10000=2.0,
            us_per_known_message=1.0,
            loop_lag_p99_ms=50.0,
            mb_per_session=0.5,
            descriptors_per_session=1.0,
        )
        | {"read_share": (">=", 0.95)},
        noise=TIMED,
        seconds=1_200,
        needs="the frameworks of the adapters; one that is missing is skipped",
    ),
    _line(
        "gateway",
        "an agent behind the gateway costs less, and its answers stay as they are",
        named(
            "cost_ratio_warm",
            "cost_ratio_paused",
            "worst_session_ratio",
            "uncached_saved_with_breakpoints",
            "streams_changed",
            "unexplained_moves",
            "errors",
            "rss_mb",
            under="targets.longhold.",
        ),
        goals=none("streams_changed", "unexplained_moves", "errors")
        | at_most(cost_ratio_warm=0.89, cost_ratio_paused=0.78, worst_session_ratio=1.01)
        | {"uncached_saved_with_breakpoints": (">=", 0.5)},
        seconds=1_200,
        needs="the extras `gateway` and `simulator`; " + RECORDED,
    ),
    _line(
        "gateway_load",
        "two hundred clients at once wait little longer behind the gateway",
        {
            "errors": "errors",
            "added_first_byte_p99_ms": "added_first_byte_p99_ms",
            "added_p50_ms_at_100K": "added_p50_ms",
            "added_p99_ms_at_100K": "added_p99_ms",
            "rss_mb": "rss_mb",
        },
        goals=none("errors")
        | at_most(
            added_first_byte_p99_ms=250.0,
            added_p50_ms_at_100K=10.0,
            added_p99_ms_at_100K=60.0,
            rss_mb=200.0,
        ),
        noise=TIMED,
        needs_quiet=True,
        seconds=400,
        needs="the extras `gateway` and `simulator`",
    ),
    _line(
        "fleet",
        "many machines on one database lose nothing, whatever is killed",
        named(
            "lost",
            "doubled",
            "gaps",
            "tool_before_commit",
            "takeover_s",
            "append_p50_ms",
            "turns_per_second",
        ),
        goals=none("lost", "doubled", "gaps", "tool_before_commit") | at_most(takeover_s=4.0),
        higher_is_better=frozenset({"turns_per_second"}),
        noise=TIMED,
        seconds=600,
        needs="the extra `postgres` and PostgreSQL's own programs",
    ),
    _line(
        "report",
        "a report over a gigabyte of sessions is soon there, and right",
        named("first_s", "second_s", "search_ms", "rss_mb", "page_kb", "mismatches"),
        "benchmarks/report.py --mb 1024 --json",
        goals=none("mismatches")
        | at_most(first_s=60.0, second_s=1.0, search_ms=300.0, rss_mb=300.0, page_kb=3_000),
        noise=TIMED,
        seconds=1_200,
    ),
    _line(
        "terminal",
        "the chat is there at once and keeps up with the keys",
        named("start_s", "key_lag_p99_ms", "rss_mb", "load_average"),
        goals=at_most(start_s=0.5, key_lag_p99_ms=30.0, rss_mb=200.0),
        noise=TIMED,
        needs_quiet=True,
        seconds=400,
        needs="the extra `terminal`",
    ),
    _line(
        "startup",
        "starting costs little beside the SDK's own import",
        named("import_ratio", "help_ratio"),
        goals=at_most(import_ratio=0.15, help_ratio=0.3),
        noise=TIMED,
        needs_quiet=True,
    ),
)
