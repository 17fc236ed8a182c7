"""What becomes of the history as it grows, in the order the stages run."""

from dataclasses import dataclass

from longhold.core.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillSettings:
    """When a tool's result goes to disk, and what of it is shown."""

    on: bool = setting(True, "put results that are over their budget on disk")
    result_chars: int = setting(
        50_000,
        "longer results are spilled: 12,000 tokens, a sixteenth of a 200K window",
        low=1_000,
    )
    failed_chars: int = setting(
        10_000,
        "the same for a command that failed: its ends and its errors tell more than its middle",
        low=1_000,
    )
    message_chars: int = setting(
        200_000,
        "all results of one message together: a quarter of a 200K window",
        low=1_000,
    )
    ceiling_chars: int = setting(
        400_000,
        "no result stays whole above this, whoever asks for more: half of a 200K window",
        low=1_000,
    )
    tools: str = setting(
        "",
        "limits in characters by tool, such as 'Bash=10000, mcp__db__*=80000'",
        form=r"|\s*[\w.*?-]+\s*=\s*[1-9][\d_]*\s*(,\s*[\w.*?-]+\s*=\s*[1-9][\d_]*\s*)*",
    )
    preview_bytes: int = setting(
        2_000, "how much of a spilled result is shown: enough to see what it is", low=200
    )
    failed_preview_bytes: int = setting(
        6_000, "the same for a command that failed, which is looked at more closely", low=200
    )
    error_bytes: int = setting(
        2_000, "lines of a command's output that look like errors, beside the preview", low=0
    )
    repeat_bytes: int = setting(
        256,
        "a result that was there before, byte for byte, is named instead from this size on; "
        "below, naming it costs as much",
        low=200,
    )
    file_bytes: int = setting(
        64 << 20, "a body larger than this is cut: nobody reads on so far", low=1 << 20
    )
    session_bytes: int = setting(
        1 << 30,
        "all bodies of a session together; past it the oldest go first",
        low=1 << 20,
        personal=True,
    )
    retention_days: int = setting(
        30,
        "bodies older than this are removed, as whole sessions are; 0 keeps all",
        low=0,
        high=36_500,
        personal=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearSettings:
    """When old tool results are cleared."""

    on: bool = setting(True, "clear old results of tools whose output can be had again")
    keep_results: int = setting(5, "the newest results are still being worked with", low=1)
    smallest_tokens: int = setting(
        200, "a shorter result stays: a line in its place would save next to nothing", low=0
    )
    also: str = setting(
        "",
        "further tools whose output can be had again, as 'mcp__db__query=fetch, Ask=search'",
        form=r"|\s*[^=,\s]+=(read|search|shell|fetch|write)(\s*,\s*[^=,\s]+=(read|search|shell|fetch|write))*\s*",
    )
    inputs: bool = setting(
        True, "clear long inputs of old writes and edits, too, where the text behind is sent anew"
    )
    thinking: bool = setting(
        True, "drop old thinking while the cache is dead, unless the model binds it to the prompt"
    )
    keep_thinking_turns: int = setting(
        1, "the last turn that thought is what the next one builds on", low=1
    )
    idle: bool = setting(True, "clear when the cache has died anyway, so that it costs nothing")
    idle_least_tokens: int = setting(
        2_000, "less is not worth what the model loses sight of, even for nothing", low=0
    )
    edits: bool = setting(True, "delete inside the provider's cache where the model declares it")
    edits_trigger_results: int = setting(
        12, "with five kept, every deletion takes at least seven results", low=2
    )
    server: bool = setting(
        False,
        "let the provider clear; where it does, its cut moves with every call and the cache with it",
    )
    server_trigger_tokens: int = setting(
        180_000, "from here on the provider clears, or from the warning line if that comes first"
    )
    server_target_tokens: int = setting(
        40_000, "and only if that can bring the prompt down to this", low=0
    )
    warm_share: float = setting(
        0.5,
        "of the auto line: below it nothing is cleared that is cached, as there is room for it",
        low=0.0,
        high=1.0,
    )
    paid: bool = setting(True, "clear when the calls to come save more than it costs")
    paid_least_tokens: int = setting(
        10_000, "a batch is worth a rewrite of the cache, a single result seldom is", low=0
    )
    stake_share: float = setting(
        1.0,
        "of what the session was billed: a rewrite may cost no more than this and what clearing has"
        " saved so far, so that a session which ends early is hardly dearer for it; 1 is no limit",
        low=0.0,
        high=1.0,
    )
    line_room: float = setting(
        0.3,
        "at the auto line, clear instead of compacting if that leaves this share of it free; with"
        " less the line is soon reached again, and every call until then reads a full window",
        low=0.0,
        high=1.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CollapseSettings:
    """When spans of finished work are shown as a line."""

    on: bool = setting(False, "fold spans instead of compacting; the two exclude each other")
    commit_ratio: float = setting(
        0.90, "of the window that may be filled: from here on spans are folded", low=0.1, high=1.0
    )
    write_ratio: float = setting(
        0.95, "if folding left this much, a fork writes lines for whole answers", low=0.1, high=1.0
    )
    target_ratio: float = setting(
        0.70,
        "fold down to this at once: every fold costs a rewrite of the cache",
        low=0.0,
        high=1.0,
    )
    least_tokens: int = setting(
        1_000, "a shorter span stays: its line costs about a tenth of this", low=0
    )
    line_chars: int = setting(400, "a line is to be read at a glance", low=80, high=4_000)
    write: bool = setting(True, "let a fork write lines; without it they are only counted up")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesSettings:
    """How notes are kept while a session runs, and when they stand for history."""

    on: bool = setting(True, "keep notes beside the work")
    model: bool = setting(
        True,
        "let a model add what needs judgement; off leaves what the log says, which costs nothing",
    )
    model_when: str = setting(
        "paying",
        "when it does: 'paying' is near the line and after a pause, where its notes save a summary;"
        " 'always' is with each update, which reads the whole context",
        form="paying|always",
    )
    near_ratio: float = setting(
        0.85,
        "of the auto line; from there a model's notes pay: what comes after them can stay word for"
        " word, so one update is enough",
        low=0.0,
        high=1.0,
    )
    paused_ratio: float = setting(
        0.6,
        "the same once work goes on after a pause: the next may end the session",
        low=0.0,
        high=1.0,
    )
    first_tokens: int = setting(
        10_000, "notes begin when the context is this full; before, there is little to note", low=0
    )
    growth_tokens: int = setting(
        15_000,
        "and go on whenever it has grown by this much: nine of ten turns add less, and each update"
        " is written to disk",
        low=1,
    )
    tool_calls: int = setting(
        3,
        "tools called since, unless the model is at rest: half-done steps are not worth noting",
        low=0,
    )
    section_tokens: int = setting(
        2_000,
        "of each section; past it the model is told to condense, and compacting cuts",
        low=100,
    )
    total_tokens: int = setting(12_000, "of all sections together", low=100)
    log_tokens: int = setting(
        800, "of what the engine writes into a section; the log has the rest", low=0
    )
    turns: int = setting(
        4,
        "answers a model may give for one update; one is enough unless an edit fails",
        low=1,
        high=20,
    )
    stand_in: str = setting(
        "model",
        "which notes stand for history before a summary is asked for: 'model' those a model wrote,"
        " 'always' also those the log alone tells, 'off' none",
        form="model|always|off",
    )
    wait_seconds: float = setting(15.0, "how long compacting waits for an update under way", low=0)
    stale_seconds: float = setting(
        60.0, "an update that has run this long is not waited for: it hangs", low=0
    )
    keep_tokens: int = setting(10_000, "of the latest messages stay word for word, at least", low=0)
    keep_messages: int = setting(5, "so many of them with text", low=0)
    keep_most_tokens: int = setting(
        40_000,
        "more is not kept for these reasons; what the notes do not cover yet stays anyway",
        low=0,
    )
    left_ratio: float = setting(
        0.85,
        "of the auto line, that may still be filled afterwards; notes that leave more are not fresh,"
        " and the line would be reached again at once",
        low=0.1,
        high=1.0,
    )
    ready_ratio: float = setting(
        0.6,
        "of the auto line; from there what stands for history is made ready with each update, so"
        " that nobody waits at the line",
        low=0.0,
        high=1.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    """How history becomes a summary."""

    on: bool = setting(True, "compact at all, by hand or by itself")
    reactive_only: bool = setting(
        False, "wait until the provider says the prompt is too long; uses more of the window"
    )
    model: bool = setting(
        True, "let a model write summaries; off makes digests, which cost nothing"
    )
    by_provider: bool = setting(
        False, "let the provider compact on its side where it can; ours keeps more and is readable"
    )
    failures: int = setting(
        3, "after this many in a row no model is asked by itself for a while", low=1, high=100
    )
    retry_seconds: float = setting(
        1_800.0, "until one is asked again: most outages are over by then", low=0
    )
    retry_compactions: int = setting(
        5, "or after this many made from the log: a summary is worth another try", low=1
    )
    rung_seconds: float = setting(
        300.0, "how long one way of having a summary written may take", low=1
    )
    ahead: bool = setting(True, "have the summary written in the background before it is needed")
    ahead_ratio: float = setting(
        0.9,
        "of the auto line; from there a summary is prepared while the work goes on",
        low=0.1,
        high=1.0,
    )
    thrash_turns: int = setting(
        3, "a window that is full again after so few answers was refilled by something", low=1
    )
    thrash_ratio: float = setting(
        0.1,
        "of the line; one that is reached again after so little was compacted to no avail",
        low=0.0,
        high=1.0,
    )
    thrash_times: int = setting(3, "how often in a row before that is looked into", low=1)
    words_tokens: int = setting(
        60_000,
        "the user's own messages stand whole in a summary up to this; then the oldest are shortened",
        low=1_000,
    )
    filled_ratio: float = setting(
        0.42,
        "of the line, at most, that is filled after a compaction: in a window of 32K that leaves room"
        " for fifteen answers of ordinary length until the next one",
        low=0.1,
        high=1.0,
    )
    restore_files: int = setting(5, "files read last that are shown again", low=0, high=100)
    restore_file_tokens: int = setting(5_000, "of each of them", low=100)
    restore_tokens: int = setting(50_000, "of all of them", low=0)
    skill_tokens: int = setting(5_000, "of each skill that was used", low=100)
    skills_tokens: int = setting(25_000, "of all of them", low=0)
    progress_seconds: float = setting(5.0, "how often it is said that it still runs", low=0.1)
