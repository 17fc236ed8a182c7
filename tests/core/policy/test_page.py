"""The page on prices and payback is correct."""

import re
from pathlib import Path

from longhold.core.models.prices import prices
from longhold.core.policy.cost_model import USUAL_CALLS, USUAL_COLD_SHARE
from longhold.core.policy.threshold import cheapest_line
from longhold.core.settings import home
from longhold.core.view.window import window_for

PAGE = (Path(__file__).parents[3] / "docs" / "cache.md").read_text(encoding="utf-8")


def test_the_price_file_is_accepted():
    (stated,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (home() / "prices.toml").write_text(stated)
    found = prices("my-model")
    assert found is not None
    assert found.select_tier(100_001).read == 0.5


def test_the_figures_that_need_no_benchmark_are_right():
    page = " ".join(PAGE.split())
    cold = " or ".join(
        f"{share:.1%} ({life})".replace("%", " %")
        for share, life in zip(
            USUAL_COLD_SHARE.values(), ("five-minute cache", "one-hour cache"), strict=True
        )
    )
    assert f"{USUAL_CALLS:.0f} more calls, and that {cold}" in page
    for model, name in (("sonnet-5-5", "Sonnet 5.5"), ("fable-5-1", "Fable 5.1")):
        line = cheapest_line(f"claude-{model}", window_for(f"claude-{model}"))
        assert re.search(rf"\b{line / 1_000:.0f}K (?:tokens )?for {name}", page)
