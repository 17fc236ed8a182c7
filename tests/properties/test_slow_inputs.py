"""Texts built to be slow are read in time. `benchmarks/slow_inputs.py` tests every reader."""

import importlib.util
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "slow_inputs.py"


def _benchmark():
    spec = importlib.util.spec_from_file_location("slow_inputs", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["slow_inputs"] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


slow = _benchmark()
CHARS = 400_000


@pytest.mark.parametrize(
    ("reader", "unit"),
    [
        ("notices", "<task-notification>"),
        ("notices", "<task-notification><status>"),
        ("typed", "<system-reminder>"),
        ("typed", "<command-name> "),
        ("reply", " "),
        ("readable_text", "<a href="),
        ("readable_text", "<!--"),
        ("front_matter", "{"),
        ("toml", " "),
        ("defined_in", "async\n"),
        ("defined_in", "func ("),
        ("gist", " "),
        ("without_numbers", "\n"),
        ("ignore_rule", " "),
        ("shorten_sections", "1. a "),
        ("shorten_sections", " "),
        ("glob", "a"),
        ("glob", "a/"),
        ("masked", "Bearer "),
        ("budget_in", "+9"),
    ],
)
def test_what_repeats_without_an_end_is_read_in_time(reader, unit):
    text = unit * (CHARS // len(unit))
    text = text[: 190_000 // len(unit) * len(unit)] if reader == "typed" else text
    assert slow.seconds_for(slow.READERS[reader], text) < slow.LIMIT_SECONDS


@pytest.mark.parametrize("end", ["</form>", "<form></form>"])
def test_open_elements_do_not_slow_down_the_others(end):
    text = "<svg>" * 40_000 + end * 40_000
    assert slow.seconds_for(slow.READERS["readable_text"], text) < slow.LIMIT_SECONDS


def test_a_title_in_many_pieces_is_read_in_time():
    text = "<title>" + "a</b>" * 150_000
    assert slow.seconds_for(slow.READERS["readable_text"], text) < slow.LIMIT_SECONDS


def test_a_number_of_any_length_is_no_budget():
    assert slow.budget_in("+" + "9" * 400 + "k") == 0
    assert slow.budget_in("+500k go on") == 500_000
