"""The page about models is correct."""

from pathlib import Path

from longhold.core.models.registry import KNOWN_PREFIXES
from longhold.core.models.scripted import read_script

PAGE = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")


def test_the_script_is_of_the_language():
    script = next(text for text in PAGE.split("```\n") if text.startswith("think:"))
    assert [answer.error for answer in read_script(script)] == [
        None,
        "429 retry-after=2",
        "broken",
        None,
    ]


def test_every_way_to_name_a_model_is_on_the_page():
    assert [prefix for prefix in KNOWN_PREFIXES if f"`{prefix}" not in PAGE] == []
