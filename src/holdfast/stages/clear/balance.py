"""What clearing has cost and saved so far, as it was expected to: what it may still risk."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.log.answers import day_of
from holdfast.log.cursor import LogCursor
from holdfast.log.entries import AnyEntry, Cleared, Compacted, Replied, Undone
from holdfast.log.spending import spent_on


@dataclass(slots=True)
class ClearingBalance:
    """A session's bill, and what its clearings are worth by now; kept up to date by `follow`."""

    billed_usd: float = 0.0
    saved_usd: float = 0.0
    """Negative until what was laid out for a rewrite has come back."""
    _saving: dict[int, float] = field(default_factory=dict)
    """What each clearing in force saves a call."""
    _cursor: LogCursor = field(default_factory=LogCursor)
    _model: str = ""
    _response: str = ""

    def follow(self, history: Sequence[AnyEntry], model: str) -> None:
        if self._cursor.is_past(history):
            self.__init__()  # type: ignore[misc]
        self._model = model
        for entry in self._cursor.advance(history):
            self._count(entry)

    def stake_usd(self, share: float) -> float:
        """Return what a rewrite may cost, so that no end of the session is too soon.

        If it ended right after, it would have cost at most this share more than without clearing.
        """
        return share * self.billed_usd + self.saved_usd

    def _count(self, entry: AnyEntry) -> None:
        match entry:
            case Replied(response_id=response, usage=usage) if usage is not None:
                if response and response == self._response:
                    return
                self._response = response
                spent = spent_on(entry.model or self._model, usage, day_of(entry.at))
                self.billed_usd += spent.usd
                self.saved_usd += sum(self._saving.values())
            case Cleared():
                self.saved_usd -= entry.cost_usd
                self._saving[entry.n] = entry.saves_usd
            case Undone(target=target):
                self._saving.pop(target, None)
            case Compacted():
                self._saving.clear()
