"""The team of a session: founded with its first teammate, gone with its last.

Orders of teammates come in; the members, mailboxes and idle notices of `team` are kept. The
session's own agent leads. All of a session share its task list, teammates or not, so that a team
needs no second one.
"""

from dataclasses import dataclass
from pathlib import Path

from holdfast.agent.subagents.mail import SUMMARY_CHARS
from holdfast.agent.subagents.names import LEAD
from holdfast.agent.subagents.order import Finish, Order
from holdfast.agent.subagents.tasks import TaskList
from holdfast.agent.subagents.team import AgentTeam, Member
from holdfast.errors import ConfigError, StoreError


@dataclass(slots=True, kw_only=True)
class Teammates:
    """Who of a session's agents has a mailbox of a team."""

    session: str
    tasks: TaskList
    at: Path | None = None
    """Where teams lie, if not in the home directory."""
    team: AgentTeam | None = None

    @property
    def name(self) -> str:
        """The team's name: the session's own."""
        return self.session

    def join(self, order: Order) -> AgentTeam:
        """Take an agent into the team; the first one founds it."""
        if self.team is None:
            lead = Member(name=LEAD, session=self.session)
            try:
                self.team = AgentTeam.found(self.name, lead, at=self.at)
            except ConfigError:  # a session that is resumed finds its team
                self.team = AgentTeam.open(self.name, at=self.at)
            self.team.tasks = self.tasks
        self.team.join(
            Member(name=order.called, kind=order.kind, session=self.session, agent=order.id)
        )
        return self.team

    def recover(self) -> AgentTeam | None:
        """Find the team that a killed process of this session left; nobody of it runs any more."""
        try:
            team = AgentTeam.open(self.name, at=self.at)
        except ConfigError:
            return None
        team.tasks, self.team = self.tasks, team
        for member in team.members():
            if member.session == self.session and not member.is_lead:
                team.leave(member.name)
        return team

    def others(self, me: str) -> tuple[str, ...]:
        """List the teammates of somebody."""
        members = self.team.members() if self.team else ()
        return tuple(member.name for member in members if member.name != me)

    def report_idle(self, order: Order, done: Finish) -> None:
        """Tell the lead that a teammate has nothing left to do."""
        if self.team is not None:
            summary = " ".join(done.text.split())[:SUMMARY_CHARS]
            self.team.report_idle(order.called, "available", summary, order.task)

    def leave(self, order: Order) -> None:
        """Let a teammate go; what it had begun can be claimed by others."""
        if self.team is not None:
            self.team.leave(order.called)

    def close(self) -> None:
        """Remove a team in which nobody is left."""
        if self.team is not None:
            try:
                self.team.remove()
            except StoreError:
                return  # a member in another process still uses it
            self.team = None
