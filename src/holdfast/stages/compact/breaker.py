"""The breaker: models that failed several times in a row are left alone for a while.

It is read from the log, so that a resumed session knows it too. It closes again with time, or after
some compactions from the log: then one more summary is asked for.
"""

from collections.abc import Sequence

from holdfast.log.entries import AnyEntry, Compacted, Failed
from holdfast.settings import CompactSettings

WAYS = frozenset({"provider", "fork", "direct", "pieces"})
"""The ways that ask a model while somebody waits."""
STAGE = "compact: "


def is_broken(history: Sequence[AnyEntry], settings: CompactSettings, now: float) -> bool:
    """True if no model is asked now unless a person wants it."""
    in_a_row, since, failed_at, has_failed = 0, 0, 0.0, False
    for entry in history:
        match entry:
            case Failed(what=what, at=at) if what.removeprefix(STAGE) in WAYS:
                has_failed, failed_at = True, at
            case Compacted(by="model" | "provider"):
                in_a_row, since, has_failed = 0, 0, False
            case Compacted(by="digest") if has_failed:
                in_a_row, since, has_failed = in_a_row + 1, 0, False
            case Compacted(by="digest"):
                since += 1
    is_open = in_a_row >= settings.failures
    waited_seconds = abs(now - failed_at)  # a clock that was set back must not keep it open
    has_waited = waited_seconds >= settings.retry_seconds or since >= settings.retry_compactions
    return is_open and not has_waited
