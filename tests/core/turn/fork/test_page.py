"""The page on forks says what is true."""

from pathlib import Path

from longhold.core.models.prices import prices
from longhold.core.turn.fork import ForkEnd, ForkRequest
from longhold.core.turn.fork.run import WAIT_SECONDS

PAGE = (Path(__file__).parents[4] / "docs" / "forks.md").read_text(encoding="utf-8")


def test_every_option_and_every_end_is_on_it():
    for name in (*ForkRequest.__dataclass_fields__, *ForkEnd.__args__):
        assert f"`{name}`" in PAGE
    assert f"{WAIT_SECONDS:.0f} seconds at most" in PAGE


def test_the_floor_for_ten_follows_from_the_prices():
    listed = prices("claude-sonnet-5-5")
    floor = 1 + 9 * listed.read / listed.write_5m
    assert f"over one | {floor:.2f} |" in PAGE
