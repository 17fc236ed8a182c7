"""The sessions behind an adapter: one per conversation, resumed if it already exists.

Frameworks never report the end of a conversation, so the least recently used is closed.
"""

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from longhold.core.log.store import Store, new_id
from longhold.core.messages import JsonObject
from longhold.core.models.clients import DialectName
from longhold.core.settings import Settings
from longhold.core.tools.history.history import History
from longhold.core.tools.history.tool import history_tool
from longhold.errors import SessionExists
from longhold.session.session import Session

OPEN_SESSIONS = 100
"""Each open session has a file descriptor and holds its view in memory."""


class AdapterOptions(TypedDict, total=False):
    """The options that `Session.open` and `Session.resume` have in common."""

    client: object
    window: int
    max_tokens: int
    history: bool
    directory: Path
    store: Store
    settings: Settings
    notify: Callable[[str], None]


class Sessions:
    def __init__(
        self,
        dialect: DialectName,
        id: str | None,
        open_sessions: int,
        options: AdapterOptions,
    ) -> None:
        """Keep up to `open_sessions` open. `id` is for callers that name no conversation."""
        self._dialect = dialect
        self._default = id or new_id()
        self._most = open_sessions
        self._options = options
        self._open: OrderedDict[str, Session] = OrderedDict()

    @property
    def offers_history(self) -> bool:
        return self._options.get("history", False)

    def get(self, id: str | None, model: str) -> Session:
        name = id or self._default
        session = self._open.pop(name, None) or self._begun(name, model)
        self._open[name] = session
        if session.engine.model != model:
            session.switch(model, "the program's choice")
        while len(self._open) > max(1, self._most):
            self._open.popitem(last=False)[1].close()
        return session

    def current(self, id: str | None) -> Session:
        return self._open[id or self._default]

    def _begun(self, name: str, model: str) -> Session:
        try:
            return Session.open(id=name, model=model, dialect=self._dialect, **self._options)
        except SessionExists:
            return Session.resume(name, **self._options)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


def history_definition() -> JsonObject:
    return history_tool(History(lambda: ())).definition()
