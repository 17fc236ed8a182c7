"""One setting: its default, its reason, and what it may be; groups of them are dataclasses."""

from dataclasses import field
from typing import Any


def setting(
    default: Any,
    why: str,
    *,
    low: float | None = None,
    high: float | None = None,
    form: str = "",
    personal: bool = False,
) -> Any:
    """Make a dataclass field; `longhold config` prints `why`, and `personal` keeps projects off it."""
    limits = {"low": low, "high": high, "form": form, "personal": personal}
    return field(default=default, metadata={"default": default, "why": why, **limits})
