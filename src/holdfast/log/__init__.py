"""The log of a session, append-only, and what lies beside it on disk."""

from holdfast.log.log import (
    VERSION,
    Damage,
    Header,
    Loaded,
    Log,
    branch_log,
    load,
    load_header,
    write_log,
)

__all__ = [
    "VERSION",
    "Damage",
    "Header",
    "Loaded",
    "Log",
    "branch_log",
    "load",
    "load_header",
    "write_log",
]
