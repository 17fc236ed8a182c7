"""Finds the conversation of each request by client identity and message lineage.

A list that extends a known conversation belongs to it. A diverging list is a rewind if the client
names its sessions or the common part has an answer. Otherwise it is a new conversation. The log
stores the followed list, so conversations survive a restart.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import Lock, RLock
from weakref import WeakValueDictionary

from starlette.datastructures import Headers

from longhold.core.log.store import Store
from longhold.core.log.stores import default_store
from longhold.core.log.syncing import GATEWAY, open_when_free
from longhold.core.messages import JsonObject
from longhold.core.settings import ClearSettings, CostSettings, Settings, load_settings
from longhold.core.turn.engine import Engine
from longhold.core.turn.undo import undo
from longhold.core.view.window import COST
from longhold.errors import LogLocked
from longhold.gateway.conversation import Conversation
from longhold.gateway.endpoints import Call
from longhold.session.dialects import dialect_named
from longhold.session.program import system_head

SESSION_HEADERS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")
AGENT_HEADERS = ("x-claude-code-agent-id", "x-agent-id")
CREDENTIALS = ("x-api-key", "authorization", "api-key", "x-goog-api-key")
HASH_BYTES = 6
LONGEST_NAME = 40
KEEP_RESULTS = 2
"""Replaces the default of `clear.keep_results`, so that a clearing rewrites less."""
NEED_WEIGHT = 8.0
"""Replaces the default of `cost.need_weight`, because clients restore no files after a clearing."""
HANDOVER_SECONDS = 1.0
"""How long to wait for another process, which releases a log between calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    tenant: str
    session: str
    """The client's name for its session, or ''."""
    agent: str
    model: str
    dialect: str
    client: str
    """The client's user agent. It is not part of the identity."""
    first: str
    """The key of the first message. A different first message starts a different conversation."""

    @property
    def name(self) -> str:
        parts = (self.tenant, self.session, self.agent, self.model, self.dialect)
        return f"{GATEWAY}{_hash('|'.join(parts))}-{self.first[:8]}"


def identify(call: Call, headers: Headers, salt: bytes, *, apart: bool) -> Identity:
    """Identify the sender of a request. `apart` separates clients by credential."""
    head = system_head(call.messages)
    first = call.messages[min(head, len(call.messages) - 1)]
    return Identity(
        tenant=tenant_of(headers, salt) if apart else "",
        session=_first(headers, SESSION_HEADERS) or _find_name(call.body),
        agent=_first(headers, AGENT_HEADERS),
        model=call.model,
        dialect=call.endpoint.dialect,
        client=headers.get("user-agent", "").partition("/")[0][:LONGEST_NAME],
        first=dialect_named(call.endpoint.dialect).hear(first, f"messages[{head}]").key,
    )


def tenant_of(headers: Headers, salt: bytes) -> str:
    given = "|".join(sorted(credentials_in(headers)))
    return blake2b(given.encode(), digest_size=HASH_BYTES, key=salt).hexdigest()


def credentials_in(headers: Headers) -> set[str]:
    """Return the distinct credentials of a request, in any notation."""
    found = (value.split() for name in CREDENTIALS for value in headers.getlist(name))
    return {" ".join(v[1:] if len(v) > 1 and v[0].lower() == "bearer" else v) for v in found if v}


def _first(headers: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((headers[name] for name in names if headers.get(name)), "")


def _find_name(body: JsonObject) -> str:
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    return str(body.get("prompt_cache_key") or user or "")


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=HASH_BYTES).hexdigest()


NEWEST = 8
"""How many of a name's newest conversations are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    known: int
    """The number of leading messages of the request that match the conversation."""
    size: int
    has_answer: bool
    """Whether the matching part contains an answer."""


def choose(lineages: Sequence[Lineage], *, is_named: bool) -> int | None:
    """Return the index of the conversation that the request continues, or None for a new one."""
    possible = [
        (line.known == line.size, line.known, i)
        for i, line in enumerate(lineages)
        if line.known == line.size or line.has_answer or (is_named and line.known)
    ]
    return max(possible)[2] if possible else None


def _adapt_settings(settings: Settings) -> Settings:
    """Return the settings for a client's session.

    The compaction threshold is the window's default, because clients compact themselves near it.
    """
    window, stake_share = settings.window, settings.gateway.stake_share
    if window.auto_line == COST:
        window = replace(window, auto_line="")
    keep = settings.clear.keep_results
    clear = replace(
        settings.clear,
        stake_share=stake_share,
        keep_results=KEEP_RESULTS if keep == ClearSettings().keep_results else keep,
    )
    weight = settings.cost.need_weight
    if weight == CostSettings().need_weight:
        weight = NEED_WEIGHT
    return replace(settings, window=window, clear=clear, cost=CostSettings(need_weight=weight))


class Conversations:
    def __init__(
        self,
        settings: Settings | None = None,
        *,
        store: Store | None = None,
        directory: Path | None = None,
        opens_files: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`opens_files` means that the clients' tools can open files on this machine."""
        self._directory = directory or Path.cwd()
        self._settings = _adapt_settings(settings or load_settings(self._directory))
        self._store: Store = store or default_store()
        self._opens_files = opens_files
        self.clock = clock
        self._open: dict[str, Conversation] = {}
        """Conversations by session id, least recently used first."""
        self._ids: dict[str, list[str]] = {}
        """Session ids by name, newest last."""
        self._turns: WeakValueDictionary[str, RLock] = WeakValueDictionary()
        self._guard = Lock()

    def find(self, identity: Identity, call: Call) -> Conversation:
        """Return the request's conversation or a new one. This blocks, and can raise LogLocked."""
        return open_when_free(partial(self._found, identity, call), HANDOVER_SECONDS)

    def turn(self, id: str) -> RLock:
        """Return the lock for conversations of this name. A thread holds the lock."""
        with self._guard:
            return self._turns.setdefault(id.rpartition("-")[0], RLock())

    def _found(self, identity: Identity, call: Call) -> Conversation:
        if found := self.peek(identity, call):
            return found
        if any(message.get("role") == "assistant" for message in call.messages):
            self._ids.pop(identity.name, None)  # because another process may have begun it just now
            if found := self.peek(identity, call):
                return found
        return self._begun(identity, self._ids_of(identity.name), call)

    def peek(self, identity: Identity, call: Call) -> Conversation | None:
        ids = self._ids_of(identity.name)
        lineages = [self._lineage(self._reopen(id), call) for id in ids]
        place = choose(lineages, is_named=bool(identity.session))
        return self._reopen(ids[place]) if place is not None else None

    def let_go(self, idle_seconds: float | None = None) -> None:
        """Close sessions that were idle for this long, or that another process wants."""
        if idle_seconds is None:
            idle_seconds = self._settings.gateway.idle_seconds
        before = self.clock() - idle_seconds
        for id, one in list(self._open.items()):
            if one.used_at <= before or one.is_wanted:
                self.forget(id)

    @property
    def open_count(self) -> int:
        return len(self._open)

    def undo(self, id: str, n: int) -> str:
        """Undo a change of a session from its next call on. Raise `LogLocked` during a call."""
        if not self.forget(id):
            raise LogLocked(self._open[id].path, "a call in progress")
        with self._store.open(id) as log:
            return undo(Engine(log, self._settings), n)

    def forget(self, id: str) -> bool:
        """Close a conversation unless it is in use, so that the next request reads its log."""
        if not (turn := self.turn(id)).acquire(blocking=False):
            return False
        try:
            if (one := self._open.get(id)) is None:
                return True
            if not one.is_busy and (gone := self._open.pop(id, None)):
                gone.close()
            return not one.is_busy
        finally:
            turn.release()

    def close(self) -> None:
        for id in list(self._open):
            if one := self._open.pop(id, None):
                one.close()

    def _lineage(self, one: Conversation, call: Call) -> Lineage:
        known, size = one.count_known(call)
        roles = (message.get("role") for message in call.messages[:known])
        return Lineage(known=known, size=size, has_answer="assistant" in roles)

    def _ids_of(self, name: str) -> list[str]:
        if name not in self._ids:
            found = list(self._store.sessions(self._directory, prefix=name))
            found.sort(key=lambda one: one.header.created)
            self._ids[name] = [one.id for one in found[-NEWEST:]]
        return self._ids[name]

    def _reopen(self, id: str) -> Conversation:
        one = self._open.pop(id, None)
        if one is None:
            self._make_room()
            log = self._store.open(id)
            with log.close_on_failure():
                one = Conversation(log, self._settings, clock=self.clock)
                one.resume()
        self._open[id] = one
        return one

    def _begun(self, identity: Identity, ids: list[str], call: Call) -> Conversation:
        self._make_room()
        number = int(ids[-1].rpartition("-")[2]) + 1 if ids else 1
        log = self._store.create(directory=self._directory, session=f"{identity.name}-{number}")
        with log.close_on_failure():
            one = Conversation(log, self._settings, clock=self.clock)
            one.begin(call, identity.client, opens_files=self._opens_files)
        ids.append(one.id)
        del ids[:-NEWEST]
        self._open[one.id] = one
        return one

    def _make_room(self) -> None:
        idle = sum(not one.is_busy for one in list(self._open.values()))
        over = idle + 1 - self._settings.gateway.open_sessions
        for id in list(self._open) if over > 0 else ():
            over -= self.forget(id)
            if over <= 0:
                return
