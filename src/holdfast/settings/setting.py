"""One setting: its default, its reason, and what it may be.

Groups of settings are frozen dataclasses whose fields are made here; reading and checking
what users write is the package's business.
"""

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
    """Make a field with what is known of it."""
    limits = {"low": low, "high": high, "form": form, "personal": personal}
    return field(default=default, metadata={"why": why, **limits})
