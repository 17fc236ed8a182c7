"""TOML from anywhere: a key of very many parts would keep the parser busy for hours."""

import re
import tomllib
from typing import Any

KEY_PARTS = 32
"""Of a dotted key: settings have two, and the parser takes the square of their number."""

_PART = r"""\s*+\.\s*+(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?:{_PART}){{{KEY_PARTS}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a document; raise a `ValueError` for what is none, or is deeper than any of ours."""
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
