"""Telemetry: whether a session's calls, tools and changes are reported to OpenTelemetry."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    on: bool = setting(
        False,
        "report calls, tools, compactions, clearings, cache breaks, memory changes and failures to"
        " the OpenTelemetry providers of this process",
        personal=True,
    )
    content: bool = setting(
        False,
        "with what was said, what tools were given and gave, and the texts of errors, secrets masked",
        personal=True,
    )
    content_chars: int = setting(
        4_000, "of one text: backends cut or refuse longer attributes", low=100
    )
