"""docs/architecture.md shows a real run. `make golden` redraws it."""

import re
from pathlib import Path

import pytest

from golden.life_of_a_message import parts, play
from pages import Page
from regions import fenced, keep_up, regions

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
SHARE, TOKENS = 0.05, 80
"""By how much figures with a `~` may differ: paths are longer on one machine than on another."""
ABOUT = re.compile(r"~\$?(\d[\d,.]*\d|\d)")
LANGUAGES = {"preview": "text", "summary": "text", "undo": "text"}


def _figures(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in ABOUT.findall(text)]


async def test_the_page_shows_what_happens(tmp_path):
    drawn = parts(await play(tmp_path / "shop"))

    def produce(name: str) -> str:
        is_request = "request" in name
        return fenced(drawn[name], LANGUAGES.get(name, "text" if is_request else "diff"))

    shown = regions(keep_up(PAGE, "drawn", produce), "drawn")
    assert set(shown) == set(drawn)
    for name, part in shown.items():
        fresh = produce(name)
        assert ABOUT.sub("~", part) == ABOUT.sub("~", fresh), name
        about = [pytest.approx(n, rel=SHARE, abs=TOKENS if n >= 1 else 0) for n in _figures(fresh)]
        assert _figures(part) == about, name


def test_every_step_says_which_module_takes_it():
    steps = re.split(r"^## \d+\. ", Page(path=PAGE).prose, flags=re.M)[1:]
    assert [step.splitlines()[0] for step in steps if not re.search(r"`[\w/]+\.py`", step)] == []
