"""The one door for what a provider sends: plain JSON of a bounded depth, and typed errors.

Servers send strings for numbers, lists for objects and objects nested thousands deep. Whatever
passed `tame` can be written to a log and read back; a field of another type than expected counts
as missing, so that an answer that was paid for is not lost over it.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.errors import StreamBroken
from holdfast.messages import Json, JsonObject

MOST_DEPTH = 100
"""No tool takes deeper input, and JSON readers give up at about a thousand."""
TOO_DEEP = "(nested too deeply)"
MOST_BITS = 10_000
"""Of an integer; Python writes none much longer as text."""

_MISREAD = (AttributeError, TypeError, ValueError, LookupError, RecursionError, OverflowError)


def tame(value: Any, depth: int = MOST_DEPTH) -> Json:
    """Return a value as JSON that every reader takes: no NaN, no huge integer, not too deep."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if depth <= 0:
        return TOO_DEEP
    if isinstance(value, dict):
        return {
            str(key): one if type(one) is str else tame(one, depth - 1)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [tame(one, depth - 1) for one in value]
    return str(value)


def _number(value: int | float) -> int | float | None:
    """Return a number that JSON has, or None."""
    if isinstance(value, int):
        return value if value.bit_length() <= MOST_BITS else None
    return value if math.isfinite(value) else None


def is_deep(value: Json, depth: int = MOST_DEPTH) -> bool:
    """Return whether a value is nested deeper than `tame` leaves it."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth <= 0 or any(is_deep(one, depth - 1) for one in inner)
    return False


def word(value: Json) -> str:
    """Read an id, a name or a reason; anything but a string or a number is ''."""
    return str(value) if isinstance(value, str | int | float) else ""


def text_in(value: Json) -> str:
    """Read text; some servers send it as a list of parts."""
    if isinstance(value, list):
        return "".join(
            text_in(part.get("text")) if isinstance(part, dict) else "" for part in value
        )
    return value if isinstance(value, str) else ""


def objects(value: Json) -> list[JsonObject]:
    """Return the objects of a list; anything else has none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


@contextmanager
def readable() -> Iterator[None]:
    """Raise `StreamBroken` where an answer has a shape that nobody foresaw."""
    try:
        yield
    except _MISREAD as error:
        problem = f"{type(error).__name__}: {error}"
        raise StreamBroken(f"the answer cannot be read ({problem}); send it again") from error
