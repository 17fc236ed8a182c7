"""The program's side of a session: dialect, limits, tools, and the list it follows.

The program's choices are log entries: `Configured` for its setup, `Framed` for the system prompt
and tools, `Followed` for the known part of its list.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from longhold.core.log import OpenLog
from longhold.core.log.entries import (
    AnyEntry,
    Configured,
    Followed,
    Framed,
    Ran,
    Replied,
    Rewound,
    Said,
    Section,
    Snipped,
)
from longhold.core.log.store import Store
from longhold.core.messages import Content, Json, JsonObject, Message, ToolResult, text_of
from longhold.core.models.capabilities import capabilities, is_known
from longhold.core.models.clients import DialectName
from longhold.core.models.protocol import Request
from longhold.core.request.frame import frame, replace_tools
from longhold.core.settings import Settings, home, load_settings
from longhold.core.tools.describe import HISTORY, MEMORY
from longhold.core.tools.protocol import Tool
from longhold.core.turn.background import Background
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork
from longhold.core.view import View, fold
from longhold.core.wire.messages import SYSTEM_ROLES
from longhold.errors import InvalidArgument, NotInHistory, RequestRejected, SessionNotFound
from longhold.session.arguments import as_list, check_sections, to_plain_object
from longhold.session.dialects import (
    Dialect,
    chosen_dialect,
    dialect_named,
    guessed_dialect,
    render_request,
)
from longhold.session.following import FollowedList, Following, copy_message
from longhold.session.own_tools import history_over
from longhold.session.tool_definitions import DeclaredTools, ToolLike, ToolRegistry, read_tools

if TYPE_CHECKING:
    from longhold.core.memory.session_memory import MemoryJobs

Differences = dict[str, dict[str, Json]]
PLUGINS = "plugins"  # settings that a log cannot set, because they select code to run


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """A program's choices when it opens or resumes a session. None keeps the previous choice."""

    dialect: str | None = None
    max_tokens: int | None = None
    window: int | None = None
    settings: Settings | None = None
    history: bool | None = None
    paths: bool | None = None
    memory: bool | None = None
    client: str | None = None
    simulated: bool | None = None


def configure(before: Configured | None, wishes: Wishes) -> Configured:
    entry = structs.replace(before or Configured(), n=0, at=0.0, why="")
    given: dict[str, Any] = {
        name: value
        for name in ("dialect", "max_tokens", "history", "memory", "paths", "client", "simulated")
        if (value := getattr(wishes, name)) is not None
    }
    said = entry.settings
    if wishes.settings is not None:
        said = _differences(wishes.settings)
    if wishes.window is not None:
        said = _with_window(said, wishes.window)
    return structs.replace(entry, **given, settings=said)


def _with_window(said: Differences, window_tokens: int) -> Differences:
    group = {k: v for k, v in said.get("window", {}).items() if k != "limit_tokens"}
    group |= {"limit_tokens": window_tokens} if window_tokens else {}
    rest = {name: values for name, values in said.items() if name != "window"}
    return rest | ({"window": group} if group else {})


def _differences(settings: Settings) -> Differences:
    default, given = asdict(Settings()), asdict(settings)
    changed = {
        group: {key: value for key, value in values.items() if value != default[group][key]}
        for group, values in given.items()
    }
    return {group: values for group, values in changed.items() if values and group != PLUGINS}


def settings_of(log: OpenLog) -> Settings:
    found = [entry for entry in log.entries if isinstance(entry, Configured)]
    base = load_settings(Path(log.header.directory or "."))
    return _overlay(base, found[-1].settings if found else {})


def _overlay(base: Settings, said: Mapping[str, Mapping[str, Json]]) -> Settings:
    """Apply a program's settings over those from files. Unknown names are ignored."""
    groups: dict[str, Any] = {}
    for group, values in said.items():
        current = getattr(base, group, None)
        if current is None or group == PLUGINS:
            continue
        known = {field.name for field in fields(current)}
        groups[group] = replace(current, **{k: v for k, v in values.items() if k in known})
    return replace(base, **groups)


SECTION = "long-term memory"


def memory_over(
    engine: Engine,
    ask: AskFork | None,
    background: Background,
    notify: Callable[[str], None],
    clock: Callable[[], float],
) -> "MemoryJobs":
    """Give a session the memories of its directory. Without `ask`, recall matches words."""
    # Imported here because sessions have no memory unless they ask for it.
    from longhold.core.memory.session_memory import MemoryJobs

    return MemoryJobs(
        engine=engine,
        root=Path(engine.log.header.directory or "."),
        home=home(),
        ask=ask,
        unasked=None,
        background=background,
        notify=notify,
        caller="chat",  # the program requested memory, so the defaults of a chat apply
        clock=clock,
    )


async def renew_index(engine: Engine, memory: "MemoryJobs") -> Framed:
    sections = _with_memory(_drop_ours(engine.frame.sections), (), memory)
    return structs.replace(engine.frame, sections=sections, rests_on=())


def _with_memory(
    sections: tuple[Section, ...], before: tuple[Section, ...], memory: "MemoryJobs | None"
) -> tuple[Section, ...]:
    """Add the memory section, reusing its earlier text so that the prompt stays stable."""
    if memory is None:
        return sections
    said = [section for section in before if section.name == SECTION]
    return (*sections, *(said or [Section(name=SECTION, text=memory.section())]))


class Program:
    def __init__(
        self,
        engine: Engine,
        registry: ToolRegistry | None = None,
        client: object = None,
        memory: "MemoryJobs | None" = None,
    ) -> None:
        self._engine = engine
        self._client = client
        self.memory = memory
        self._registry = registry or ToolRegistry({})
        engine.limits_chars.update(self._registry.limits())
        self._following: Following | None = None
        self._tools: tuple[Tool, ...] = ()
        self._given: object = None
        self._asked_about = ""
        """The model whose window was requested from the server or warned about."""

    @property
    def configuration(self) -> Configured:
        return self._engine.view.configured or Configured()

    def configure(self, wishes: Wishes, why: str = "") -> None:
        before = self._engine.view.configured
        entry = configure(before, wishes)
        entry = structs.replace(entry, tools=dict(self._registry.traits))
        if before is None or structs.replace(before, n=0, at=0.0, why="") != entry:
            self._engine.record(structs.replace(entry, why=why))
        self._engine.reconfigure(_overlay(self._engine.settings, entry.settings))
        self._engine.limits_chars.update(self._registry.limits())

    @property
    def own_tools(self) -> tuple[Tool, ...]:
        if not self._tools:
            memory = (self.memory.tool(),) if self.memory is not None else ()
            self._tools = (history_over(self._engine), *memory)
        return self._tools

    def dialect(self) -> Dialect:
        return dialect_named(self._chosen() or "anthropic")

    def _chosen(self) -> DialectName | None:
        able = capabilities(self._engine.model)
        return chosen_dialect(self.configuration.dialect, self._client, able)

    def render_request(self, request: Request) -> Request:
        able = capabilities(self._engine.model)
        return render_request(request, self.dialect().name, able, self._client)

    def declare(self, found: DeclaredTools, why: str) -> tuple[JsonObject, ...]:
        self._registry.traits.update(found.traits)
        self.configure(Wishes(), why)
        return self._list_tools(found.definitions)

    def _list_tools(self, theirs: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
        wanted = {HISTORY: self.configuration.history, MEMORY: self.configuration.memory}
        if not any(wanted.values()):
            return tuple(theirs)
        own = {tool.name: tool.definition() for tool in self.own_tools if wanted[tool.name]}
        return (*(tool for tool in theirs if tool.get("name") not in own), *own.values())

    def set_up(
        self, wishes: Wishes, system: Sequence[Section], tools: DeclaredTools, options: JsonObject
    ) -> Framed:
        self.configure(wishes)
        definitions = self.declare(tools, "opened")
        return frame(self._sections(system), definitions, options)

    def _sections(self, given: Sequence[Section]) -> tuple[Section, ...]:
        before = self._engine.view.frame
        return _with_memory(tuple(given), before.sections if before else (), self.memory)

    def reframe(
        self, system: Sequence[Section] | None, tools: tuple[JsonObject, ...] | None
    ) -> None:
        old = self._engine.frame
        sections = self._sections(_drop_ours(old.sections) if system is None else system)
        new = old.tools if tools is None else tools
        # Tools are sent sorted by name, so their order does not matter.
        if sections != old.sections or _sort_tools(new) != _sort_tools(old.tools):
            changed = structs.replace(old, sections=sections, rests_on=())
            self._engine.record(replace_tools(changed, new))

    def follow(
        self, messages: Sequence[object], system: object, tools: Iterable[ToolLike] | None
    ) -> None:
        if not messages:
            raise InvalidArgument("messages", "the list is empty; give at least one message")
        head = system_head(messages)
        if not self._chosen():
            guess = guessed_dialect([to_plain_object(one, "messages") for one in messages])
            self.configure(Wishes(dialect=guess), "by the shape of its messages")
        self._take_frame(messages[:head], system, tools)
        self._follower().take(messages[head:], self.dialect(), first=head)

    @property
    def followed(self) -> FollowedList:
        return self._follower().known

    def recognise(self, messages: Sequence[object]) -> int:
        head = system_head(messages)
        return self._follower().recognise(messages[head:], self.dialect(), first=head)

    def _follower(self) -> Following:
        if self._following is None:
            self._following = Following(self._engine)
        return self._following

    def _take_frame(
        self, head: Sequence[object], system: object, tools: Iterable[ToolLike] | None
    ) -> None:
        given_tools = None if tools is None else as_list(tools, "tools", "tool definitions")
        given = (system, list(head), given_tools)
        if given == self._given:
            return
        sections = list(check_sections(system)) if system is not None else []
        for i, message in enumerate(head):
            heard = self.dialect().hear(
                to_plain_object(message, f"messages[{i}]"), f"messages[{i}]"
            )
            sections.append(Section(name=f"message {i + 1}", text=text_of(heard.content)))
        definitions = None
        if given_tools is not None:
            definitions = self.declare(read_tools(given_tools), "other tools")
        self.reframe(sections if system is not None or head else None, definitions)
        self._given = copy_message(given)

    def take_up(
        self, wishes: Wishes, system: tuple[Section, ...] | None, tools: DeclaredTools | None
    ) -> list[str]:
        """Repair the state that a dead process left and apply new choices. Return lines for the
        user. If a list is followed, the results of open calls are in the list.
        """
        engine, had_memory = self._engine, self.configuration.memory
        follows = any(isinstance(entry, Followed) for entry in engine.view.history)
        lines = engine.resume(repairs=not follows)
        is_set_up = replace(wishes, settings=None) != Wishes()
        if engine.view.configured is not None or is_set_up or tools is not None:
            self.configure(wishes, "resumed")
        definitions = self.declare(tools, "resumed") if tools is not None else None
        if definitions is None and had_memory != self.configuration.memory:
            theirs = (tool for tool in engine.frame.tools if tool.get("name") != MEMORY)
            definitions = self._list_tools(theirs)
        self.reframe(system, definitions)
        if self.memory is not None:
            sections = _with_memory(_drop_ours(engine.frame.sections), (), self.memory)
            if sections != engine.frame.sections:
                engine.record(structs.replace(engine.frame, sections=sections, rests_on=()))
        return lines

    def take_user(self, blocks: Content) -> None:
        results = [block for block in blocks if isinstance(block, ToolResult)]
        for block in results:
            self.check_call(block.tool_use_id, "content")
        for block in results:
            self._engine.take_result(block.tool_use_id, block.content, is_error=block.is_error)
        rest = tuple(block for block in blocks if not isinstance(block, ToolResult))
        if rest:
            self._engine.say(rest)

    def check_call(self, id: object, argument: str) -> str:
        view = self._engine.view
        own = view.find_call(id) if isinstance(id, str) else None
        if own is None:
            last = view.open_round()
            waiting = ", ".join(use.id for use in last.missing()) if last else "none"
            raise InvalidArgument(
                argument, f"the model made no call {id!r}; calls without a result: {waiting}"
            )
        return own

    def check_answered(self) -> None:
        """Raise while calls have no result, because the provider would reject the request."""
        last = self._engine.view.open_round()
        if last is not None:
            ids = ", ".join(use.id for use in last.missing())
            raise RequestRejected(
                f"the calls {ids} have no result; give each one with tool_result(), "
                "or in the list of messages, before the next request; after a cancelled turn, "
                "abandon() answers them"
            )

    async def know_window(self) -> None:
        """Find the window of a model, once. Warn if it is unknown."""
        engine, model = self._engine, self._engine.model
        chosen, known = engine.settings.window.limit_tokens, engine.windows
        if model == self._asked_about or (chosen and chosen != known.get(self._asked_about)):
            return
        self._asked_about = model
        recorded = self.configuration.settings.get("window", {}).get("limit_tokens", 0)
        if not recorded and is_known(model) and not hasattr(self._client, "capabilities"):
            return
        # Imported here because the table knows most models.
        from longhold.core.models.limits import describe_guess, find_window

        found = await find_window(self._client, model)
        known[model] = found.tokens
        if found.tokens != recorded:
            window = replace(engine.settings.window, limit_tokens=found.tokens)
            engine.reconfigure(replace(engine.settings, window=window))
            self.configure(Wishes(window=found.tokens), found.why)
        if not found.why:
            remedy = "give window=, or a client whose server reports it"
            warnings.warn(describe_guess(model, remedy), stacklevel=4)


def _sort_tools(tools: Iterable[JsonObject]) -> list[JsonObject]:
    return sorted(tools, key=lambda tool: str(tool.get("name")))


def system_head(messages: Sequence[object]) -> int:
    for head, one in enumerate(messages):
        role = one.get("role") if isinstance(one, Mapping) else getattr(one, "role", None)
        if role not in SYSTEM_ROLES:
            return head
    return len(messages)


def _drop_ours(sections: Sequence[Section]) -> tuple[Section, ...]:
    return tuple(section for section in sections if section.name != SECTION)


def retraction(view: View, n: object) -> Rewound | Snipped:
    """Plan the removal of the n-th message from the end. A rewind removes the last message."""
    items = view.items
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= len(items):
        raise NotInHistory(f"there are {len(items)} messages to retract, not {n!r}")
    item, why = items[-n], "retracted by the program"
    if n == 1 and item.id == item.order:
        return Rewound(after=item.order - 1, reason="retracted", why=why)
    return Snipped(targets=(item.id,), why=why)


def rewind_point(history: Sequence[AnyEntry], n: int = 0) -> int:
    """Return the last entry to keep. If n is a user message (by default the newest), it is the
    entry before n. Otherwise it is n itself, for example an answer from which to branch.
    """
    asked = [entry.n for entry in history if isinstance(entry, Said) and not entry.hidden]
    if not n:
        if not asked:
            raise NotInHistory("there is no message to go back to")
        return asked[-1] - 1
    if not any(entry.n == n for entry in history):
        raise NotInHistory(f"there is no entry #{n}; `longhold explain` lists them")
    return n - 1 if n in asked else n


def newest_in(store: Store, directory: Path) -> str:
    here = store.sessions(directory)
    if not here:
        raise SessionNotFound(f"{directory} has no session; give the id of one")
    return here[0].id


def open_log(store: Store, id: str, directory: Path) -> OpenLog:
    """Open the session with exactly this id. A session with a longer id may be another user's."""
    return store.open(newest_in(store, directory) if id == "newest" else id)


def transcript_of(view: View) -> list[Message]:
    """Fold messages, answers and results, without entries that only changed the view."""
    dead = view.in_force.dead
    told = (
        entry
        for entry in view.history
        if entry.n not in dead
        and isinstance(entry, Said | Replied | Ran)
        and not (isinstance(entry, Said) and entry.hidden)
    )
    return fold(told).messages()
