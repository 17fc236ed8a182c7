"""The model: who answers, its window, its cache, and what it may cost."""

from dataclasses import dataclass

from longhold.core.settings.setting import setting

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
        "without a key, `longhold chat` follows a fixed plan and asks nobody; set by its first start",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSettings:
    needed_read: float = setting(
        0.25,
        "how often a file that was read is needed again, by the same reading or an edit: 171 of 760"
        " were, ten calls later or more",
        low=0.0,
        high=1.0,
    )
    needed_reread: float = setting(
        0.08,
        "the same for a file of which something was read again since: 89 of 1,110, at any age",
        low=0.0,
        high=1.0,
    )
    needed_fetch: float = setting(
        0.25,
        "the same for a page: 10 of 43, in few sessions, so taken as a file",
        low=0.0,
        high=1.0,
    )
    needed_shell: float = setting(
        0.05,
        "the same for a command, by the same output: 68 of 1,270; with another output the first is"
        " of no use",
        low=0.0,
        high=1.0,
    )
    needed_search: float = setting(0.01, "the same for a search: 3 of 474", low=0.0, high=1.0)
    halving_calls: int = setting(
        50,
        "calls in which a rate halves: files by .225, .182, .130, .078 after 10, 20, 40, 80",
        low=1,
    )
    need_weight: float = setting(
        12.0,
        "what a missing result costs, in calls that get it again: a model does not always notice"
        " that it lacks something, and what it then builds on a guess is done twice",
        low=0.0,
    )
    compaction_needs: float = setting(
        0.6, "results of before that are needed after a compaction and were not restored", low=0.0
    )
    compaction_need_tokens: int = setting(3_500, "of all of them together", low=0)
    work_tokens: int = setting(
        30_000,
        "room for the work at hand above what a compaction leaves: 95 % of 417 turns needed less",
        low=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    tenant: str = setting(
        "",
        "whose sessions these are; tenants of one database never see each other's",
        form=r"[^\x00]{0,200}",
        personal=True,
    )
    lease_seconds: float = setting(
        15.0,
        "a writer that is silent for so long may be replaced; shorter takes over sooner and bears "
        "shorter pauses",
        low=0.5,
        high=600,
        personal=True,
    )
    patience_seconds: float = setting(
        30.0,
        "how long a commit is tried while the database is away; a restart takes a few seconds",
        low=0.1,
        high=600,
        personal=True,
    )
    bodies: str = setting(
        "",
        "where large results go instead of the database: s3://…, gs://…, az://… or file://…, one "
        "place for each database",
        form=r"[^\x00]{0,2000}",
        personal=True,
    )
    bodies_least_bytes: int = setting(
        262_144,
        "of a result that goes there; a database keeps smaller ones well, and gives them sooner",
        low=1,
        high=1 << 30,
        personal=True,
    )
    jobs: str = setting(
        "here",
        "who extracts memories, dreams and updates notes: the session's own process, 'here', or "
        "'workers'. They begin when nobody writes the session, so it is for sessions that are open "
        "for a turn at a time",
        form="here|workers",
        personal=True,
    )
    worker_beat_seconds: float = setting(
        5.0,
        "how often a worker says that it lives, and looks for jobs of workers that do not",
        low=0.1,
        high=600,
        personal=True,
    )
    worker_stalled_seconds: float = setting(
        20.0,
        "a worker that is silent for so long is taken for dead and its jobs are run again; a few beats",
        low=0.2,
        high=3_600,
        personal=True,
    )
