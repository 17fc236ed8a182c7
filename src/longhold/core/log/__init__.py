"""A session's append-only log and the files stored with it."""

from longhold.core.log.log import Log, branch_log, write_log
from longhold.core.log.protocol import OpenLog
from longhold.core.log.reading import VERSION, Damage, Header, Loaded, load, load_header

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
