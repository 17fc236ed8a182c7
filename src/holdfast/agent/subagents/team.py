"""A team: agents, often in processes of their own, who share tasks and write to each other.

Everything lies under `teams/<name>/` in the home directory, private to the user: who is in it,
one mailbox for each, and the task list. The one who founded it leads. A name leads nowhere
else, and of two names that differ only in case one is refused, since on some disks they are one.
Starting and ending the members' processes is left to whoever founds the team.
"""

import secrets
import shutil
import time
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from holdfast.agent.subagents.ledger import LedgerLine, SharedLedger
from holdfast.agent.subagents.mail import SUMMARY_CHARS, IdleNotice, Mail
from holdfast.agent.subagents.mailbox import Mailbox
from holdfast.agent.subagents.names import LEAD, PATTERN, checked_name
from holdfast.agent.subagents.tasks import TaskList
from holdfast.errors import ConfigError, StoreError
from holdfast.settings import home
from holdfast.settings.files import private_directory

MEMBERS = 50
"""More than can work at once, with room for those who left and came back."""


class Member(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One agent of a team."""

    name: Annotated[str, Meta(pattern=PATTERN)]
    kind: str = "general"
    """Which definition it follows."""
    session: str = ""
    agent: str = ""
    """Its id within that session."""
    is_lead: bool = False
    has_left: bool = False
    at: float = 0.0


class AgentTeam:
    """A team on disk; make one with `found` or `open`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.tasks = TaskList(directory / "tasks.jsonl")
        self._ledger = SharedLedger(directory / "members.jsonl", Member)
        self._members: dict[str, Member] = {}

    @classmethod
    def found(cls, name: str, lead: Member | None = None, *, at: Path | None = None) -> "AgentTeam":
        """Begin a team; the founder leads it."""
        directory = _place(name, at)
        private_directory(directory.parent)
        try:
            directory.mkdir(mode=0o700)
        except FileExistsError:
            raise ConfigError(
                f"there is a team {name!r} already; join it or choose another"
            ) from None
        private_directory(directory / "mail")
        team = cls(directory)
        team.join(structs.replace(lead or Member(name=LEAD), is_lead=True))
        return team

    @classmethod
    def open(cls, name: str, *, at: Path | None = None) -> "AgentTeam":
        """Open a team that is there."""
        directory = _place(name, at)
        if directory.is_symlink() or not (directory / "members.jsonl").is_file():
            raise ConfigError(f"there is no team {name!r}")
        return cls(directory)

    @property
    def name(self) -> str:
        """What the team is called."""
        return self.directory.name

    @property
    def lead(self) -> str:
        """Who leads it."""
        return next((member.name for member in self.members() if member.is_lead), LEAD)

    def members(self) -> tuple[Member, ...]:
        """List who is in the team now, the founder first."""
        self._catch_up()
        return tuple(member for member in self._members.values() if not member.has_left)

    def join(self, member: Member) -> None:
        """Take somebody in; a name that is taken is refused unless it is the same agent."""
        if not (member.is_lead and member.name == LEAD):
            checked_name(member.name, "a member of a team")
        with self._ledger.held() as append:
            self._catch_up()
            _check_joining(member, self._members)
            append((structs.replace(member, at=time.time(), has_left=False),))

    def leave(self, name: str) -> None:
        """Let somebody go; what they had begun can be claimed by others."""
        with self._ledger.held() as append:
            self._catch_up()
            member = self._members.get(name)
            if member is None or member.has_left:
                return
            append((structs.replace(member, has_left=True, at=time.time()),))
        self.tasks.release(name)

    def box(self, name: str) -> Path:
        """Say where the mail of a member lies."""
        if not any(member.name == name for member in self.members()):
            raise ConfigError(f"{name!r} is not in the team {self.name!r}")
        return self.directory / "mail" / f"{name}.jsonl"

    def report_idle(
        self,
        member: str,
        reason: Literal["available", "interrupted", "failed"],
        summary: str = "",
        task: str = "",
    ) -> None:
        """Tell the lead that a member has nothing left to do."""
        notice = IdleNotice(
            reason=reason, summary=summary[:SUMMARY_CHARS], task=task[:SUMMARY_CHARS]
        )
        lead = self.lead
        mail = Mail(id=secrets.token_hex(8), sender=member, to=lead, body=notice, at=time.time())
        Mailbox(self.box(lead)).send(mail)

    def remove(self) -> None:
        """Remove the team with its mail and tasks, once only the lead is left."""
        others = [member.name for member in self.members() if not member.is_lead]
        if others:
            raise StoreError(f"{', '.join(others)} are still in the team; ask them to end first")
        shutil.rmtree(self.directory)

    def _catch_up(self) -> None:
        for line in self._ledger.news():
            if isinstance(line, LedgerLine):
                self._members[line.value.name] = line.value


def _place(name: str, at: Path | None) -> Path:
    return (at or home()) / "teams" / checked_name(name, "a team")


def _check_joining(member: Member, known: dict[str, Member]) -> None:
    if len(known) >= MEMBERS and member.name not in known:
        raise ConfigError(f"a team has at most {MEMBERS} members, those who left included")
    for other in known.values():
        is_same = (other.session, other.agent) == (member.session, member.agent)
        if other.name == member.name and (other.has_left or (is_same and other.session)):
            if other.is_lead and not member.is_lead:
                raise ConfigError(f"{member.name!r} is the lead's name; choose another")
            continue
        if other.name.casefold() == member.name.casefold():
            raise ConfigError(f"{other.name!r} is in the team already; choose another name")
    leads = [other.name for other in known.values() if other.is_lead and other.name != member.name]
    if member.is_lead and leads:
        raise ConfigError(f"{leads[0]!r} leads this team")
