"""The log of a session, append-only, and what lies beside it on disk."""

from holdfast.log.log import Log, branch_log, write_log
from holdfast.log.protocol import OpenLog
from holdfast.log.reading import VERSION, Damage, Header, Loaded, load, load_header

__all__ = [
    "VERSION",
    "Damage",
    "Header",
    "Loaded",
    "Log",
    "OpenLog",
    "branch_log",
    "load",
    "load_header",
    "write_log",
]
