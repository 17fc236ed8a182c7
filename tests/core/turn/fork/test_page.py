"""The page on forks is correct."""

from pathlib import Path

from longhold.core.models.prices import prices
from longhold.core.turn.fork.run import WAIT_SECONDS

PAGE = (Path(__file__).parents[4] / "docs" / "library.md").read_text(encoding="utf-8")


def test_the_longest_wait_is_on_it():
    assert f"at most {WAIT_SECONDS:.0f} seconds" in " ".join(PAGE.split())


def test_the_floor_for_ten_follows_from_the_prices():
    listed = prices("claude-sonnet-5-5")
    floor = 1 + 9 * listed.read / listed.write_5m
    assert f"relative to one | {floor:.2f} |" in PAGE
