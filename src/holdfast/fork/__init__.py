"""Forks: extra words on a conversation's exact prefix, answered beside it.

`Forks(...).ask(ForkRequest(...))` gives a `ForkReply`; nothing a fork says or does enters its
parent's view. `prefix` holds what is shared and how it is put into messages, `asking` what goes
in and comes out, `run` does it.
"""

from holdfast.fork.asking import (
    Ask,
    ForkEnd,
    ForkReply,
    ForkRequest,
    Permit,
    check_may_fork,
    deny_all,
)
from holdfast.fork.prefix import STARTED, Prefix, answered_alike, joined
from holdfast.fork.run import Forks, Parent
from holdfast.fork.tools import out_of_reach

__all__ = [
    "STARTED",
    "Ask",
    "ForkEnd",
    "ForkReply",
    "ForkRequest",
    "Forks",
    "Parent",
    "Permit",
    "Prefix",
    "answered_alike",
    "check_may_fork",
    "deny_all",
    "joined",
    "out_of_reach",
]
