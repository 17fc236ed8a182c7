"""Forks: extra words on a conversation's exact prefix, answered beside it.

`Forks(...).ask(ForkRequest(...))` gives a `ForkReply`; nothing a fork says or does enters its
parent's view. `prefix` holds what is shared and how it is put into messages, `asking` what goes
in and comes out, `run` does it.
"""

from holdfast.turn.fork.asking import (
    AskFork,
    ForkEnd,
    ForkReply,
    ForkRequest,
    Permit,
    check_may_fork,
)
from holdfast.turn.fork.prefix import Prefix
from holdfast.turn.fork.run import Forks
from holdfast.turn.fork.tools import out_of_reach

__all__ = [
    "AskFork",
    "ForkEnd",
    "ForkReply",
    "ForkRequest",
    "Forks",
    "Permit",
    "Prefix",
    "check_may_fork",
    "out_of_reach",
]
