"""What is kept: the log and how much of it is shown at once, memories and when they are consolidated."""

from dataclasses import dataclass

from longhold.core.settings.model import NOT_STAGED
from longhold.core.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    retention_days: int = setting(
        30,
        "sessions untouched for longer are removed by `sessions --prune`, in every project; 0 keeps"
        " all",
        low=0,
        high=36_500,
        personal=True,
    )
    body_limit_bytes: int = setting(
        1 << 20, "a result larger than this lies in a file beside the log", low=1_024
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    page_chars: int = setting(
        20_000, "a page for the model: about 5,000 tokens, a fortieth of a 200K window", low=500
    )
    hits: int = setting(12, "records listed at once; the best come first", low=1, high=200)
    snippet_chars: int = setting(200, "enough of a line to know it by", low=20, high=2_000)
    index_limit_chars: int = setting(
        8 << 20, "of a longer body only the beginning is searched by words", low=1_024
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    on: bool = setting(True, "remember and recall")
    directory: str = setting(
        "",
        "where this user's memories lie; '' is beside the project's sessions. Never a project's to"
        " say: it could point anywhere",
        form=r"|~?/.*",
        personal=True,
    )
    consent: str = setting(
        "write",
        "'write' saves at once and says so; 'ask' puts new memories into the inbox first",
        form="write|ask",
        personal=True,
    )
    extract: str = setting(
        "chat",
        "look for what is worth remembering after each answer: in a 'chat', 'always', or 'off'. A"
        " single run ends with its answer, and would have to wait",
        form="off|chat|always",
        personal=True,
    )
    extract_turns: int = setting(
        5, "answers of the model that looks: one to read, one to write, and some to mend", low=1
    )
    extract_every: int = setting(1, "ends of the agent's work before it is looked again", low=1)
    drain_seconds: float = setting(
        60.0, "at the end of a session, for what is still being written down", low=0
    )
    busy_seconds: float = setting(
        5.0,
        "while another process writes the store: a commit takes milliseconds, so a longer wait means"
        " that something is stuck",
        low=0,
    )
    team: str = setting(
        "read",
        "memories in the repository itself: 'off' or 'read'. Writing needs no setting: `longhold"
        " memory share FILE` puts one there",
        form="off|read",
    )
    file_bytes: int = setting(
        65_536, "a memory is a page, not an archive; sixteen times what recall shows", low=1_024
    )
    index_lines: int = setting(200, "the index is in every session's prompt", low=10)
    index_bytes: int = setting(25_000, "about 6,000 tokens, 3 % of a 200K window", low=1_000)
    index_line_chars: int = setting(
        150, "a line says what a memory is about, not what it says", low=150
    )
    recall: bool = setting(True, "show memories that fit what the user asks")
    recall_model: str = setting(
        "",
        "who chooses what fits: '' is by words, free and in milliseconds; a model's name costs a"
        " call for each of the user's messages",
        form=NOT_STAGED,
        personal=True,
    )
    recall_files: int = setting(5, "more would be noise beside the task", low=1, high=50)
    recall_candidates: int = setting(
        200, "descriptions a model chooses from; the newest", low=1, high=10_000
    )
    recall_file_bytes: int = setting(4_096, "shown of one memory, about 1,000 tokens", low=200)
    recall_file_lines: int = setting(200, "shown of one memory", low=5)
    recall_session_bytes: int = setting(
        61_440,
        "of memories in the view at once, about 15,000 tokens: then recall rests until some leave it",
        low=1_000,
    )
    verify_after_days: int = setting(
        1, "an older memory is shown with a warning to check it first", low=0
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
    by: str = setting(
        "model",
        "'model' lets the session's model dream where it has one, 'engine' does what is safe"
        " without",
        form="model|engine",
        personal=True,
    )
    turns: int = setting(
        24, "answers of a model that dreams: four phases, and half a dozen looks in each", low=1
    )
    after_hours: float = setting(24.0, "once a day is enough for what changes in days", low=0)
    retry_minutes: float = setting(
        60.0, "after a dream that failed or was killed: long enough for what broke to pass", low=0
    )
    scan_minutes: float = setting(10.0, "sessions are not counted again before this", low=0)
    sessions: int = setting(5, "sessions touched since the last dream before another pays", low=0)
    stale_minutes: float = setting(
        60.0, "a lock this old whose process is gone belongs to nobody", low=1
    )
    alike_share: float = setting(
        0.9, "shingles two memories share before one may stand for both", low=0.5, high=1
    )
    removed_share: float = setting(
        0.3, "of all memories one dream may take away; a larger loss is a mistake", low=0, high=1
    )
    removed_floor: int = setting(
        3, "a few may always go, or a small store could never lose a duplicate", low=0
    )
    daybook_chars: int = setting(
        12_000,
        "of what the user said since the last dream, listed for the model: about 3,000 tokens, 60"
        " messages",
        low=0,
    )
    steps_shown: int = setting(
        30, "of what a dream does, kept to be looked at while it runs", low=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    """How much of a session is in its page (`longhold inspect --html`); `serve` opens the rest."""

    text_bytes: int = setting(
        2_000_000,
        "texts of all messages together: the page of the longest session stays under 3 MB",
        low=10_000,
    )
    message_chars: int = setting(
        20_000, "of one message; who reads on opens it with `longhold serve`", low=200
    )
    summary_chars: int = setting(
        60_000, "of a summary: room for the longest, about 15,000 tokens", low=1_000
    )
    sessions: int = setting(
        20, "pages of one directory in one file; they share the bytes", low=1, high=1_000
    )
    follow_seconds: float = setting(
        1.0, "how often `serve` looks whether a session has grown", low=0.05
    )
    follow_share: float = setting(
        0.2, "of one core, for reading a session again that grows", low=0.01, high=1
    )
