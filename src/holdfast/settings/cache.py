"""How the provider's prompt cache is kept warm."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """How the provider's prompt cache is kept warm."""

    on: bool = setting(True, "mark what the provider should keep; off sends no marker at all")
    lifetime: str = setting(
        "auto",
        "how long the provider keeps a prefix: '5m', '1h', or 'auto' by who asks",
        form=r"auto|5m|1h",
    )
    long_sources: str = setting(
        "chat",
        "who gets the hour by 'auto': a person pauses for longer than five minutes, a program not",
    )
    diagnose: bool = setting(False, "ask the provider why its cache missed; a beta of one of them")
