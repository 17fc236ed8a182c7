"""Forks: questions on a conversation's exact prefix, answered outside of its view."""

from longhold.core.turn.fork.asking import (
    AskFork,
    ForkEnd,
    ForkReply,
    ForkRequest,
    Permit,
    check_may_fork,
    deny_all,
    make_placeholders,
    mark_wanted,
)
from longhold.core.turn.fork.prefix import Prefix

__all__ = [
    "AskFork",
    "ForkEnd",
    "ForkReply",
    "ForkRequest",
    "Permit",
    "Prefix",
    "check_may_fork",
    "deny_all",
    "make_placeholders",
    "mark_wanted",
]
