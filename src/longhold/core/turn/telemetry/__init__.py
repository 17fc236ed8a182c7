"""Report a session's log entries to OpenTelemetry, if that is switched on.

The log is followed after each answer, so nothing waits for telemetry. An error ends telemetry for
the session, with an entry. A call is a span from `Asked` to the end of its answer, a tool run from
`Began` to `Ran`. Names follow the GenAI conventions where they exist.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias

import msgspec

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import (
    AnyEntry,
    Asked,
    Began,
    CacheBroke,
    Cleared,
    Collapsed,
    Compacted,
    Dreamt,
    Failed,
    Forked,
    Noted,
    Ran,
    Recalled,
    Redone,
    Remembered,
    Replied,
    Rewound,
    Snipped,
    Spilled,
    Switched,
    Undone,
)
from longhold.core.messages import ToolUse, Usage, text_of
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import cut
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import usage_cost
from longhold.core.settings import TelemetrySettings
from longhold.core.turn.engine import Engine
from longhold.core.view import View
from longhold.core.view.tokens import estimate_tokens
from longhold.errors import StoreError

Value: TypeAlias = str | int | float | bool | tuple[str, ...]
Attributes: TypeAlias = Mapping[str, Value]
Shown: TypeAlias = Callable[[str], str]
"""Returns the reportable part of a text; '' if it must not be reported."""

USAGE = "gen_ai.client.token.usage"
DURATION = "gen_ai.client.operation.duration"
COST = "longhold.cost"
CHANGES = "longhold.changes"
FREED = "longhold.freed_tokens"
LOST = "longhold.cache_lost_tokens"
FAILURES = "longhold.failures"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSpan:
    name: str
    kind: Literal["client", "internal"]
    start: float
    end: float
    attributes: Attributes
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    name: str
    at: float
    attributes: Attributes
    is_failure: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    name: str
    value: float
    attributes: Attributes


Signal: TypeAlias = CallSpan | Event | Count


@dataclass(slots=True, kw_only=True)
class Signals:
    session: str
    shown: Shown = lambda _text: ""
    model: str = ""
    is_compacted: bool = False
    _asked: Asked | None = None
    _answer: list[Replied] = field(default_factory=list)
    _uses: dict[str, ToolUse] = field(default_factory=dict)
    _began: dict[str, Began] = field(default_factory=dict)

    def take(self, entry: AnyEntry, view: View) -> Iterator[Signal]:
        match entry:
            case Asked():
                yield from self.finish()
                self._asked = entry
            case Replied():
                self._answer.append(entry)
                uses = (block for block in entry.content if isinstance(block, ToolUse))
                self._uses |= {use.id: use for use in uses}
            case Began():
                self._began[entry.tool_use_id] = entry
            case Ran():
                yield from self._tool(entry)
            case Forked():
                yield from self._fork(entry)
            case _:
                if event := self._event(entry, view):
                    yield event
                    yield from _counts(event)

    def finish(self) -> Iterator[Signal]:
        """Yield the signals of the last call, answered or not."""
        asked, pieces = self._asked, self._answer
        self._asked, self._answer = None, []
        if asked is None:
            return
        last = pieces[-1] if pieces else None
        model = next((each.model for each in reversed(pieces) if each.model), self.model)
        self.model = model or self.model
        usage = next((each.usage for each in reversed(pieces) if each.usage), Usage())
        said = "\n".join(filter(None, (text_of(each.content) for each in pieces)))
        more = {
            "gen_ai.response.id": last.response_id if last else "",
            "gen_ai.response.finish_reasons": (last.stop_reason,) if last else (),
            "gen_ai.output.messages": self.shown(said),
        }
        end = last.at if last else asked.at
        error = "" if last else "no answer"
        yield from self._call(asked.source, model, usage, (asked.at, end), more, error)

    def _fork(self, entry: Forked) -> Iterator[Signal]:
        more = {
            "gen_ai.response.id": entry.response_id,
            "gen_ai.response.finish_reasons": (entry.stop_reason,) if entry.stop_reason else (),
        }
        times = (entry.at - entry.seconds, entry.at)
        error = entry.stop_reason if entry.stop_reason in ("aborted", "broken") else ""
        yield from self._call(entry.source, entry.model, entry.usage, times, more, error)

    def _call(
        self,
        source: str,
        model: str,
        usage: Usage,
        times: tuple[float, float],
        more: Attributes,
        error: str,
    ) -> Iterator[Signal]:
        start, end = times[0], max(times)  # a clock may have been set back
        name = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": _provider_of(model)}
        name |= {"gen_ai.request.model": model, "longhold.source": source}
        yield CallSpan(
            name=f"chat {model}".strip(),
            kind="client",
            start=start,
            end=end,
            attributes=self._told(
                {**name, "gen_ai.response.model": model, **_usage_of(usage), **more}
            ),
            error=error,
        )
        kinds = {"input": usage.prompt_tokens, "output": usage.output_tokens}
        for kind, tokens in kinds.items() if not error else ():
            yield Count(name=USAGE, value=tokens, attributes=name | {"gen_ai.token.type": kind})
        yield Count(
            name=DURATION,
            value=end - start,
            attributes=name | ({"error.type": error} if error else {}),
        )
        paid = usage_cost(model, usage, datetime.fromtimestamp(end, UTC).date()) if model else None
        if paid is not None and paid.total:
            yield Count(name=COST, value=paid.total, attributes=name)

    def _tool(self, ran: Ran) -> Iterator[Signal]:
        use, began = self._uses.pop(ran.tool_use_id, None), self._began.pop(ran.tool_use_id, None)
        name = use.name if use else began.tool if began else ""
        start = began.at if began else ran.at - ran.seconds
        given = msgspec.json.encode(use.input).decode() if use else ""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": ran.tool_use_id,
            "gen_ai.tool.call.arguments": self.shown(given),
            "gen_ai.tool.call.result": self.shown(text_of(ran.content)),
        }
        error = "refused" if ran.refused is not None else "tool_error" if ran.is_error else ""
        yield CallSpan(
            name=f"execute_tool {name}".strip(),
            kind="internal",
            start=start,
            end=max(start, ran.at),
            attributes=self._told(attributes),
            error=error,
        )

    def _event(self, entry: AnyEntry, view: View) -> Event | None:
        name, fields = _EVENTS.get(type(entry), ("", ""))
        if not name or (isinstance(entry, Remembered) and not entry.names):
            return None
        return Event(
            name=f"longhold.{name}",
            at=entry.at,
            attributes=self._told(_read_fields(entry, fields) | self._work_out(entry, view)),
            is_failure=isinstance(entry, Failed),
        )

    def _work_out(self, entry: AnyEntry, view: View) -> dict[str, Value]:
        match entry:
            case Compacted():
                self.is_compacted = True
            case Cleared():
                return _measure_cleared(entry, view)
            case Spilled():
                by, shown_bytes = "repetition" if entry.same_as else "size", entry.text.encode()
                return {"longhold.by": by, "longhold.after_bytes": len(shown_bytes)}
            case Collapsed():
                return {"longhold.after_tokens": estimate_tokens(entry.text)}
            case Switched():
                before, self.model = self.model, entry.model
                return {"longhold.before": before}
            case Remembered():
                return {"longhold.names": self.shown(", ".join(entry.names))}
            case Failed():
                return {"error.message": self.shown(entry.error)}
        return {}

    def _told(self, attributes: Mapping[str, Value]) -> Attributes:
        told: dict[str, Value] = {
            "gen_ai.conversation.id": self.session,
            "gen_ai.conversation.compacted": self.is_compacted,
            **attributes,
        }
        return {key: value for key, value in told.items() if value not in ("", ())}


_EVENTS: dict[type, tuple[str, str]] = {
    Compacted: ("compaction", "by trigger seconds survived before_tokens after_tokens"),
    Cleared: ("clear", "by=how results=ids"),
    Spilled: ("spill", "before_bytes=bytes"),
    Snipped: ("snip", "messages=targets"),
    Collapsed: ("collapse", ""),
    Undone: ("undone", "entry=target"),
    Redone: ("redone", "entry=target"),
    Rewound: ("rewind", ""),
    Switched: ("switch", "after=model"),
    Remembered: ("memory", "by memories=names commit waits_for_consent=inbox"),
    Dreamt: ("dream", "by commit merged marked removed"),
    Recalled: ("recall", "memories=names bytes"),
    Noted: ("notes", "by after_tokens=tokens"),
    CacheBroke: ("cache_break", "by=cause expected lost_tokens usd source"),
    Failed: ("failure", "what"),
}
"""By entry: the event's name, and its attributes as fields. A tuple gives its length."""


def _read_fields(entry: AnyEntry, fields: str) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, _, attribute in (pair.partition("=") for pair in fields.split()):
        value = getattr(entry, attribute or name)
        found[f"longhold.{name}"] = len(value) if isinstance(value, tuple) else value
    return found


def _usage_of(usage: Usage) -> dict[str, Value]:
    """Return usage attributes. The input includes cache reads and writes."""
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }


def _provider_of(model: str) -> str:
    family = capabilities(model).family
    return "_OTHER" if family == "unknown" else family


def _sizes(before: int, after: int) -> dict[str, Value]:
    return {"longhold.before_tokens": before, "longhold.after_tokens": after}


def _measure_cleared(entry: Cleared, view: View) -> dict[str, Value]:
    rounds = ((id, view.round_of(id)) for id in entry.ids)
    results = [owner.result_of(id) for id, owner in rounds if owner is not None]
    before = sum(estimate_tokens(text_of(each.content)) for each in results if each is not None)
    after = sum(map(estimate_tokens, entry.texts))
    return _sizes(max(before, after + entry.saved_tokens), after)


def _counts(event: Event) -> Iterator[Count]:
    given = event.attributes
    by = {"longhold.by": given["longhold.by"]} if "longhold.by" in given else {}
    if event.is_failure:
        yield Count(name=FAILURES, value=1, attributes={"longhold.what": given["longhold.what"]})
        return
    kind: Attributes = {"longhold.change": event.name.removeprefix("longhold."), **by}
    yield Count(name=CHANGES, value=1, attributes=kind)
    before, after = given.get("longhold.before_tokens"), given.get("longhold.after_tokens")
    if isinstance(before, int) and isinstance(after, int) and before > after:
        yield Count(name=FREED, value=before - after, attributes=kind)
    lost = given.get("longhold.lost_tokens")
    if isinstance(lost, int):
        yield Count(name=LOST, value=lost, attributes=kind)


WHAT = "telemetry"
MISSING = "OpenTelemetry is not installed; pip install 'longhold[telemetry]'"
CONTENT_CHARS = 4_000
"""Backends cut or refuse longer attributes."""


class Telemetry:
    """Follows one session from its current end; called after each answer and at the end."""

    def __init__(self, engine: Engine) -> None:
        self._cursor = LogCursor(len(engine.view.history))
        self._report: Callable[[Signal], None] | None = None
        self._is_off = not engine.settings.telemetry.on
        self._signals = Signals(
            session=engine.log.header.session,
            shown=_build_masker(engine.settings.telemetry),
            model=engine.model,
            is_compacted=any(item.id != item.order for item in engine.view.items),
        )

    def __call__(self, engine: Engine) -> None:
        if self._is_off:
            return
        try:
            report = self._report = self._report or _reporter()
            for signal in self._new(engine):
                report(signal)
        except ImportError:
            self._give_up(engine, MISSING)
        except Exception as error:  # noqa: BLE001 - an exporter's bug must not end the session
            self._give_up(engine, f"{type(error).__name__}: {error}")

    def _new(self, engine: Engine) -> Iterator[Signal]:
        for entry in self._cursor.advance(engine.view.history):
            yield from self._signals.take(entry, engine.view)
        yield from self._signals.finish()

    def _give_up(self, engine: Engine, why: str) -> None:
        self._is_off = True
        with suppress(StoreError):
            engine.report(Failed(what=WHAT, error=f"nothing more is reported: {why}"))


def _reporter() -> Callable[[Signal], None]:
    from longhold.core.turn.telemetry.reporter import Reporter

    return Reporter().report


def _build_masker(settings: TelemetrySettings) -> Callable[[str], str]:
    if not settings.content:
        return lambda _text: ""
    return lambda text: cut(mask_secrets(text), CONTENT_CHARS)
