"""Which shown result a new one repeats.

The index has hashes and ids; equality is decided by comparing contents.
"""

from dataclasses import dataclass, field

from holdfast.log.entries import Ran
from holdfast.messages import ResultContent, Text
from holdfast.view import View
from holdfast.view.items import Result, Round


@dataclass(slots=True)
class Repeats:
    _first: dict[int, str] = field(default_factory=dict)
    """The first tool use by content hash."""
    _is_built: bool = False

    def first_of(self, view: View, ran: Ran) -> Result | None:
        """Return the shown result that a new one repeats; else remember the new one."""
        if not self._is_built:
            self._build(view)
        key = key_of(ran.content)
        if key is None:
            return None
        known = _shown(view, self._first.get(key, ""))
        if known is None:
            self._first[key] = ran.tool_use_id
            return None
        is_same = known.content == ran.content and known.is_error == ran.is_error
        return known if is_same and known.tool_use_id != ran.tool_use_id else None

    def _build(self, view: View) -> None:
        """Index what is in the view when the session is opened."""
        self._is_built = True
        for item in view.items:
            for result in item.results if isinstance(item, Round) else ():
                key = key_of(result.content)
                if key is not None:
                    self._first.setdefault(key, result.tool_use_id)


def key_of(content: ResultContent) -> int | None:
    """Return a key that equal contents share; None for anything but text."""
    if isinstance(content, str):
        return hash(content)
    if not all(isinstance(block, Text) for block in content):
        return None
    return hash(tuple(block.text for block in content if isinstance(block, Text)))


def _shown(view: View, tool_use_id: str) -> Result | None:
    """Find a result unless it left the view, was cleared, or is itself a repetition."""
    owner = view.round_of(tool_use_id)
    result = owner.result_of(tool_use_id) if owner else None
    if result is None or result.cleared is not None:
        return None
    return None if result.spilled and result.spilled.same_as else result
