"""The page on prices and payback says what is true."""

import re
from pathlib import Path

from longhold.core.models.prices import prices
from longhold.core.policy.advice import cheapest_line
from longhold.core.policy.cost_model import Forecast
from longhold.core.settings import home
from longhold.core.view.window import window_for

PAGE = (Path(__file__).parents[3] / "docs" / "payback.md").read_text(encoding="utf-8")


def test_the_price_file_is_accepted():
    (stated,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (home() / "prices.toml").write_text(stated)
    found = prices("my-model")
    assert found is not None
    assert found.select_tier(100_001).read == 0.5


def test_the_figures_that_need_no_benchmark_are_right():
    assert f"usually some {Forecast().warm_calls:.0f}" in PAGE
    for model, name in (("sonnet-5-5", "Sonnet 5.5"), ("fable-5-1", "Fable 5.1")):
        line = cheapest_line(f"claude-{model}", window_for(f"claude-{model}"))
        assert f"{line / 1_000:.0f}K{' tokens' if name[0] == 'S' else ''} for {name}" in PAGE
