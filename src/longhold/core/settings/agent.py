"""Settings of the model and the agent: window, cache, costs, prompt, agents, gateway, terminal."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from longhold.core.settings.setting import NOT_STAGED, personal, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    name: str = personal(
        "claude-sonnet-5-5",
        "a model that codes well at a middling price; `scripted:` and `chaos:` only as --model",
        form=NOT_STAGED,
    )
    fallback: str = personal(
        "",
        "answers when the first is overloaded; '' is nobody, `scripted:` and `chaos:` never",
        form=NOT_STAGED,
    )
    base_url: str = personal(
        "", "where the provider answers, and where the key goes; '' is its own address"
    )
    offline: bool = personal(
        False,
        "without a key, `longhold chat` follows a fixed plan and asks nobody; set by its first start",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSettings:
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
    warning_buffer_tokens: int = setting(20_000, "warn this far before the auto line", low=0)
    blocking_buffer_tokens: int = setting(
        3_000, "what a request to make room by hand itself needs", low=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GaugeSettings:
    """How the context size is estimated between the provider's usage reports."""

    calibrate: bool = setting(True, "learn from each answer's usage what a character weighs")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
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
    """Spending limits, after which a run ends cleanly. 0 means no limit."""

    max_usd: float = personal(0.0, "dollars per session", low=0)
    max_tokens: int = personal(0, "tokens per session, read and written", low=0)
    max_usd_per_day: float = personal(0.0, "dollars per day over all sessions", low=0)
    max_tokens_per_day: int = personal(0, "tokens per day over all sessions", low=0)
    own_share: float = personal(
        0.05,
        "of a session's spending for calls the engine makes for itself, so that they stay small"
        " beside the work; past it summaries are digests, notes the engine's, and memories wait",
        low=0,
        high=1,
    )
    own_floor_usd: float = personal(
        0.25, "for summaries in any case: what one costs at the line of a dear model", low=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    on: bool = personal(
        False,
        "report calls, tools, compactions, clearings, cache breaks, memory changes and failures to"
        " the OpenTelemetry providers of this process",
    )
    content: bool = personal(
        False,
        "with what was said, what tools were given and gave, and the texts of errors, secrets masked",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSettings:
    need_weight: float = setting(
        12.0,
        "what a missing result costs, in calls that get it again: a model does not always notice"
        " that it lacks something, and what it then builds on a guess is done twice",
        low=0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    tenant: str = personal(
        "",
        "whose sessions these are; tenants of one database never see each other's",
        form=r"[^\x00]{0,200}",
    )
    lease_seconds: float = personal(
        15.0,
        "a writer that is silent for so long may be replaced; shorter takes over sooner and bears "
        "shorter pauses",
        low=0.5,
        high=600,
    )
    patience_seconds: float = personal(
        30.0,
        "how long a commit is tried while the database is away; a restart takes a few seconds",
        low=0.1,
        high=600,
    )
    bodies: str = personal(
        "",
        "where large results go instead of the database: s3://…, gs://…, az://… or file://…, one "
        "place for each database",
        form=r"[^\x00]{0,2000}",
    )
    bodies_least_bytes: int = personal(
        262_144,
        "of a result that goes there; a database keeps smaller ones well, and gives them sooner",
        low=1,
        high=1 << 30,
    )
    jobs: str = personal(
        "here",
        "who extracts memories, dreams and updates notes: the session's own process, 'here', or "
        "'workers'. They begin when nobody writes the session, so it is for sessions that are open "
        "for a turn at a time",
        form="here|workers",
    )
    worker_beat_seconds: float = personal(
        5.0,
        "how often a worker says that it lives, and looks for jobs of workers that do not",
        low=0.1,
        high=600,
    )
    worker_stalled_seconds: float = personal(
        20.0,
        "a worker that is silent for so long is taken for dead and its jobs are run again; a few beats",
        low=0.2,
        high=3_600,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSettings:
    plain: bool = personal(
        False, "talk line by line, as screen readers and simple terminals need it"
    )
    suggest: bool = personal(
        True,
        "after an answer, ask the model what you might say next and show it in grey: one short call"
        " on the cached prompt, only within the engine's own share (budget.own_share)",
    )
    away_minutes: float = personal(
        30.0,
        "who comes back to the keyboard after this long is reminded of where they were; 0 never",
        low=0,
    )
    mention_tokens: int = setting(
        30_000,
        "of files named with @ in one message: one whole Read and a few short files; what is longer"
        " is left to the model to read; less in small windows",
        low=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    on: bool = setting(True, "manage what clients send; off, everything is only passed on")
    body_bytes: int = personal(33_554_432, "the Messages API refuses longer requests", low=1_024)
    body_seconds: float = personal(
        60.0,
        "a client that takes longer to send the head of its request, or its body, is stuck",
        low=0.1,
    )
    read_seconds: float = personal(
        900.0, "longer than the official SDKs wait for the next byte", low=1.0
    )
    idle_seconds: float = personal(
        20.0,
        "then a session's log is closed, so that `undo` and `compact` can write to it",
        low=0.0,
    )
    need_weight: float = setting(
        8.0,
        "in place of cost.need_weight: a client reads its files again with its own tools. With it"
        " the results that are gone when they are needed are as many tokens as under the cost"
        " policy, whose compactions a client makes itself",
        low=0.0,
    )
    stake_share: float = setting(
        0.1,
        "in place of clear.stake_share: what a session may at worst cost more than without us, if"
        " it ends right after a clearing; over 25 recorded ones the worst was 0.6 %",
        low=0.0,
        high=1.0,
    )
    tenant_usd_per_day: float = personal(
        0.0, "of each credential, over all processes here; 0 is no limit", low=0.0
    )
    open_sessions: int = setting(
        200, "more are closed, the longest idle first: each holds its history in memory", low=1
    )
    shadow: bool = setting(
        True, "count what the client's own requests would have cost: the saving is measured by it"
    )


Mode: TypeAlias = Literal["ask", "accept_edits", "plan", "bypass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    output_tokens: int = setting(
        8_000, "99 % of answers are under 5,000; asking for more reserves more", low=1
    )
    max_turns: int = setting(0, "answers with tool calls per run; 0 is no limit", low=0)
    parallel_tools: int = setting(10, "tools that change nothing run side by side", low=1, high=64)
    stop_blocks: int = setting(
        8, "how often in a row stop hooks may keep the agent going", low=0, high=1_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSettings:
    pass_variables: str = personal(
        "",
        "keys for models that commands and hooks get all the same: names of variables, with spaces"
        " between them",
        form=r"[A-Za-z0-9_ ]*",
    )

    @property
    def passed(self) -> frozenset[str]:
        return frozenset(self.pass_variables.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    language: str = personal(
        "", "the language of answers, such as 'German'; '' is the user's", form=r"[\w ()-]{0,40}"
    )
    git: bool = setting(True, "tell the model the state of the repository when a session begins")
    full_tokens: int = setting(
        20_000,
        "a smaller window gets no agents, no memory and only the core tools: all of them with"
        " their instructions take 8,500 tokens",
        low=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsSettings:
    on: bool = personal(True, "read AGENTS.md and CLAUDE.md files")
    user_claude: bool = personal(
        True, "read the user's own CLAUDE.md, too: who comes from elsewhere has their rules there"
    )
    above_project: bool = personal(
        True, "read files above the repository that belong to the user or to root"
    )
    nested: bool = setting(True, "read files further down once something near them is touched")
    exclude: str = setting(
        "",
        "patterns of project files to leave out, with commas between: 'vendor/**, CLAUDE.local.md'",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsSettings:
    on: bool = setting(True, "let the model start agents")
    at_once: int = setting(20, "more than this nobody can follow or pay for", low=1, high=1_000)
    depth: int = setting(
        3, "agents that start agents: the main one's are the first level", low=0, high=10
    )
    background_seconds: float = setting(
        120.0, "one that takes longer goes on in the background; 0 never", low=0
    )
    progress_model: bool = setting(
        False, "ask the model for that line; else it is made from the last tool call"
    )
    output_chars: int = setting(
        32_000,
        "of an answer the parent reads at once: about 8,000 tokens; the rest is a file",
        low=1,
    )
    wakes: int = setting(
        20,
        "turns in a row on mail and reports while the user says nothing: two sessions that write to "
        "each other end there",
        low=0,
    )
    sessions_mail: bool = personal(True, "take mail from other sessions of yours on this machine")
    coordinator: bool = setting(False, "only direct workers in the background, never work itself")
