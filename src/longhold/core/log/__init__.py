"""A session's append-only log and the files stored with it."""
# mypy: implicit-reexport
# ruff: noqa: F401

from longhold.core.log.log import Log, branch_log, write_log
from longhold.core.log.protocol import OpenLog
from longhold.core.log.reading import VERSION, Damage, Header, Loaded, load, load_header
