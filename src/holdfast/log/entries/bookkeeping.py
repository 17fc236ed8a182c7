"""Bookkeeping: what went wrong, what the session is called, where it came from, what is gone."""

from typing import Literal

from msgspec import field

from holdfast.log.entries.entry import Entry
from holdfast.messages import Json


class Failed(Entry, frozen=True, kw_only=True, tag="failed"):
    """Something went wrong and the session went on."""

    what: str
    error: str
    detail: Json = None


class Titled(Entry, frozen=True, kw_only=True, tag="titled"):
    """What people call this session."""

    title: str


class Imported(Entry, frozen=True, kw_only=True, tag="imported"):
    """Where an imported log came from and what of it has no place in a view."""

    format: str
    source: str
    records: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Records by kind that carry nothing a model sees."""
    malformed: tuple[tuple[int, str], ...] = ()
    """Line number and reason of each line that could not be read."""
    repaired: dict[str, int] = field(default_factory=dict)
    """What was mended on the way, by kind: duplicates, orphaned results and so on."""


class Swept(Entry, frozen=True, kw_only=True, tag="swept"):
    """Files beside the log were removed, by the user's retention or to stay within a cap."""

    files: tuple[str, ...]
    """Names within the session's directory."""
    bytes: int = 0
    why: str = ""


class Dropped(Entry, frozen=True, kw_only=True, tag="dropped"):
    """Messages were marked to leave the view, or no longer are; they leave when the prefix may move."""

    targets: tuple[int, ...]
    on: bool = True
    by: Literal["user", "tool"] = "user"
    why: str = ""
