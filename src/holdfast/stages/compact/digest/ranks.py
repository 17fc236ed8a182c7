"""The order in which room is given to what could be told.

Read from the top: with the least room only the first is told, with more the next, and so on.
Short forms of all that matters stand above the full forms of anything. Within one rank the
newer comes first.
"""

from enum import IntEnum, auto


class Rank(IntEnum):
    """When a form is bought."""

    LAST_WORDS = auto()
    FIRST_WORDS = auto()
    """How each message begins, so that none is missing even where most of it is."""
    NEXT_STEP = auto()
    RUNNING = auto()
    WORDS = auto()
    CHANGED_FILES = auto()
    OPEN_TODOS = auto()
    LAST_ANSWER = auto()
    WHOLE_WORDS = auto()
    VERDICTS = auto()
    COMMITS = auto()
    BRIEF_ANSWERS = auto()
    """What came of each turn, in a sentence or two."""
    OLD_FIRST_WORDS = auto()
    """How messages begin that were compacted before."""
    READ_FILES = auto()
    OPEN_ERRORS = auto()
    """What went wrong lately and was not seen to work since."""
    CONCLUSIONS = auto()
    """Causes and choices, in the agent's own words."""
    ANSWERS = auto()
    RECENT_ERRORS = auto()
    TOUCHED = auto()
    OLD_WORDS = auto()
    EARLIER = auto()
    """A summary of history that nothing else tells."""
    PASTES = auto()
    CURRENT_WORK = auto()
    OUTLINES = auto()
    """Plans and specifications in brief."""
    LONG_LAST_ANSWER = auto()
    DEEDS = auto()
    RECENT_COMMANDS = auto()
    RECENT_OUTCOMES = auto()
    CURRENT_CODE = auto()
    REQUEST = auto()
    REPORTS = auto()
    REMARKS = auto()
    LONG_ANSWERS = auto()
    LONG_OUTLINES = auto()
    LONG_ERRORS = auto()
    PUT_IN = auto()
    SEARCHES = auto()
    DONE_TODOS = auto()
    OLD_ERRORS = auto()
    OLD_COMMANDS = auto()
    TOLD_REPORTS = auto()
    REASONS = auto()
    OLD_TURNS = auto()
    """What was done about messages that were compacted before."""
    WHOLE_ANSWERS = auto()
    WHOLE_REPORTS = auto()
    OLD_OUTCOMES = auto()
    OLD_CODE = auto()
