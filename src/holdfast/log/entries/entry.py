"""What every entry has: its number and its time."""

from msgspec import Struct


class Entry(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="entry",
    gc=False,
    weakref=False,
):
    n: int = 0
    """Number in the log, from 1; zero until it is appended."""
    at: float = 0.0
    """Seconds since the epoch."""
