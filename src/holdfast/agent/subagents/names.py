"""Names of agents, teams and worktrees: one word that is safe wherever it ends up.

A name becomes a file's name, a branch and the sender of mail, so it may lead nowhere, break no
line and pass for nobody else. Ids of agents and requests obey the same form.
"""

import re

from holdfast.errors import ConfigError

NAME_CHARS = 64
"""Long enough to say what an agent is for, short enough for a file with a suffix."""
PATTERN = r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z"
"""What a name may look like, as an expression for values that come from elsewhere."""
SESSION_PATTERN = r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\Z"
"""What a session's id may look like."""
MAIN = "main"
"""The agent the user talks to."""
LEAD = "lead"
"""The same one, among its teammates."""
RESERVED = frozenset(
    {"all", "assistant", "holdfast", "human", LEAD, MAIN, "system", "tool", "user"}
)
"""Names that mean somebody already; an agent called like them could speak for them."""


def is_name(text: str) -> bool:
    """Say whether a text has the form of a name."""
    return re.match(PATTERN, text) is not None


def is_session(text: str) -> bool:
    """Say whether a text has the form of a session's id."""
    return re.match(SESSION_PATTERN, text) is not None


def checked_name(text: str, what: str) -> str:
    """Give back a name that may be chosen for something, or say why it may not."""
    if not is_name(text):
        raise ConfigError(
            f"{text!r} is no name for {what}; use up to {NAME_CHARS} letters, digits, '-' and '_'"
        )
    if text.casefold() in RESERVED:
        raise ConfigError(f"{text!r} already means somebody else; choose another name for {what}")
    return text
