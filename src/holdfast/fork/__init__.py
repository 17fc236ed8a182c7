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
)
from holdfast.fork.prefix import Prefix
from holdfast.fork.run import Forks
from holdfast.fork.tools import out_of_reach

__all__ = [
    "Ask",
    "ForkEnd",
    "ForkReply",
    "ForkRequest",
    "Forks",
    "Permit",
    "Prefix",
    "check_may_fork",
    "out_of_reach",
]
