"""Settings of the history: log, stages in the order they run, memories, pages."""

from dataclasses import dataclass

from longhold.core.settings.setting import NOT_STAGED, personal, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    retention_days: int = personal(
        30,
        "sessions untouched for longer are removed by `sessions --prune`, in every project; 0 keeps"
        " all",
        low=0,
        high=36_500,
    )
    body_limit_bytes: int = setting(
        1 << 20, "a result larger than this lies in a file beside the log", low=1_024
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    page_chars: int = setting(
        20_000, "a page for the model: about 5,000 tokens, a fortieth of a 200K window", low=500
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    on: bool = setting(True, "remember and recall")
    directory: str = personal(
        "",
        "where this user's memories lie; '' is beside the project's sessions. Never a project's to"
        " say: it could point anywhere",
        form=r"|~?/.*",
    )
    consent: str = personal(
        "write",
        "'write' saves at once and says so; 'ask' puts new memories into the inbox first",
        form="write|ask",
    )
    extract: str = personal(
        "chat",
        "look for what is worth remembering after each answer: in a 'chat', 'always', or 'off'. A"
        " single run ends with its answer, and would have to wait",
        form="off|chat|always",
    )
    extract_every: int = setting(1, "ends of the agent's work before it is looked again", low=1)
    drain_seconds: float = setting(
        60.0, "at the end of a session, for what is still being written down", low=0
    )
    team: str = setting(
        "read",
        "memories in the repository itself: 'off' or 'read'. Writing needs no setting: `longhold"
        " memory share FILE` puts one there",
        form="off|read",
    )
    index_bytes: int = setting(25_000, "about 6,000 tokens, 3 % of a 200K window", low=1_000)
    recall: bool = setting(True, "show memories that fit what the user asks")
    recall_model: str = personal(
        "",
        "who chooses what fits: '' is by words, free and in milliseconds; a model's name costs a"
        " call for each of the user's messages",
        form=NOT_STAGED,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamSettings:
    on: bool = setting(
        True, "consolidate memories now and then, whether or not sessions are searched for new ones"
    )
    where: str = setting(
        "chat",
        "which sessions do it by themselves: a 'chat', or 'always'. A single run ends with its"
        " answer, and would have to wait",
        form="chat|always",
    )
    by: str = personal(
        "model",
        "'model' lets the session's model dream where it has one, 'engine' does what is safe"
        " without",
        form="model|engine",
    )
    after_hours: float = setting(24.0, "once a day is enough for what changes in days", low=0)
    sessions: int = setting(5, "sessions touched since the last dream before another pays", low=0)
    removed_share: float = setting(
        0.3, "of all memories one dream may take away; a larger loss is a mistake", low=0, high=1
    )
    removed_floor: int = setting(
        3, "a few may always go, or a small store could never lose a duplicate", low=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    text_bytes: int = setting(
        2_000_000,
        "texts of all messages together: the page of the longest session stays under 3 MB",
        low=10_000,
    )
    sessions: int = setting(
        20, "pages of one directory in one file; they share the bytes", low=1, high=1_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillSettings:
    on: bool = setting(True, "put results that are over their budget on disk")
    result_chars: int = setting(
        50_000,
        "longer results are spilled: 12,000 tokens, a sixteenth of a 200K window",
        low=1_000,
    )
    message_chars: int = setting(
        200_000,
        "all results of one message together: a quarter of a 200K window",
        low=1_000,
    )
    tools: str = setting(
        "",
        "limits in characters by tool, such as 'Bash=10000, mcp__db__*=80000'",
        form=r"|\s*[\w.*?-]+\s*=\s*[1-9][\d_]*\s*(,\s*[\w.*?-]+\s*=\s*[1-9][\d_]*\s*)*",
    )
    session_bytes: int = personal(
        1 << 30, "all bodies of a session together; past it the oldest go first", low=1 << 20
    )
    retention_days: int = personal(
        30,
        "bodies older than this are removed, as whole sessions are; 0 keeps all",
        low=0,
        high=36_500,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearSettings:
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
    idle: bool = setting(True, "clear when the cache has died anyway, so that it costs nothing")
    edits: bool = setting(True, "delete inside the provider's cache where the model declares it")
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
    on: bool = setting(False, "fold spans instead of compacting; the two exclude each other")
    target_ratio: float = setting(
        0.70,
        "fold down to this at once: every fold costs a rewrite of the cache",
        low=0.0,
        high=1.0,
    )
    write: bool = setting(True, "let a fork write lines; without it they are only counted up")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesSettings:
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
    first_tokens: int = setting(
        10_000, "notes begin when the context is this full; before, there is little to note", low=0
    )
    growth_tokens: int = setting(
        15_000,
        "and go on whenever it has grown by this much: nine of ten turns add less, and each update"
        " is written to disk",
        low=1,
    )
    stand_in: str = setting(
        "model",
        "which notes stand for history before a summary is asked for: 'model' those a model wrote,"
        " 'always' also those the log alone tells, 'off' none",
        form="model|always|off",
    )
    keep_tokens: int = setting(10_000, "of the latest messages stay word for word, at least", low=0)
    keep_messages: int = setting(5, "so many of them with text", low=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
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
    rung_seconds: float = setting(
        300.0, "how long one way of having a summary written may take", low=1
    )
    ahead: bool = setting(True, "have the summary written in the background before it is needed")
    restore_files: int = setting(5, "files read last that are shown again", low=0, high=100)
    restore_file_tokens: int = setting(5_000, "of each of them", low=100)
    restore_tokens: int = setting(50_000, "of all of them", low=0)
