"""What comes of a question to the past: a list of records, or a page of one."""

from dataclasses import dataclass

from holdfast.tools.history.pages import RecordPage
from holdfast.tools.history.records import Media, RecordKind


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHit:
    """A record that was found."""

    n: int
    kind: RecordKind
    at: float
    tool: str = ""
    tool_use_id: str = ""
    target: str = ""
    """What the call was about: a path or a command."""
    is_error: bool = False
    is_shown: bool = False
    """The model has it before it as it is: there is no need to open it."""
    chars: int = 0
    lines: int = 0
    line: int = 0
    """Where the words stand; none where no words were asked for."""
    snippet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecords:
    """Some of the records that match."""

    hits: tuple[RecordHit, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRecord:
    """A page of what was asked for."""

    title: str
    page: RecordPage
    media: Media = ()
    """Pictures and documents that stood in it; only with the first page."""
    trouble: str = ""
    """What could not be had of it, and why."""
