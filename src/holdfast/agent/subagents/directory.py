"""Whom an agent can write to: those who work for it, those it works beside, and who leads.

Two households come in, one's own and the one it belongs to; an `Around` goes out, made anew for
every message. A stopped agent is started again by the household it belongs to.
"""

from dataclasses import dataclass

from holdfast.agent.subagents.names import LEAD, MAIN
from holdfast.agent.subagents.registry import Known
from holdfast.agent.subagents.route import Around, Peer
from holdfast.agent.subagents.supervisor import Supervisor
from holdfast.agent.subagents.teammates import Teammates
from holdfast.errors import StoreError


@dataclass(slots=True, kw_only=True)
class AgentDirectory:
    """The surroundings of one agent."""

    id: str
    """'' for the main one."""
    name: str
    own: Supervisor
    above: Supervisor | None
    teammates: Teammates

    @property
    def me(self) -> str:
        """What messages are signed with; the main one is its team's lead."""
        if self.id:
            return self.name or self.id
        return LEAD if self.teammates.team is not None else MAIN

    def around(self) -> Around:
        """Say who is there now."""
        members = self.teammates.others(self.me)
        team = self.teammates.team
        return Around(
            me=self.me,
            peers=tuple(self._peers()),
            has_main=bool(self.id),
            team=team.name if team else "",
            teammates=members,
            lead=LEAD if team else "",
            is_lead=team is not None and not self.id,
        )

    def _peers(self) -> list[Peer]:
        homes = [home for home in (self.above, self.own) if home is not None]
        return [
            _peer(one, home)
            for home in homes
            for one in home.registry.known.values()
            if one.id != self.id and not (one.spawned.team and one.id in home.running)
        ]

    async def resume(self, id: str) -> None:
        """Start a stopped agent again, wherever it belongs."""
        for home in (self.own, self.above):
            if home is not None and id in home.registry.known:
                return await home.resume(id)
        raise StoreError(f"there is no agent {id!r} here")


def _peer(one: Known, home: Supervisor) -> Peer:
    if one.id in home.running:
        return Peer(id=one.id, name=one.spawned.name)
    by_user = one.ended is not None and one.ended.by_user
    return Peer(id=one.id, name=one.spawned.name, state="stopped_by_user" if by_user else "stopped")
