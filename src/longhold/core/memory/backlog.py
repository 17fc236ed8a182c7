"""The budget of memory, and the user's messages that wait until the budget allows a search.

The budget is a share of the project's spending in the last days. Several short sessions of a
project can thus pay for a search together. Figures are per machine.

If the budget does not allow a search, the session records its waiting messages in a small file. A
later session searches the messages of several such files in one call with a short prompt. A file is
removed when all its messages have been searched.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from longhold.core.log.entries import Framed, Said, Section
from longhold.core.log.shared import SharedRecords
from longhold.core.log.spending import FileLedger, OwnSpending
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import stamp
from longhold.core.memory.provenance import Provenance
from longhold.core.messages import Usage, text_of
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import clean_line, exact_dollars, pluralize
from longhold.core.messages.usage import Tally
from longhold.core.messages.words import words_of
from longhold.core.models.prices import price_call
from longhold.core.settings.private_files import write_private
from longhold.core.settings.project import slug
from longhold.core.tools.protocol import Tool
from longhold.core.turn.fork.prefix import Prefix
from longhold.errors import LongholdError

ALL, EXTRACT, DREAM, RECALL = "all", "memory", "dream", "recall"
DAYS = {ALL: 7, EXTRACT: 7, RECALL: 7, DREAM: 28}
"""The period of each budget. A dream costs several searches, so small projects save for weeks."""
FLOOR_USD = 0.05
"""The weekly minimum in dollars, so that a project with little spending also learns."""
DREAM_SHARE = 1 / 3
"""The part of memory's share that is reserved for dreams. Otherwise searches would use all of it,
and duplicates would never be removed."""
UNPRICED_CALLS = 0.25
"""Limit for models without a price, as a share of the project's calls."""
TYPICAL = {EXTRACT: Usage(input_tokens=2_000, output_tokens=250)}
TYPICAL[DREAM] = Usage(input_tokens=2_500, output_tokens=400)
"""Typical usage of one call without the shared prompt, until the project has its own figures."""
CALLS = {EXTRACT: 2, DREAM: 5}
"""The number of calls in a search, and the minimum for a dream."""


def learning_directory(home: Path, place: Path) -> Path:
    """Return the directory for the spending and the waiting sessions of a memory directory."""
    return home / "learning" / slug(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBudget:
    directory: Path
    share: float
    """Share of the project's spending. 0 means no limit."""
    clock: Callable[[], float]
    own: OwnSpending = field(default_factory=OwnSpending)
    """The part of the session's spending that is not yet added."""

    def spent(self, kind: str, days: int = 0) -> Tally:
        return self._ledger(kind).last_days(days or DAYS[kind])

    def add_spending(self) -> None:
        """Add the session's spending since the last call of this method."""
        total, layers = self.own.take()
        for kind, tally in {ALL: total, **layers}.items():
            if tally.calls and kind in (ALL, EXTRACT, DREAM, RECALL):
                self._ledger(kind).add(tally)

    def allowed_usd(self, kind: str = EXTRACT) -> float:
        if kind == DREAM:
            return DREAM_SHARE * self.share * self.spent(ALL, DAYS[DREAM]).usd
        return max(FLOOR_USD, (1 - DREAM_SHARE) * self.share * self.spent(ALL).usd)

    def left_usd(self, kind: str = EXTRACT) -> float:
        """Return the amount left for dreams, or for searches and choices together."""
        return self.allowed_usd(kind) - self.spent_usd(kind)

    def spent_usd(self, kind: str = EXTRACT) -> float:
        if kind == DREAM:
            return self.spent(DREAM).usd
        return self.spent(EXTRACT).usd + self.spent(RECALL).usd

    @property
    def line(self) -> str:
        spent = [
            f"{exact_dollars(self.spent_usd(kind))}"
            f"{f' of {exact_dollars(self.allowed_usd(kind))}' if self.share else ''}"
            f" in {DAYS[kind]} days for {what}"
            for what, kind in (("searches", EXTRACT), ("dreams", DREAM))
        ]
        return f"memory spent {' and '.join(spent)} (memory.share)"

    def expect(self, kind: str, model: str, prompt: Usage, calls: int = 0) -> Tally:
        """Estimate the price of a search or dream on a prompt from the output of past calls."""
        past, call = self.spent(kind), TYPICAL[kind]
        if past.calls:
            call = msgspec.structs.replace(call, output_tokens=past.output_tokens // past.calls)
        return sum((price_call(model, prompt + call) for _ in range(calls or CALLS[kind])), Tally())

    def refusal(self, kind: str, expected: Tally, *, reserve: float = 0.0) -> str:
        """Return why a call must wait, or ''. `reserve` is the part of the budget to keep."""
        if not self.share:
            return ""
        total, left = self.spent(ALL), self.left_usd(kind)
        if expected.unpriced_calls:
            own = self.spent(EXTRACT).calls + self.spent(DREAM).calls
            most = UNPRICED_CALLS * total.calls
            return f"memory made {own} of {total.calls} calls" if own > most else ""
        if expected.usd <= left * (1 - reserve):
            return ""
        return (
            f"it would cost about {exact_dollars(expected.usd)}, and {exact_dollars(max(left, 0.0))}"
            f" of {exact_dollars(self.allowed_usd(kind))} is left, a part of {self.share:.0%}"
            f" of what this project spent in {DAYS[kind]} days (memory.share)"
        )

    def _ledger(self, kind: str) -> FileLedger:
        return FileLedger(self.directory / kind, clock=self.clock)


WORDS_CHARS = 24_000
"""The limit of one search, about 6,000 tokens. Further messages wait for the next search."""
MESSAGE_CHARS = 2_000
"""The limit per message, enough for an explanation. The rest of a pasted file adds little."""
ANSWER_TOKENS = 4_096


class BacklogBusy(LongholdError):
    """Another process is searching the backlog."""


class WaitingSession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    session: str
    searched: int
    """The number of the last message that was searched."""
    upto: int
    messages: int
    """The number of waiting user messages."""
    chars: int = 0
    """Length of the text that a search reads."""
    is_outside: bool = False
    """The session read untrusted text, so its memories wait for consent."""
    since: float = 0.0
    why: str = ""
    """The reason why the session was not searched when it was idle."""

    @property
    def line(self) -> str:
        count = pluralize(self.messages, "message")
        why = self.why or "searched with others when a session ends, is idle or begins"
        return f"{count} of {self.session} not searched for memories yet: {why}"


@dataclass(frozen=True, slots=True)
class Backlog:
    directory: Path

    def put(self, one: WaitingSession) -> None:
        path = self.directory / one.session
        if not one.messages:
            path.unlink(missing_ok=True)
        elif self._read(path) != one:
            write_private(path, msgspec.json.encode(one), is_synced=False)

    def list(self) -> list[WaitingSession]:
        """Return the waiting sessions. The session that has waited longest comes first."""
        paths = (path for path in self.directory.glob("*") if not path.name.startswith("."))
        found = (one for one in map(self._read, paths) if one is not None)
        return sorted(found, key=lambda one: (one.since, one.session))

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Let only one process search at a time."""
        try:
            with FileLock(self.directory / ".lock", timeout=0, mode=0o600):
                yield
        except Timeout:
            raise BacklogBusy("another process is searching the waiting messages") from None

    def _read(self, path: Path) -> WaitingSession | None:
        try:
            return msgspec.json.decode(path.read_bytes(), type=WaitingSession)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None


def find_waiting(home: Path, session: str) -> WaitingSession | None:
    """Return the part of a session that waits to be searched, in any project."""
    places = (home / "learning").glob("*/waiting") if session else ()
    found = (one for place in places for one in Backlog(place).list() if one.session == session)
    return next(found, None)


def is_users(said: Said) -> bool:
    return not said.hidden and not said.mail and bool(text_of(said.content).strip())


def line_of(said: Said, most_chars: int) -> str:
    text = clean_line(mask_secrets(text_of(said.content)), most_chars)
    return f"- #{said.n} ({stamp(said.at)[:10]}) {text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadWords:
    """The user's messages from waiting sessions, as many as fit into one search."""

    taken: dict[str, WaitingSession]
    """The sessions that were read, each with the messages that still wait."""
    said: dict[str, tuple[Said, ...]]
    is_outside: bool
    repository: Path

    @property
    def session(self) -> str:
        """The newest of the sessions, which proposals name."""
        return next(reversed(self.said))

    @property
    def text(self) -> str:
        return "\n\n".join(
            "\n".join([f"{session}:", *(line_of(one, MESSAGE_CHARS) for one in words)])
            for session, words in self.said.items()
        )

    def on(self, change: MemoryChange) -> MemoryChange:
        """Add evidence to a memory, which is the message that shares most words with it."""
        if change.text is None:
            return change
        written = set(words_of(change.text))
        found = [(session, one) for session, words in self.said.items() for one in words]
        session, said = max(
            found, key=lambda at: len(written & {*words_of(text_of(at[1].content))})
        )
        return Provenance(session=session, message=said.n, repository=self.repository).on(change)


def read_words(
    shared: SharedRecords, waiting: Sequence[WaitingSession], repository: Path
) -> UnreadWords | None:
    """Read the oldest waiting messages, either from sessions with untrusted text or from others."""
    same = [one for one in waiting if one.is_outside == waiting[0].is_outside] if waiting else []
    taken: dict[str, WaitingSession] = {}
    said: dict[str, tuple[Said, ...]] = {}
    room, known = WORDS_CHARS, set[frozenset[str]]()
    for one in same:
        every = [w for w in shared.read_said(one.session) if one.searched < w.n <= one.upto]
        every = [w for w in every if is_users(w)]
        words = list(drop_repeated(every, known))
        fitting = list(_take_fitting(words, room))
        room -= sum(len(line_of(w, MESSAGE_CHARS)) for w in fitting)
        is_whole = len(fitting) == len(words)
        searched = one.upto if is_whole else fitting[-1].n if fitting else one.searched
        left = 0 if is_whole else sum(w.n > searched for w in every)
        taken[one.session] = msgspec.structs.replace(one, searched=searched, messages=left)
        if fitting:
            said[one.session] = tuple(fitting)
        if not is_whole:
            break
    if not same:
        return None
    outside = same[0].is_outside
    return UnreadWords(taken=taken, said=said, is_outside=outside, repository=repository)


def drop_repeated(words: Iterable[Said], known: set[frozenset[str]]) -> Iterator[Said]:
    """Drop messages that repeat another except for numbers, such as "step 3: run the tests"."""
    for said in words:
        key = frozenset(w for w in words_of(text_of(said.content)) if not w.isdigit())
        if key not in known:
            known.add(key)
            yield said


def _take_fitting(words: Iterable[Said], room: int) -> Iterator[Said]:
    for said in words:
        room -= len(line_of(said, MESSAGE_CHARS))
        if room < 0:
            return
        yield said


def search_prefix(model: str, tool: Tool) -> Prefix:
    """Return a short prompt with only the memory tool. It is cheap even without a cache."""
    text = "You keep the memory of a project for an assistant that works in it."
    frame = Framed(
        sections=(Section(name="memory", text=text),), tools=(tool.definition(),), cached=False
    )
    return Prefix(frame=frame, model=model, max_output_tokens=ANSWER_TOKENS)
