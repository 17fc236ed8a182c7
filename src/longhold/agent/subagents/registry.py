"""The agents of a session according to its log, and which ends were reported.

An end is reported by a hidden message, or by the result of the starting call if it came later and
is not just an interruption. Only the supervisor knows whether an agent is really running.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Ended, Ran, Said, Spawned
from longhold.core.messages import text_of
from longhold.core.turn.repair import REPAIRS

AgentState: TypeAlias = Literal["running", "completed", "failed", "stopped", "interrupted"]

_TELLS = "ended:"
"""Prefix of a report's mail id; the number of the `Ended` entry follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    spawned: Spawned
    ended: Ended | None = None
    is_told: bool = False

    @property
    def id(self) -> str:
        return self.spawned.agent

    @property
    def state(self) -> AgentState:
        return self.ended.state if self.ended else "running"

    @property
    def is_unread(self) -> bool:
        return self.ended is not None and not self.is_told


def mark_of(ended: Ended) -> str:
    return f"{_TELLS}{ended.n}"


@dataclass(slots=True)
class AgentRegistry:
    known: dict[str, Known] = field(default_factory=dict)
    """By id, in the order of first start."""
    _position: LogCursor = field(default_factory=LogCursor)
    _calls: dict[str, str] = field(default_factory=dict)

    def follow(self, history: Sequence[AnyEntry]) -> "AgentRegistry":
        for entry in self._position.advance(history):
            self._take(entry)
        return self

    def _take(self, entry: AnyEntry) -> None:
        match entry:
            case Spawned(agent=id, tool_use_id=call):
                self.known[id] = Known(spawned=entry)
                if call:
                    self._calls[call] = id
            case Ended(agent=id) if id in self.known:
                known = replace(self.known[id], ended=entry, is_told=entry.is_delivered)
                self.known[id] = known
            case Said(mail=mark) if mark.startswith(_TELLS):
                for one in self.list_unreported():
                    if one.ended is not None and mark_of(one.ended) == mark:
                        self.known[one.id] = replace(one, is_told=True)
            case Ran(tool_use_id=call) if call in self._calls and not _is_repair(entry):
                one = self.known[self._calls[call]]
                if one.ended is not None:  # before the end the result is only a receipt
                    self.known[one.id] = replace(one, is_told=True)

    def list_unreported(self) -> list[Known]:
        found = [one for one in self.known.values() if one.is_unread]
        return sorted(found, key=lambda one: one.ended.n if one.ended else 0)


def _is_repair(ran: Ran) -> bool:
    return ran.is_error and text_of(ran.content) in REPAIRS
