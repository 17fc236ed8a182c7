"""The model: who answers, its window, its cache, and what it may cost."""

from dataclasses import dataclass

from holdfast.settings.setting import setting

NOT_STAGED = r"(?!scripted:|chaos:).*"
"""A model's name in a file; one whose answers are prepared is for the command line and the API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    name: str = setting(
        "claude-sonnet-5-5",
        "a model that codes well at a middling price; `scripted:` and `chaos:` only as --model",
        form=NOT_STAGED,
        personal=True,
    )
    fallback: str = setting(
        "",
        "answers when the first is overloaded; '' is nobody, `scripted:` and `chaos:` never",
        form=NOT_STAGED,
        personal=True,
    )
    base_url: str = setting(
        "",
        "where the provider answers, and where the key goes; '' is its own address",
        personal=True,
    )
    offline: bool = setting(
        False,
        "without a key, `holdfast chat` follows a fixed plan and asks nobody; set by its first start",
        personal=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSettings:
    """Where the lines lie in a model's window."""

    limit_tokens: int = setting(0, "the model's window; 0 asks the model table", low=0)
    allow_long: bool = setting(True, "use windows over 200K where the model has one")
    reserve_tokens: int = setting(
        20_000, "room for a summary to be written; 99.99 % of summaries are under 17,400", low=0
    )
    auto: bool = setting(True, "make room without being asked once the auto line is reached")
    auto_line: str = setting(
        "cost",
        "where room is made: 'cost' is where carrying more costs more than compacting and what that"
        " loses, '' the window's own line, or '150000' tokens, '80%'",
        form=r"|cost|[1-9][\d_,]*|\d{1,3}(\.\d+)?%",
    )
    auto_window_tokens: int = setting(
        0, "treat the window as this large when placing the auto line; 0 is the real one", low=0
    )
    auto_buffer_tokens: int = setting(
        13_000, "a whole answer can still arrive after the check", low=0
    )
    warning_buffer_tokens: int = setting(20_000, "warn this far before the auto line", low=0)
    error_buffer_tokens: int = setting(20_000, "show red this far before the auto line", low=0)
    blocking_buffer_tokens: int = setting(
        3_000, "what a request to make room by hand itself needs", low=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GaugeSettings:
    """How the size of the context is estimated between two reports of the provider."""

    calibrate: bool = setting(True, "learn from each answer's usage what a character weighs")
    believed_ratio: float = setting(
        3.0,
        "a size that is reported as more than this many times our estimate is a mistake: "
        "no tokenizer in use is further than 2.5 times from it",
        low=1.0,
    )
    believed_tokens: int = setting(
        20_000,
        "what a reported size may be off besides: providers add prompts of their own for tools "
        "and safety",
        low=0,
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSettings:
    """What may be spent before a run ends cleanly; 0 is no limit."""

    max_usd: float = setting(0.0, "dollars per session", low=0, personal=True)
    max_tokens: int = setting(0, "tokens per session, read and written", low=0, personal=True)
    max_usd_per_day: float = setting(0.0, "dollars per day over all sessions", low=0, personal=True)
    max_tokens_per_day: int = setting(0, "tokens per day over all sessions", low=0, personal=True)
    own_share: float = setting(
        0.05,
        "of a session's spending for calls the engine makes for itself, so that they stay small"
        " beside the work; past it summaries are digests, notes the engine's, and memories wait",
        low=0,
        high=1,
        personal=True,
    )
    own_floor_usd: float = setting(
        0.25,
        "for summaries in any case: what one costs at the line of a dear model",
        low=0,
        personal=True,
    )
