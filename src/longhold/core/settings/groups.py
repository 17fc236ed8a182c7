"""The groups of settings for the model, the agent, the log, the stages and memories."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from longhold.core.settings.setting import NOT_STAGED, personal, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    name: str = personal(
        "claude-sonnet-5-5", "the model; `scripted:` models need --model", form=NOT_STAGED
    )
    fallback: str = personal(
        "", "model for when the first is overloaded; never `scripted:`", form=NOT_STAGED
    )
    base_url: str = personal(
        "", "address of the provider's API, which also receives the key; '' is the provider's own"
    )
    offline: bool = personal(
        False, "without a key, `longhold chat` follows a fixed plan and calls no model"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSettings:
    limit_tokens: int = setting(
        0, "size of the model's context window; 0 takes it from the model table", low=0
    )
    allow_long: bool = setting(True, "use a window over 200K if the model has one")
    reserve_tokens: int = setting(
        20_000, "space for writing a summary; 99.99 % are under 17,400 tokens", low=0
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
        "auto", "cache lifetime: '5m', '1h', or 'auto' by the request's source", form=r"auto|5m|1h"
    )
    long_sources: str = setting(
        "chat", "sources with an hour under 'auto': people pause longer than programs"
    )
    diagnose: bool = setting(
        False, "ask the provider why its cache missed; a beta feature of one provider"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSettings:
    """Spending limits, at which a run ends cleanly. 0 means no limit."""

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
        0.25, "dollars that summaries may always spend: one by an expensive model", low=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    on: bool = personal(
        False, "report calls, decisions and failures to the process's OpenTelemetry providers"
    )
    content: bool = personal(
        False, "include messages, tools' inputs and outputs, and errors, with secrets masked"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSettings:
    need_weight: float = setting(
        4.0, "cost of a missing result, as a multiple of the call that fetches it again", low=0.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    tenant: str = personal(
        "", "owner of these sessions; tenants never see each other's", form=r"[^\x00]{0,200}"
    )
    key_file: str = personal(
        "", "a file with a 64-byte key in base64; the database then contains only encrypted content"
    )
    lease_seconds: float = personal(
        15.0, "a writer that is silent for this long may be replaced", low=0.5, high=600
    )
    patience_seconds: float = personal(
        30.0, "how long a commit is retried while the database is away", low=0.1, high=600
    )
    jobs: str = personal(
        "here", "who runs background jobs: the process 'here', or 'workers'", form="here|workers"
    )
    worker_beat_seconds: float = personal(
        5.0, "time between a worker's heartbeats", low=0.1, high=600
    )
    worker_stalled_seconds: float = personal(
        20.0, "a worker silent for this long is dead; its jobs run again", low=0.2, high=3_600
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSettings:
    plain: bool = personal(False, "print line by line, for screen readers and simple terminals")
    suggest: bool = personal(
        True, "show in grey what you might say next: one short call within budget.own_share"
    )
    mention_tokens: int = setting(
        30_000, "tokens of the files named with @ in one message; small windows get less", low=0
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
        20.0, "close an idle session's log after this, so that `undo` can write to it", low=0.0
    )
    stake_share: float = setting(
        0.05, "replaces clear.stake_share: what a clearing may cost extra", low=0.0, high=1.0
    )
    breakpoints: str = personal(
        "client", "'add' sets cache breakpoints for clients that set none", form="client|add"
    )
    tenant_usd_per_day: float = personal(
        0.0, "dollars per day for each credential on this machine; 0 means no limit", low=0.0
    )
    open_sessions: int = setting(
        200, "idle sessions kept open; each holds its history in memory", low=1
    )
    shadow: bool = setting(
        True, "estimate what the client's own requests would have cost, to measure the saving"
    )


Mode: TypeAlias = Literal["ask", "accept_edits", "plan", "bypass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    output_tokens: int = setting(
        8_000, "output limit of an answer; 99 % are under 5,000 tokens", low=1
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
        "model-key variables for commands and hooks, separated by spaces",
        form=r"[A-Za-z0-9_ ]*",
    )

    @property
    def passed(self) -> frozenset[str]:
        return frozenset(self.pass_variables.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginsSettings:
    use: str = personal(
        "", "stages, summarisers and memories to use, separated by spaces", form=r"[\w. -]*"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSettings:
    language: str = personal(
        "", "language of answers, such as 'German'; '' is the user's", form=r"[\w ()-]{0,40}"
    )
    git: bool = setting(True, "include the state of the repository in the prompt of a new session")
    full_tokens: int = setting(
        20_000, "a smaller window gets no agents, no memory and only the core tools", low=0
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
        "", "patterns of project files to leave out: 'vendor/**, CLAUDE.local.md'"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsSettings:
    on: bool = setting(True, "let the model start agents")
    at_once: int = setting(20, "agents that may run at the same time", low=1, high=1_000)
    depth: int = setting(
        3, "how deep agents may start agents; the main agent's are level 1", low=0, high=10
    )
    background_seconds: float = setting(
        120.0, "an agent that takes longer continues in the background; 0 means never", low=0
    )
    progress_model: bool = setting(
        False, "ask the model for an agent's progress line; otherwise the last tool call is shown"
    )
    output_chars: int = setting(
        32_000, "characters of an agent's answer that its parent reads; a file has the rest", low=1
    )
    wakes: int = personal(
        20, "turns in a row that mail and reports may start without the user", low=0
    )
    sessions_mail: bool = personal(True, "accept mail from your other sessions on this machine")
    coordinator: bool = setting(
        False, "the main agent only directs background workers and does no work itself"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    retention_days: int = personal(
        30,
        "`sessions --prune` removes sessions unused for this long; 0 for none",
        low=0,
        high=36_500,
    )
    body_limit_bytes: int = setting(
        1 << 20, "results larger than this are stored in a file next to the log", low=1_024
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    on: bool = setting(True, "store memories and recall them")
    directory: str = personal(
        "", "where your memories are; '' is next to the project's sessions", form=r"|~?/.*"
    )
    consent: str = personal(
        "write", "'write' saves new memories, 'ask' proposes them first", form="write|ask"
    )
    extract: str = personal(
        "chat", "search answers for memories in a 'chat', 'always' or 'off'", form="off|chat|always"
    )
    share: float = personal(
        0.04, "share of the project's spending that memory may use; 0 for no limit", low=0, high=1
    )
    team: str = setting(
        "read",
        "memories in the repository: 'read' or 'off'; `longhold memory share FILE` adds one",
        form="off|read",
    )
    recall: bool = setting(True, "show the model memories that match the user's message")
    recall_model: str = personal(
        "", "a model that chooses memories and reads earlier sessions", form=NOT_STAGED
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamSettings:
    on: bool = setting(True, "tidy memories from time to time, also if extraction is off")
    where: str = personal("chat", "which sessions dream: a 'chat', or 'always'", form="chat|always")
    by: str = personal(
        "model",
        "'model' asks the session's model, 'engine' only makes safe changes",
        form="model|engine",
    )
    after_hours: float = personal(24.0, "hours between dreams; memories change over days", low=0)
    sessions: int = personal(5, "sessions that must have changed since the last dream", low=0)
    removed_share: float = personal(
        0.3, "share of all memories that one dream may remove", low=0, high=1
    )
    removed_floor: int = personal(3, "removals that are always allowed", low=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    text_bytes: int = setting(
        2_000_000, "text of all messages on a page, which then stays under 3 MB", low=10_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillSettings:
    on: bool = setting(True, "write results that exceed their budget to disk")
    result_chars: int = setting(
        50_000, "longer results are spilled; a sixteenth of a 200K window", low=1_000
    )
    message_chars: int = setting(
        200_000, "limit for all results of one message: a quarter of a 200K window", low=1_000
    )
    tools: str = setting(
        "",
        "limits in characters by tool, such as 'Bash=10000, mcp__db__*=80000'",
        form=r"|\s*[\w.*?-]+\s*=\s*[1-9][\d_]*\s*(,\s*[\w.*?-]+\s*=\s*[1-9][\d_]*\s*)*",
    )
    session_bytes: int = personal(
        1 << 30, "limit for a session's stored results; the oldest are removed", low=1 << 20
    )
    retention_days: int = personal(
        30, "stored results older than this are removed; 0 keeps all", low=0, high=36_500
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearSettings:
    on: bool = setting(True, "clear old results of tools whose output can be fetched again")
    keep_results: int = setting(
        5, "newest results that are never cleared, because the model uses them", low=1
    )
    smallest_tokens: int = setting(
        200, "shorter results are not cleared: a placeholder is as long", low=0
    )
    also: str = setting(
        "",
        "further tools whose output can be fetched again, such as 'mcp__db__query=fetch,"
        " Ask=search'",
        form=r"|\s*[^=,\s]+=(read|search|shell|fetch|write)(\s*,\s*[^=,\s]+=(read|search|shell|fetch|write))*\s*",
    )
    inputs: bool = setting(
        True, "also clear long inputs of old writes and edits while that costs nothing"
    )
    thinking: bool = setting(
        True, "drop old thinking when the cache has expired, unless it is bound to the prompt"
    )
    idle: bool = setting(True, "clear when the cache has expired anyway, so that it costs nothing")
    edits: bool = setting(True, "delete inside the provider's cache if the model supports it")
    server: bool = setting(False, "let the provider clear; each of its cuts breaks the cache")
    server_trigger_tokens: int = setting(
        180_000, "size at which the provider clears, or the warning level if that is lower"
    )
    server_target_tokens: int = setting(
        40_000, "the provider clears only if that can reduce the prompt to this size", low=0
    )
    warm_share: float = setting(
        0.5, "share of the threshold below which nothing cached is cleared", low=0.0, high=1.0
    )
    paid: bool = setting(
        True, "clear cached results when later calls save more; not with a threshold by cost"
    )
    stake_share: float = setting(
        1.0, "share of the session's bill a rewrite may cost; 1 for no limit", low=0.0, high=1.0
    )
    line_room: float = setting(
        0.3, "clear, not compact, if that frees this share of the threshold", low=0.0, high=1.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CollapseSettings:
    on: bool = setting(
        False, "collapse finished work instead of compacting; a session does one or the other"
    )
    target_ratio: float = setting(
        0.70, "share of the window to collapse down to in one step", low=0.0, high=1.0
    )
    write: bool = setting(True, "let a fork write the lines; without it they contain only counts")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesSettings:
    on: bool = setting(True, "keep notes while the session runs")
    model: bool = setting(
        True, "let a model add judgement to the notes; without it they cost nothing"
    )
    model_when: str = personal(
        "paying", "update notes by a model when 'paying', or 'always'", form="paying|always"
    )
    first_tokens: int = setting(
        10_000, "context size at which notes start; a shorter session has little to note", low=0
    )
    growth_tokens: int = personal(
        15_000, "growth after which notes are updated; nine of ten turns add less", low=1
    )
    stand_in: str = setting(
        "model",
        "notes that replace history: by a 'model', 'always', or 'off'",
        form="model|always|off",
    )
    keep_tokens: int = setting(
        10_000, "tokens of the latest messages that a compaction from notes keeps", low=0
    )
    keep_messages: int = setting(
        5, "messages with text that a compaction from notes keeps, at least", low=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    on: bool = setting(True, "allow compaction, automatic or by hand")
    reactive_only: bool = setting(
        False, "compact only when the provider rejects the prompt as too long"
    )
    model: bool = setting(
        True, "let a model write summaries; off writes digests, which cost nothing"
    )
    instructions: str = personal(
        "", "what every summary must cover, such as open orders with their amounts"
    )
    rung_seconds: float = setting(300.0, "time limit for each way of writing a summary", low=1)
    restore_files: int = setting(
        5, "recently read files that are shown again after a compaction", low=0, high=100
    )
    restore_file_tokens: int = setting(5_000, "tokens of each restored file", low=100)
    restore_tokens: int = setting(50_000, "tokens of all restored files together", low=0)
