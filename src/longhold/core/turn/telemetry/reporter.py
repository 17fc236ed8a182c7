"""Send signals to the OpenTelemetry providers of this process.

Without providers the API does nothing. Times are those of the entries, so a span may be reported
after it ended.
"""

from functools import cached_property

from opentelemetry import metrics, trace
from opentelemetry._logs import SeverityNumber, get_logger
from opentelemetry.metrics import Counter, Histogram

from longhold.core.turn.telemetry import (
    CHANGES,
    COST,
    DURATION,
    FAILURES,
    FREED,
    LOST,
    USAGE,
    CallSpan,
    Count,
    Event,
    Signal,
)

SCOPE = "longhold"
TOKEN_BUCKETS = tuple(4.0**power for power in range(14))
"""Defined by the conventions: 1 to 67,108,864."""
SECOND_BUCKETS = tuple(0.01 * 2.0**power for power in range(14))
"""Defined by the conventions: 0.01 to 81.92."""
COUNTERS = {
    COST: ("USD", "What calls cost at published prices"),
    CHANGES: ("{change}", "Compactions, clearings, memory changes and cache breaks"),
    FREED: ("{token}", "Tokens that left the context"),
    LOST: ("{token}", "Tokens that could have been read from the provider's cache and were not"),
    FAILURES: ("{failure}", "What failed and was gone on after"),
}
KINDS = {"client": trace.SpanKind.CLIENT, "internal": trace.SpanKind.INTERNAL}


class Reporter:
    def __init__(self) -> None:
        self._tracer = trace.get_tracer(SCOPE)
        self._logger = get_logger(SCOPE)
        self._meter = metrics.get_meter(SCOPE)

    def report(self, signal: Signal) -> None:
        match signal:
            case CallSpan():
                self._span(signal)
            case Event():
                level = SeverityNumber.WARN if signal.is_failure else SeverityNumber.INFO
                self._logger.emit(
                    timestamp=_nanoseconds(signal.at),
                    severity_number=level,
                    event_name=signal.name,
                    attributes=dict(signal.attributes),
                )
            case Count():
                self._count(signal)

    def _span(self, span: CallSpan) -> None:
        begun = self._tracer.start_span(
            span.name,
            kind=KINDS[span.kind],
            attributes=dict(span.attributes),
            start_time=_nanoseconds(span.start),
        )
        if span.error:
            begun.set_attribute("error.type", span.error)
            begun.set_status(trace.StatusCode.ERROR)
        begun.end(_nanoseconds(span.end))

    def _count(self, count: Count) -> None:
        found = self._histograms.get(count.name)
        if found is not None:
            found.record(count.value, dict(count.attributes))
        else:
            self._counters[count.name].add(count.value, dict(count.attributes))

    @cached_property
    def _histograms(self) -> dict[str, Histogram]:
        make = self._meter.create_histogram
        return {
            USAGE: make(
                USAGE,
                unit="{token}",
                description="Tokens of the calls, by type",
                explicit_bucket_boundaries_advisory=TOKEN_BUCKETS,
            ),
            DURATION: make(
                DURATION,
                unit="s",
                description="How long calls took",
                explicit_bucket_boundaries_advisory=SECOND_BUCKETS,
            ),
        }

    @cached_property
    def _counters(self) -> dict[str, Counter]:
        make = self._meter.create_counter
        return {
            name: make(name, unit=unit, description=said) for name, (unit, said) in COUNTERS.items()
        }


def _nanoseconds(at: float) -> int:
    return int(at * 1_000_000_000)
