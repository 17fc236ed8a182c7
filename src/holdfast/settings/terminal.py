"""The terminal agent: how it looks, and what it offers by itself."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSettings:
    plain: bool = setting(
        False, "talk line by line, as screen readers and simple terminals need it", personal=True
    )
    suggest: bool = setting(
        True,
        "after an answer, ask the model what you might say next and show it in grey: one short call"
        " on the cached prompt, only within the engine's own share (budget.own_share)",
        personal=True,
    )
    away_minutes: float = setting(
        30.0,
        "who comes back to the keyboard after this long is reminded of where they were; 0 never",
        low=0,
        personal=True,
    )
    mention_tokens: int = setting(
        30_000,
        "of files named with @ in one message: one whole Read and a few short files; what is longer"
        " is left to the model to read; less in small windows",
        low=0,
    )
