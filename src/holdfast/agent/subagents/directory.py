"""Whom an agent can write to: the agents it started, those beside it, and the lead."""

from dataclasses import dataclass

from holdfast.agent.subagents.names import LEAD, MAIN
from holdfast.agent.subagents.registry import Known
from holdfast.agent.subagents.route import Around, Peer
from holdfast.agent.subagents.supervisor import Supervisor
from holdfast.agent.subagents.teammates import Teammates
from holdfast.errors import StoreError


@dataclass(slots=True, kw_only=True)
class AgentDirectory:
    """The reachable agents, as one agent sees them."""

    id: str
    """'' for the main agent."""
    name: str
    own: Supervisor
    above: Supervisor | None
    teammates: Teammates

    @property
    def me(self) -> str:
        """The name that messages are signed with; the main agent is its team's lead."""
        if self.id:
            return self.name or self.id
        return LEAD if self.teammates.team is not None else MAIN

    def around(self) -> Around:
        return Around(
            me=self.me,
            peers=tuple(self._peers()),
            has_main=bool(self.id),
            teammates=self.teammates.others(self.me),
            is_lead=self.teammates.team is not None and not self.id,
        )

    def _peers(self) -> list[Peer]:
        supervisors = [one for one in (self.above, self.own) if one is not None]
        return [
            _peer(one, supervisor)
            for supervisor in supervisors
            for one in supervisor.registry.known.values()
            if one.id != self.id and not (one.spawned.team and one.id in supervisor.running)
        ]

    async def resume(self, id: str) -> None:
        """Resume a stopped agent through the supervisor it belongs to."""
        for supervisor in (self.own, self.above):
            if supervisor is not None and id in supervisor.registry.known:
                return await supervisor.resume(id)
        raise StoreError(f"there is no agent {id!r} here")


def _peer(one: Known, supervisor: Supervisor) -> Peer:
    if one.id in supervisor.running:
        return Peer(id=one.id, name=one.spawned.name)
    by_user = one.ended is not None and one.ended.by_user
    return Peer(id=one.id, name=one.spawned.name, state="stopped_by_user" if by_user else "stopped")
