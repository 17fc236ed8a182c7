"""Report a session's log entries to OpenTelemetry after each answer, if that is switched on.

Spans are calls (from `Asked` to the end of the answer) and tool runs. An error is logged and ends
telemetry for the session. Names follow the GenAI conventions where they exist.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from longhold.core.log import entries as log
from longhold.core.log.cursor import LogCursor
from longhold.core.messages import ToolUse, Usage, text_of
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import cut
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import usage_cost
from longhold.core.settings.installation import missing_extra
from longhold.core.turn.engine import Engine
from longhold.errors import StoreError

Value: TypeAlias = str | int | float | bool | tuple[str, ...]
Attributes: TypeAlias = Mapping[str, Value]
Shown: TypeAlias = Callable[[str], str]  # returns the reportable part of a text, or ''

CONTENT_CHARS = 4_000  # backends cut or refuse longer attributes
EVENTS: dict[type, tuple[str, str]] = {
    log.Compacted: ("compaction", "by trigger seconds survived before_tokens after_tokens"),
    log.Cleared: ("clear", "by=how results=ids saved_tokens"),
    log.Spilled: ("spill", "before_bytes=bytes same_as"),
    log.Snipped: ("snip", "messages=targets"),
    log.Collapsed: ("collapse", ""),
    log.Undone: ("undone", "entry=target"),
    log.Redone: ("redone", "entry=target"),
    log.Rewound: ("rewind", ""),
    log.Switched: ("switch", "after=model"),
    log.Remembered: ("memory", "by memories=names commit waits_for_consent=inbox"),
    log.Dreamt: ("dream", "by commit merged marked removed"),
    log.Recalled: ("recall", "memories=names bytes"),
    log.Noted: ("notes", "by after_tokens=tokens"),
    log.CacheBroke: ("cache_break", "by=cause expected lost_tokens usd source"),
    log.Failed: ("failure", "what"),
    log.Withheld: ("refusal", "what"),
}
"""For each entry, the event's name, and its attributes with their fields. Tuples are counted."""


class CallSpan(NamedTuple):
    name: str
    kind: Literal["client", "internal"]
    start: float
    end: float
    attributes: Attributes
    error: str = ""


class Event(NamedTuple):
    name: str
    at: float
    attributes: Attributes
    is_failure: bool = False


class Count(NamedTuple):
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
    _previous: int = 0  # the last compaction's entry, and the calls since then
    _calls: int = 0
    _asked: log.Asked | None = None
    _answer: list[log.Replied] = field(default_factory=list)
    _uses: dict[str, ToolUse] = field(default_factory=dict)
    _began: dict[str, log.Began] = field(default_factory=dict)

    def take(self, entry: log.AnyEntry) -> Iterator[Signal]:
        match entry:
            case log.Asked():
                yield from self.finish()
                self._asked = entry
                self._calls += 1
            case log.Replied():
                self._answer.append(entry)
                uses = (block for block in entry.content if isinstance(block, ToolUse))
                self._uses |= {use.id: use for use in uses}
            case log.Began():
                self._began[entry.tool_use_id] = entry
            case log.Ran():
                yield self._tool(entry)
            case log.Forked():
                yield from self._fork(entry)
            case _ if type(entry) in EVENTS:
                yield from self._event(entry)

    def finish(self) -> Iterator[Signal]:
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
            "gen_ai.output.messages": self._message(said, last.stop_reason if last else ""),
        }
        end = last.at if last else asked.at
        error = "" if last else "no answer"
        yield from self._call(asked.source, model, usage, (asked.at, end), more, error)

    def _message(self, said: str, finish_reason: str) -> str:
        """Return the answer in the conventions' message format, or '' if it is private."""
        shown = self.shown(said)
        parts = [{"type": "text", "content": shown}]
        message = {"role": "assistant", "parts": parts, "finish_reason": finish_reason}
        return msgspec.json.encode([message]).decode() if shown else ""

    def _fork(self, entry: log.Forked) -> Iterator[Signal]:
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
        start, end = times[0], max(times)  # the clock may have been set back
        family = capabilities(model).family
        name = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "_OTHER" if family == "unknown" else family,
            "gen_ai.request.model": model,
            "longhold.source": source,
        }
        tokens = {
            "gen_ai.usage.input_tokens": usage.prompt_tokens,  # includes cache reads and writes
            "gen_ai.usage.output_tokens": usage.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
            "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        }
        yield CallSpan(
            name=f"chat {model}".strip(),
            kind="client",
            start=start,
            end=end,
            attributes=self._complete({**name, "gen_ai.response.model": model, **tokens, **more}),
            error=error,
        )
        kinds = {"input": usage.prompt_tokens, "output": usage.output_tokens}
        for kind, value in kinds.items() if not error else ():
            labels = name | {"gen_ai.token.type": kind}
            yield Count(name="gen_ai.client.token.usage", value=value, attributes=labels)
        labels = name | ({"error.type": error} if error else {})
        yield Count(name="gen_ai.client.operation.duration", value=end - start, attributes=labels)
        paid = usage_cost(model, usage, datetime.fromtimestamp(end, UTC).date()) if model else None
        if paid is not None and paid.total:
            yield Count(name="longhold.cost", value=paid.total, attributes=name)

    def _tool(self, ran: log.Ran) -> CallSpan:
        use, began = self._uses.pop(ran.tool_use_id, None), self._began.pop(ran.tool_use_id, None)
        name = use.name if use else began.tool if began else ""
        start = began.at if began else ran.at - ran.seconds
        given = msgspec.json.encode(use.input).decode() if use else ""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": ran.tool_use_id,
            "gen_ai.tool.call.arguments": self.shown(given),
            "gen_ai.tool.call.result": self.shown(text_of(ran.content)),
        }
        return CallSpan(
            name=f"execute_tool {name}".strip(),
            kind="internal",
            start=start,
            end=max(start, ran.at),
            attributes=self._complete(attributes),
            error="refused" if ran.refused is not None else "tool_error" if ran.is_error else "",
        )

    def _event(self, entry: log.AnyEntry) -> Iterator[Signal]:
        if isinstance(entry, log.Remembered) and not entry.names:
            return
        name, fields = EVENTS[type(entry)]
        read: dict[str, Value] = {}
        for label, _, attribute in (pair.partition("=") for pair in fields.split()):
            value = getattr(entry, attribute or label)
            read[f"longhold.{label}"] = len(value) if isinstance(value, tuple) else value
        match entry:
            case log.Compacted():
                read |= {"longhold.previous": self._previous, "longhold.calls_since": self._calls}
                self.is_compacted, self._previous, self._calls = True, entry.n, 0
            case log.Switched():
                read["longhold.before"], self.model = self.model, entry.model
            case log.Remembered():
                read["longhold.names"] = self.shown(", ".join(entry.names))
            case log.Failed():
                read["error.message"] = self.shown(entry.error)
        attributes, is_failure = self._complete(read), isinstance(entry, log.Failed)
        name = f"longhold.{name}"
        yield Event(name=name, at=entry.at, attributes=attributes, is_failure=is_failure)
        yield from _counts(entry, attributes)

    def _complete(self, attributes: Attributes) -> Attributes:
        """Add the conversation. The conventions require `true` as the value for a compaction."""
        told = {"gen_ai.conversation.id": self.session, **attributes}
        if self.is_compacted:
            told["gen_ai.conversation.compacted"] = True
        return {key: value for key, value in told.items() if value not in ("", ())}


def _counts(entry: log.AnyEntry, given: Attributes) -> Iterator[Count]:
    change = EVENTS[type(entry)][0]
    if isinstance(entry, log.Failed | log.Withheld):
        what = {"longhold.what": entry.what}
        yield Count(name=f"longhold.{change}s", value=1, attributes=what)
        return
    kind: dict[str, Value] = {"longhold.change": change}
    if "longhold.by" in given:
        kind["longhold.by"] = given["longhold.by"]
    yield Count(name="longhold.changes", value=1, attributes=kind)
    freed = 0
    if isinstance(entry, log.Compacted):
        freed = entry.before_tokens - entry.after_tokens
    elif isinstance(entry, log.Cleared):
        freed = entry.saved_tokens
    if freed > 0:
        yield Count(name="longhold.freed_tokens", value=freed, attributes=kind)
    if isinstance(entry, log.CacheBroke):
        lost = entry.lost_tokens
        yield Count(name="longhold.cache_lost_tokens", value=lost, attributes=kind)


class Telemetry:
    """Follows a session from its current end. It is called after each answer and at the end."""

    def __init__(self, engine: Engine) -> None:
        settings = engine.settings.telemetry
        self._cursor = LogCursor(len(engine.view.history))
        self._report: Callable[[Signal], None] | None = None
        self._is_off = not settings.on
        self._signals = Signals(
            session=engine.log.header.session,
            shown=lambda text: cut(mask_secrets(text), CONTENT_CHARS) if settings.content else "",
            model=engine.model,
            is_compacted=any(item.id != item.order for item in engine.view.items),
        )

    def __call__(self, engine: Engine) -> None:
        if self._is_off:
            return
        try:
            report = self._report = self._report or connect()
            for entry in self._cursor.advance(engine.view.history):
                for signal in self._signals.take(entry):
                    report(signal)
            for signal in self._signals.finish():
                report(signal)
        except ModuleNotFoundError as error:
            problem = missing_extra(error, "telemetry", "OpenTelemetry")
            self._give_up(engine, str(problem or error))
        except Exception as error:  # noqa: BLE001 - an exporter's bug must not end the session
            self._give_up(engine, f"{type(error).__name__}: {error}")

    def _give_up(self, engine: Engine, why: str) -> None:
        self._is_off = True
        with suppress(StoreError):
            engine.report(log.Failed(what="telemetry", error=f"telemetry ended: {why}"))


SCOPE = "longhold"
HISTOGRAMS = {
    "gen_ai.client.token.usage": ("{token}", tuple(4.0**power for power in range(14))),
    "gen_ai.client.operation.duration": ("s", tuple(0.01 * 2.0**power for power in range(14))),
}
"""The unit and buckets of each histogram, as the conventions define them."""
COUNTERS = {
    "longhold.cost": "USD",
    "longhold.changes": "{change}",
    "longhold.freed_tokens": "{token}",
    "longhold.cache_lost_tokens": "{token}",
    "longhold.failures": "{failure}",
    "longhold.refusals": "{refusal}",
}
"""The unit of each counter."""


def connect() -> Callable[[Signal], None]:
    """Return a function that sends signals to this process's OpenTelemetry providers, if any."""
    # These are imported here because telemetry is off by default.
    from importlib.metadata import version

    from opentelemetry import _logs, metrics, trace

    scope: tuple[str, str] = SCOPE, version(SCOPE)
    tracer, logger = trace.get_tracer(*scope), _logs.get_logger(*scope)
    meter = metrics.get_meter(*scope)
    histograms = {
        name: meter.create_histogram(name, unit, explicit_bucket_boundaries_advisory=buckets)
        for name, (unit, buckets) in HISTOGRAMS.items()
    }
    counters = {name: meter.create_counter(name, unit) for name, unit in COUNTERS.items()}

    def report(signal: Signal) -> None:
        attributes = dict(signal.attributes)
        match signal:
            case CallSpan(name=name, kind=kind, error=error):
                sort = trace.SpanKind.CLIENT if kind == "client" else trace.SpanKind.INTERNAL
                start = _nanoseconds(signal.start)
                span = tracer.start_span(name, kind=sort, attributes=attributes, start_time=start)
                if error:
                    span.set_attribute("error.type", error)
                    span.set_status(trace.StatusCode.ERROR)
                span.end(_nanoseconds(signal.end))
            case Event(name=name, at=at, is_failure=is_failure):
                levels = _logs.SeverityNumber
                logger.emit(
                    timestamp=_nanoseconds(at),
                    severity_number=levels.WARN if is_failure else levels.INFO,
                    event_name=name,
                    attributes=attributes,
                )
            case Count(name=name, value=value) if name in histograms:
                histograms[name].record(value, attributes)
            case Count(name=name, value=value):
                counters[name].add(value, attributes)

    return report


def _nanoseconds(at: float) -> int:
    return int(at * 1_000_000_000)
