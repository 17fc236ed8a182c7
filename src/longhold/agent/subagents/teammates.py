"""The teammates of a session: agents that remain for further tasks, each with a mailbox.

The team is stored in `teams/<session>/` in the home directory, from the first teammate to the last.
A resumed session recovers the team of a killed process.
"""

import secrets
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Self

from msgspec import Meta, Struct, structs

from longhold.agent.subagents.ledger import Mailbox, SharedLedger
from longhold.agent.subagents.mail import SUMMARY_CHARS, IdleNotice, Mail
from longhold.agent.subagents.names import LEAD, PATTERN, check_agent_name
from longhold.agent.subagents.order import Finish, Order
from longhold.agent.subagents.tasks import TaskList
from longhold.core.messages.text import one_line
from longhold.core.settings import home
from longhold.core.settings.private_files import private_directory
from longhold.errors import ConfigError


class Member(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: Annotated[str, Meta(pattern=PATTERN)]
    kind: str = "general"
    session: str = ""
    agent: str = ""
    is_lead: bool = False
    has_left: bool = False
    at: float = 0.0


@dataclass(slots=True, kw_only=True)
class Teammates:
    session: str
    tasks: TaskList
    """Shared by all agents of the session, not only teammates."""
    _ledger: SharedLedger[Member] | None = None
    _members: dict[str, Member] = field(default_factory=dict)

    @property
    def directory(self) -> Path:
        return home() / "teams" / check_agent_name(self.session, "a team")

    @property
    def team(self) -> Self | None:
        return self if self._ledger is not None else None

    def members(self) -> tuple[Member, ...]:
        self._catch_up()
        return tuple(member for member in self._members.values() if not member.has_left)

    def others(self, me: str) -> tuple[str, ...]:
        return tuple(member.name for member in self.members() if member.name != me)

    def box(self, name: str) -> Path:
        if not any(member.name == name for member in self.members()):
            raise ConfigError(f"{name!r} is not in the team {self.session!r}")
        return self.directory / "mail" / f"{name}.jsonl"

    def join(self, order: Order) -> None:
        """Add a teammate and create the team if needed; raise if the name is taken."""
        check_agent_name(order.called, "a teammate")
        ledger = self._open_team()
        new = Member(name=order.called, kind=order.kind, session=self.session, agent=order.id)
        with ledger.lock() as append:
            self._catch_up()
            for other in self._members.values():
                is_returning = other.name == new.name and (
                    other.has_left or other.agent == new.agent
                )
                # On some file systems names that differ only in case share a mailbox.
                if other.name.casefold() == new.name.casefold() and not is_returning:
                    raise ConfigError(f"{other.name!r} is in the team already; choose another name")
            append((structs.replace(new, at=time.time()),))

    def report_idle(self, order: Order, done: Finish) -> None:
        if self.team is not None:
            notice = IdleNotice(
                reason="available",
                summary=one_line(done.text)[:SUMMARY_CHARS],
                task=order.task[:SUMMARY_CHARS],
            )
            id = secrets.token_hex(8)
            mail = Mail(id=id, sender=order.called, to=LEAD, body=notice, at=time.time())
            Mailbox(self.box(LEAD)).send(mail)

    def recover(self) -> Self | None:
        """Open a killed process's team; its teammates have stopped."""
        try:
            if self.directory.is_symlink() or not (self.directory / "members.jsonl").is_file():
                return None
        except ConfigError:
            return None
        self._open_team()
        for name in self.others(LEAD):
            self.leave(name)
        return self.team

    def close(self) -> None:
        if self.team is not None and not self.others(LEAD):
            shutil.rmtree(self.directory)
            self._ledger = None
            self._members.clear()

    def _open_team(self) -> SharedLedger[Member]:
        if self._ledger is None:
            if self.directory.is_symlink():
                raise ConfigError(f"{self.directory} is a link; remove it")
            private_directory(self.directory / "mail")
            self._ledger = SharedLedger(self.directory / "members.jsonl", Member)
            if not self.members():
                lead = Member(name=LEAD, session=self.session, is_lead=True, at=time.time())
                with self._ledger.lock() as append:
                    append((lead,))
        return self._ledger

    def leave(self, name: str) -> None:
        if self._ledger is None:
            return
        with self._ledger.lock() as append:
            self._catch_up()
            member = self._members.get(name)
            if member is None or member.has_left:
                return
            append((structs.replace(member, has_left=True, at=time.time()),))
        self.tasks.release(name)

    def _catch_up(self) -> None:
        if self._ledger is not None:
            self._members |= {member.name: member for member in self._ledger.values()}
