"""Settings of the model and the agent: window, cache, costs, prompt, agents, gateway, terminal."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from longhold.core.settings.setting import NOT_STAGED, personal, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    name: str = personal(
        "claude-sonnet-5-5",
        "the model; the default codes well at a medium price. `scripted:` models need --model",
        form=NOT_STAGED,
    )
    fallback: str = personal(
        "",
        "the model that answers when the first is overloaded; '' for none, never a `scripted:`"
        " model",
        form=NOT_STAGED,
    )
    base_url: str = personal(
        "", "address of the provider's API, which also receives the key; '' is the provider's own"
    )
    offline: bool = personal(
        False,
        "without a key, `longhold chat` follows a fixed plan and calls no model; chosen at its"
        " first start",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSettings:
    limit_tokens: int = setting(
        0, "size of the model's context window; 0 takes it from the model table", low=0
    )
    allow_long: bool = setting(True, "use a window over 200K if the model has one")
    reserve_tokens: int = setting(
        20_000,
        "space reserved for writing a summary; 99.99 % of summaries are under 17,400 tokens",
        low=0,
    )
    auto: bool = setting(True, "free space automatically at the compaction threshold")
    auto_line: str = setting(
        "cost",
        "the compaction threshold: 'cost' is the size at which a longer context costs more"
        " than a compaction and the content it loses, '' is the window less a reserve; or give"
        " '150000' tokens or '80%'",
        form=r"|cost|[1-9][\d_,]*|\d{1,3}(\.\d+)?%",
    )
    auto_window_tokens: int = setting(
        0, "window size from which the compaction threshold is computed; 0 is the real size", low=0
    )
    warning_buffer_tokens: int = setting(
        20_000, "warn this many tokens before the compaction threshold", low=0
    )
    blocking_buffer_tokens: int = setting(
        3_000, "space that a compaction by hand needs for its own request", low=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GaugeSettings:
    """How the context size is estimated between the provider's usage reports."""

    calibrate: bool = setting(True, "learn the tokens per character from the usage of each answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    on: bool = personal(True, "set cache breakpoints; off sends none")
    lifetime: str = setting(
        "auto",
        "how long the provider caches a prefix: '5m', '1h', or 'auto', which depends on the"
        " source of the request",
        form=r"auto|5m|1h",
    )
    long_sources: str = setting(
        "chat",
        "sources that get an hour under 'auto': people pause for longer than five minutes,"
        " programs do not",
    )
    diagnose: bool = setting(
        False, "ask the provider why its cache missed; a beta feature of one provider"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSettings:
    """Spending limits, after which a run ends cleanly. 0 means no limit."""

    max_usd: float = personal(0.0, "dollars per session", low=0)
    max_tokens: int = personal(0, "tokens per session, read and written", low=0)
    max_usd_per_day: float = personal(0.0, "dollars per day over all sessions", low=0)
    max_tokens_per_day: int = personal(0, "tokens per day over all sessions", low=0)
    own_share: float = personal(
        0.05,
        "share of a session's spending for overhead calls. Beyond it, notes are written without"
        " a model, and summaries are digests unless the threshold is set by cost, which includes"
        " their price. For memory, see memory.share",
        low=0,
        high=1,
    )
    own_floor_usd: float = personal(
        0.25,
        "dollars that summaries may always spend: the price of one at the threshold of an"
        " expensive model",
        low=0,
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
        "include messages, the inputs and outputs of tools, and error texts, with secrets masked",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSettings:
    need_weight: float = setting(
        8.0,
        "assumed cost of a missing result, as a multiple of the call that fetches it again: a"
        " model does not always notice that it lacks something, and work based on a guess has to"
        " be repeated",
        low=0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    tenant: str = personal(
        "",
        "owner of these sessions; tenants of one database never see each other's sessions",
        form=r"[^\x00]{0,200}",
    )
    key_file: str = personal(
        "", "a file with a 64-byte key in base64; the database then contains only encrypted content"
    )
    lease_seconds: float = personal(
        15.0,
        "a writer that is silent for this long may be replaced; a shorter lease is taken over"
        " sooner but tolerates only shorter pauses",
        low=0.5,
        high=600,
    )
    patience_seconds: float = personal(
        30.0,
        "how long a commit is retried while the database is unreachable; a restart takes a few"
        " seconds",
        low=0.1,
        high=600,
    )
    jobs: str = personal(
        "here",
        "who extracts memories, dreams and updates notes: 'here' is the session's own process,"
        " 'workers' are separate processes. Workers start when no process writes to the session,"
        " so use them if sessions are open for one turn at a time",
        form="here|workers",
    )
    worker_beat_seconds: float = personal(
        5.0,
        "how often a worker sends a heartbeat and looks for jobs of dead workers",
        low=0.1,
        high=600,
    )
    worker_stalled_seconds: float = personal(
        20.0,
        "a worker that is silent for this long counts as dead and its jobs run again; allow"
        " several heartbeats",
        low=0.2,
        high=3_600,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSettings:
    plain: bool = personal(False, "print line by line, for screen readers and simple terminals")
    suggest: bool = personal(
        True,
        "after an answer, ask the model what you might say next and show it in grey: one short"
        " call on the cached prompt, only within the overhead budget (budget.own_share)",
    )
    mention_tokens: int = setting(
        30_000,
        "tokens of the files named with @ in one message: one whole Read and a few short files."
        " The model reads longer files itself; small windows get less",
        low=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    on: bool = setting(True, "manage the requests of clients; off forwards everything unchanged")
    body_bytes: int = personal(
        33_554_432, "largest request body; the Messages API refuses longer ones", low=1_024
    )
    body_seconds: float = personal(
        60.0, "longest time a client may take to send the head of its request, or its body", low=0.1
    )
    read_seconds: float = personal(
        900.0, "longest wait for the provider's next byte; the official SDKs wait less", low=1.0
    )
    idle_seconds: float = personal(
        20.0,
        "close a session's log after this idle time, so that `undo` and `compact` can write to it",
        low=0.0,
    )
    stake_share: float = setting(
        0.05,
        "replaces clear.stake_share: the most that a session may cost extra if it ends right"
        " after a clearing; the worst of 25 recorded sessions cost 3.8 % more",
        low=0.0,
        high=1.0,
    )
    breakpoints: str = personal(
        "client",
        '"add" sets cache breakpoints on the messages of clients that set none there: each call'
        " then reads the content of the previous one for a tenth of its price",
        form="client|add",
    )
    tenant_usd_per_day: float = personal(
        0.0,
        "dollars per day for each credential, over all processes on this machine; 0 means no limit",
        low=0.0,
    )
    open_sessions: int = setting(
        200,
        "idle sessions kept open, because each holds its history in memory; beyond that the"
        " longest idle are closed",
        low=1,
    )
    shadow: bool = setting(
        True, "estimate what the client's own requests would have cost, to measure the saving"
    )


Mode: TypeAlias = Literal["ask", "accept_edits", "plan", "bypass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    output_tokens: int = setting(
        8_000,
        "output limit of an answer: 99 % are under 5,000, and a higher limit reserves more of"
        " the window",
        low=1,
    )
    max_turns: int = setting(0, "answers with tool calls per run; 0 means no limit", low=0)
    parallel_tools: int = setting(
        10, "how many read-only tools may run in parallel", low=1, high=64
    )
    stop_blocks: int = setting(
        8, "how many times in a row stop hooks may make the agent continue", low=0, high=1_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSettings:
    pass_variables: str = personal(
        "",
        "names of model-key variables that commands and hooks get nevertheless, separated by"
        " spaces",
        form=r"[A-Za-z0-9_ ]*",
    )

    @property
    def passed(self) -> frozenset[str]:
        return frozenset(self.pass_variables.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginsSettings:
    use: str = personal(
        "",
        "names of installed stages, summarisers and memories to use, separated by spaces",
        form=r"[\w. -]*",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    language: str = personal(
        "",
        "the language of answers, such as 'German'; '' is the language of the user",
        form=r"[\w ()-]{0,40}",
    )
    git: bool = setting(True, "include the state of the repository in the prompt of a new session")
    full_tokens: int = setting(
        20_000,
        "a smaller window gets no agents, no memory and only the core tools, because the full"
        " set with its instructions takes 8,500 tokens",
        low=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsSettings:
    on: bool = personal(True, "read AGENTS.md and CLAUDE.md files")
    user_claude: bool = personal(
        True, "also read the user's own CLAUDE.md, where users of other agents have their rules"
    )
    above_project: bool = personal(
        True, "read files above the repository that belong to the user or to root"
    )
    nested: bool = setting(
        True, "read files in subdirectories when the agent first touches something near them"
    )
    exclude: str = setting(
        "",
        "patterns of project files to leave out, separated by commas: 'vendor/**, CLAUDE.local.md'",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsSettings:
    on: bool = setting(True, "let the model start agents")
    at_once: int = setting(
        20,
        "agents that may run at the same time; more are hard to follow and to pay for",
        low=1,
        high=1_000,
    )
    depth: int = setting(
        3,
        "how deep agents may start agents; those of the main agent are the first level",
        low=0,
        high=10,
    )
    background_seconds: float = setting(
        120.0, "an agent that takes longer continues in the background; 0 means never", low=0
    )
    progress_model: bool = setting(
        False, "ask the model for an agent's progress line; otherwise the last tool call is shown"
    )
    output_chars: int = setting(
        32_000,
        "characters of an agent's answer that the parent reads directly, about 8,000 tokens;"
        " the rest is in a file",
        low=1,
    )
    wakes: int = personal(
        20,
        "turns in a row that mail and reports may start without a message of the user; this ends"
        " an endless exchange between two sessions",
        low=0,
    )
    sessions_mail: bool = personal(True, "accept mail from your other sessions on this machine")
    coordinator: bool = setting(
        False, "the main agent only directs background workers and does no work itself"
    )
