"""Telemetry of a session: its log's entries reported to OpenTelemetry, where that is switched on.

The log is followed after each answer and at the end, so nothing waits for it, and a session that
is resumed reports only what is new. What fails here ends telemetry for the session, with an entry,
and nothing else.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import Failed
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import cut
from longhold.core.settings import TelemetrySettings
from longhold.core.turn.engine import Engine
from longhold.errors import StoreError

if TYPE_CHECKING:
    from longhold.core.turn.telemetry.signals import Signal, Signals

WHAT = "telemetry"
MISSING = "OpenTelemetry is not installed; pip install 'longhold[telemetry]'"


class Telemetry:
    """Follows one session from where it is now; called after each answer, and at the end."""

    def __init__(self, engine: Engine) -> None:
        self._cursor = LogCursor(len(engine.view.history))
        self._report: Callable[[Signal], None] | None = None
        self._signals = _signals_of(engine) if engine.settings.telemetry.on else None

    def __call__(self, engine: Engine) -> None:
        if self._signals is None:
            return
        try:
            report = self._report = self._report or _reporter()
            for signal in self._new(engine, self._signals):
                report(signal)
        except ImportError:
            self._give_up(engine, MISSING)
        except Exception as error:  # noqa: BLE001 - an exporter's fault is none of the session's
            self._give_up(engine, f"{type(error).__name__}: {error}")

    def _new(self, engine: Engine, signals: "Signals") -> Iterator["Signal"]:
        for entry in self._cursor.advance(engine.view.history):
            yield from signals.take(entry, engine.view)
        yield from signals.finish()

    def _give_up(self, engine: Engine, why: str) -> None:
        self._signals = None
        with suppress(StoreError):
            engine.report(Failed(what=WHAT, error=f"nothing more is reported: {why}"))


def _signals_of(engine: Engine) -> "Signals":
    # Imported here because telemetry is off by default.
    from longhold.core.turn.telemetry.signals import Signals

    return Signals(
        session=engine.log.header.session,
        shown=_build_masker(engine.settings.telemetry),
        model=engine.model,
        is_compacted=any(item.id != item.order for item in engine.view.items),
    )


def _reporter() -> Callable[["Signal"], None]:
    from longhold.core.turn.telemetry.reporter import Reporter

    return Reporter().report


def _build_masker(settings: TelemetrySettings) -> Callable[[str], str]:
    if not settings.content:
        return lambda _text: ""
    return lambda text: cut(mask_secrets(text), settings.content_chars)
