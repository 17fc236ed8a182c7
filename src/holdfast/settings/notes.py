"""How notes are kept while a session runs, and when they stand for history."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesSettings:
    """How notes are kept while a session runs, and when they stand for history."""

    on: bool = setting(True, "keep notes beside the work")
    model: bool = setting(
        True,
        "let a model add what needs judgement; off leaves what the log says, which costs nothing",
    )
    first_tokens: int = setting(
        10_000, "notes begin when the context is this full; before, there is little to note", low=0
    )
    growth_tokens: int = setting(
        5_000, "and go on whenever it has grown by this much; each update reads all of it", low=1
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
