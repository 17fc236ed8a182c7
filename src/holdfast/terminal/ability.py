"""What this terminal can show."""

import importlib.util
import os
from typing import TextIO


def is_drawable(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that can move its cursor and shows more than ASCII."""
    is_dumb = os.environ.get("TERM", "dumb") in ("dumb", "unknown", "")
    is_unicode = (stream.encoding or "").lower().replace("-", "") == "utf8"
    return stream.isatty() and not is_dumb and is_unicode


def has_libraries() -> bool:
    """Return whether the extra `terminal` is installed."""
    return all(map(importlib.util.find_spec, ("prompt_toolkit", "rich")))


def has_colours() -> bool:
    return not os.environ.get("NO_COLOR")
