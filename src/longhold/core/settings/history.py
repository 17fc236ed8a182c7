"""Settings of the history: log, stages in the order they run, memories, pages."""

from dataclasses import dataclass

from longhold.core.settings.setting import NOT_STAGED, personal, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    retention_days: int = personal(
        30,
        "`sessions --prune` removes sessions that were not used for this long, in every"
        " project; 0 keeps all",
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
        "",
        "where your memories are stored; '' is next to the project's sessions. A project cannot"
        " set this, because it could name any directory",
        form=r"|~?/.*",
    )
    consent: str = personal(
        "write",
        "'write' saves new memories immediately and reports them; 'ask' puts them into the"
        " inbox first",
        form="write|ask",
    )
    extract: str = personal(
        "chat",
        "when to search answers for new memories: in a 'chat', 'always', or 'off'. With"
        " 'always' a single run waits after its answer",
        form="off|chat|always",
    )
    share: float = personal(
        0.04,
        "share of the project's spending of the last seven days for extractions and dreams; the"
        " rest waits, also across sessions, and `longhold memory status` shows it. 0 means no"
        " limit",
        low=0,
        high=1,
    )
    team: str = setting(
        "read",
        "use the memories in the repository: 'read' or 'off'. To add one, run `longhold memory"
        " share FILE`",
        form="off|read",
    )
    recall: bool = setting(True, "show the model memories that match the user's message")
    recall_model: str = personal(
        "",
        "a model that also chooses matching memories, one call for each of the user's messages;"
        " '' uses only the search, which is free and takes milliseconds. This model also"
        " extracts memories from earlier sessions",
        form=NOT_STAGED,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamSettings:
    on: bool = setting(True, "tidy memories from time to time, also if extraction is off")
    where: str = personal(
        "chat",
        "which sessions dream automatically: a 'chat', or 'always'. With 'always' a single run"
        " waits after its answer",
        form="chat|always",
    )
    by: str = personal(
        "model",
        "'model' lets the session's model dream if it has one, 'engine' makes only the safe"
        " changes that need no model",
        form="model|engine",
    )
    after_hours: float = personal(24.0, "hours between dreams; memories change over days", low=0)
    sessions: int = personal(5, "sessions that must have changed since the last dream", low=0)
    removed_share: float = personal(
        0.3,
        "share of all memories that one dream may remove; a larger loss is a mistake",
        low=0,
        high=1,
    )
    removed_floor: int = personal(
        3,
        "number of removals that are always allowed, so that a small store can lose duplicates",
        low=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    text_bytes: int = setting(
        2_000_000,
        "text of all messages on a page; the page of the longest session then stays under 3 MB",
        low=10_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillSettings:
    on: bool = setting(True, "write results that exceed their budget to disk")
    result_chars: int = setting(
        50_000,
        "results longer than this are spilled: 12,000 tokens, a sixteenth of a 200K window",
        low=1_000,
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
        1 << 30,
        "limit for all stored results of a session; beyond it the oldest are removed",
        low=1 << 20,
    )
    retention_days: int = personal(
        30, "stored results older than this are removed; 0 keeps all", low=0, high=36_500
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearSettings:
    on: bool = setting(True, "clear old results of tools whose output can be fetched again")
    keep_results: int = setting(
        5,
        "number of newest results that are never cleared, because the model still uses them",
        low=1,
    )
    smallest_tokens: int = setting(
        200,
        "shorter results are not cleared, because the placeholder would be almost as long",
        low=0,
    )
    also: str = setting(
        "",
        "further tools whose output can be fetched again, such as 'mcp__db__query=fetch,"
        " Ask=search'",
        form=r"|\s*[^=,\s]+=(read|search|shell|fetch|write)(\s*,\s*[^=,\s]+=(read|search|shell|fetch|write))*\s*",
    )
    inputs: bool = setting(
        True,
        "also clear long inputs of old writes and edits if the text after them is sent uncached"
        " anyway",
    )
    thinking: bool = setting(
        True,
        "drop old thinking when the cache has expired, unless the model binds it to the prompt",
    )
    idle: bool = setting(True, "clear when the cache has expired anyway, so that it costs nothing")
    edits: bool = setting(True, "delete inside the provider's cache if the model supports it")
    server: bool = setting(
        False,
        "let the provider clear; its cut moves with every call, and each move breaks the cache",
    )
    server_trigger_tokens: int = setting(
        180_000, "size at which the provider clears, or the warning level if that is lower"
    )
    server_target_tokens: int = setting(
        40_000, "the provider clears only if that can reduce the prompt to this size", low=0
    )
    warm_share: float = setting(
        0.5,
        "share of the compaction threshold below which nothing cached is cleared, because there"
        " is enough space",
        low=0.0,
        high=1.0,
    )
    paid: bool = setting(
        True, "clear cached results when the following calls save more than it costs"
    )
    stake_share: float = setting(
        1.0,
        "share of the session's bill, plus earlier savings by clearing, that a rewrite may"
        " cost, so that a session which ends early is hardly more expensive for it; 1 means no"
        " limit",
        low=0.0,
        high=1.0,
    )
    line_room: float = setting(
        0.3,
        "at the compaction threshold, clear instead of compacting if that frees this share of"
        " it; with less, the threshold is soon reached again, and every call until then reads a"
        " full window",
        low=0.0,
        high=1.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CollapseSettings:
    on: bool = setting(
        False, "collapse finished work instead of compacting; a session does one or the other"
    )
    target_ratio: float = setting(
        0.70,
        "share of the window to collapse down to in one step, because each step rewrites the cache",
        low=0.0,
        high=1.0,
    )
    write: bool = setting(True, "let a fork write the lines; without it they contain only counts")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesSettings:
    on: bool = setting(True, "keep notes while the session runs")
    model: bool = setting(
        True,
        "let a model add judgement to the notes; without it they contain what the log shows,"
        " which costs nothing",
    )
    model_when: str = personal(
        "paying",
        "when the model updates notes: 'paying' is near the compaction threshold and after a"
        " pause, when notes save a summary; 'always' is with each update, which reads the whole"
        " context",
        form="paying|always",
    )
    first_tokens: int = setting(
        10_000, "context size at which notes start; a shorter session has little to note", low=0
    )
    growth_tokens: int = personal(
        15_000,
        "growth after which notes are updated: nine of ten turns add less, and each update is"
        " written to disk",
        low=1,
    )
    stand_in: str = setting(
        "model",
        "which notes replace history before a summary is requested: 'model' those that a model"
        " wrote, 'always' also those from the log alone, 'off' none",
        form="model|always|off",
    )
    keep_tokens: int = setting(
        10_000,
        "tokens of the latest messages that a compaction from notes keeps word for word, at least",
        low=0,
    )
    keep_messages: int = setting(
        5, "messages with text that a compaction from notes keeps, at least", low=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    on: bool = setting(True, "allow compaction, automatic or by hand")
    reactive_only: bool = setting(
        False,
        "compact only when the provider rejects the prompt as too long; uses more of the window",
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
