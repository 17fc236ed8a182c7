"""The page on peers states where they are better, and why a figure is missing."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from peering.page import render

OURS = {"ms_per_turn_1000": 0.7, "usd": 40.0, "user_messages": 1.0, "tokens_share": 0.2}
FOUND = {
    "ours": OURS,
    "peers": {
        "openai_agents": {"version": "1.2", "ms_per_turn_1000": 0.4, "usd": 60.0},
        "litellm": {"ms_per_turn_1000": 90.0, "reason": "TimeoutError: it took too long"},
        "deepagents": {"version": "3", "usd": 50.0, "user_messages": 0.5, "tokens_share": 0.1},
    },
    "sessions": 2,
    "calls": 419,
    "python": "3.11.7",
}


def lines(start):
    return [line for line in render(FOUND).splitlines() if line.startswith(start)]


def test_what_a_peer_does_better_is_named_with_both_figures():
    better = render(FOUND).partition("## Where others are better")[2]
    assert "- ms a turn at 1,000 (ours 0.7): `openai_agents` (0.4)\n" in better
    assert "- tokens after (ours 0.2): `deepagents` (0.1)\n" in better
    assert "cost" not in better and "user's messages" not in better


def test_a_figure_that_is_missing_is_a_dash_and_has_a_reason():
    (row, _) = lines("| `litellm`")
    assert row.startswith("| `litellm` | 90 | – | – |")
    (said,) = lines("- `litellm`")
    assert "trim_messages" in said and "TimeoutError: it took too long" in said
    assert lines("- `deepagents` 3: ")


def test_the_ratio_to_the_quickest_is_said():
    (said,) = lines("A turn of the quickest")
    assert said == "A turn of the quickest other takes 0.57 times ours at 1,000 (`openai_agents`)."
