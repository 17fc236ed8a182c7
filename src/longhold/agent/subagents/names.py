"""Names of agents and worktrees. They become file names, branches and mail senders."""

import re

from longhold.errors import ConfigError

NAME_CHARS = 64
PATTERN = r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z"
SESSION_PATTERN = r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\Z"
MAIN = "main"
"""The agent that the user talks to. It leads the teammates."""
RESERVED = frozenset(
    {"all", "assistant", "longhold", "human", "lead", MAIN, "system", "tool", "user"}
)
"""Names that an agent could use to impersonate someone."""


def is_name(text: str) -> bool:
    return re.match(PATTERN, text) is not None


def is_session(text: str) -> bool:
    return re.match(SESSION_PATTERN, text) is not None


def check_agent_name(text: str, what: str) -> str:
    if not is_name(text):
        raise ConfigError(
            f"{text!r} cannot name {what}; use up to {NAME_CHARS} letters, digits, '-' and '_'"
        )
    if text.casefold() in RESERVED:
        raise ConfigError(f"{text!r} is reserved; choose another name for {what}")
    return text
