"""Going back in a session: where to cut, so that a message of the user's was not said yet. Pure.

The session itself is never cut: going back makes a branch, and the session stays as it is.
"""

from collections.abc import Sequence

from holdfast.errors import NotInHistory
from holdfast.log.entries import AnyEntry, Said


def rewind_point(history: Sequence[AnyEntry], n: int = 0) -> int:
    """Return the last entry to keep: before the user's message n, by default the newest.

    Any other entry is kept itself, such as the answer after which to go another way.
    """
    asked = [entry.n for entry in history if isinstance(entry, Said) and not entry.hidden]
    if not n:
        if not asked:
            raise NotInHistory("nothing was said yet; there is nothing to go back to")
        return asked[-1] - 1
    if not any(entry.n == n for entry in history):
        raise NotInHistory(f"there is no entry #{n}; `holdfast explain` lists them")
    return n - 1 if n in asked else n
