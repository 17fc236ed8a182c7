"""The demo's material: a small repository with two bugs, long notes, tasks and settings.

The fixes are real work with real tests. The reading in between fills a small window: results are
cleared, then history is compacted while tasks are still open.
"""

import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from holdfast.settings import Settings

WINDOW_TOKENS = 32_000
"""Small, so that the window fills."""
DAYS, DAY_LINES = 12, 40
"""Short files, enough of them that old results are cleared."""
WEEKS, WEEK_LINES = 6, 150
"""Long files, which fill the window although old results are cleared."""
TABLE_ROWS = 160
"""Printed by the tests: more than one result may hold in a window this small."""
TEST_WORDS = (sys.executable, "-m", "unittest")

WARES = "anchor beam cleat davit fender halyard keel ladder mast oar pulley rudder sail"
CODE = {
    "shop/__init__.py": "",
    "shop/cart.py": (
        "def total(prices, discount=0):\n"
        '    """Sum prices and take off a discount in percent."""\n'
        "    return sum(prices) * (100 + discount) / 100\n\n\n"
        "def cheapest(prices):\n    return max(prices)\n"
    ),
    "test_cart.py": (
        "import unittest\n\nfrom shop.cart import cheapest, total\n\n\n"
        "class CartTest(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([10, 20], discount=10), 27)\n\n"
        "    def test_cheapest(self):\n        self.assertEqual(cheapest([3, 1, 2]), 1)\n\n"
        "    def test_table(self):\n"
        f"        for row in range({TABLE_ROWS}):\n"
        '            print(f"article {row:04d}: list price {row * 7 % 90 + 10}.00, in stock")\n'
    ),
}
TASKS = (
    'The discount is added instead of taken off. Replace "100 + discount" with "100 - discount" in shop/cart.py.',
    "Prices are never to be rounded up. Keep that in mind, and read notes/day_1.md.",
    *(f"Now read notes/day_{day}.md." for day in range(2, DAYS + 1)),
    *(f"Now read notes/week_{week}.md." for week in range(1, WEEKS + 1)),
    'The wrong end is returned. Replace "max(prices)" with "min(prices)" in shop/cart.py, then run the tests.',
    'Create CHANGES.md with "Discounts are taken off, cheapest finds the cheapest." and run the tests again.',
)
COMPACT_AFTER = "Now read notes/week_1.md."
"""Then the user asks for a compaction, which the model writes; later ones come from the notes."""
FOCUS = "the rules about prices"


def _files() -> Iterator[tuple[str, str]]:
    """Yield the files of the repository, always the same."""
    yield from CODE.items()
    for kind, count, lines in (("day", DAYS, DAY_LINES), ("week", WEEKS, WEEK_LINES)):
        for number in range(1, count + 1):
            yield f"notes/{kind}_{number}.md", _orders(f"{kind} {number}", lines)


def _orders(title: str, count: int) -> str:
    dice = random.Random(title)
    lines = (f"- order {n:03d}: {' '.join(dice.choices(WARES.split(), k=9))}" for n in range(count))
    return "\n".join((f"# Orders of {title}", *lines, ""))


def write_project(place: Path) -> Path:
    project = place / "shop"
    for path, content in _files():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(content, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    return project


def filled_settings() -> Settings:
    """Return what people live with: let the window fill, then have the model summarise it."""
    own = demo_settings()
    return replace(
        own,
        window=replace(own.window, auto_line=""),
        spill=replace(own.spill, on=False),
        clear=replace(own.clear, on=False),
        notes=replace(own.notes, on=False),
    )


def demo_settings() -> Settings:
    """Return the defaults in a small window, with one layer at work at a time.

    Notes written by a model and a prepared summary would leave nothing to see at the line.
    """
    plain = Settings()
    return replace(
        plain,
        window=replace(plain.window, limit_tokens=WINDOW_TOKENS),
        compact=replace(plain.compact, ahead=False),
        notes=replace(plain.notes, model=False, stand_in="always"),
        memory=replace(plain.memory, on=False),
    )
