"""Holdfast keeps an LLM agent working past its context window without losing anything.

The log is what happened, the view is what the model sees: a fold over the log. These are the
names a program needs; everything else is found by guessing its module.
"""

from holdfast.errors import HoldfastError
from holdfast.log import Header, Log, load
from holdfast.log.store import FileStore
from holdfast.messages.rules import violations
from holdfast.reports.context import Context, describe
from holdfast.session import Session
from holdfast.session.compact_messages import CompactedMessages, compact
from holdfast.session.sync import sync
from holdfast.transcripts.formats import open_transcript, read_lines
from holdfast.view import View, fold
from holdfast.view.gauge import Follower, replay
from holdfast.view.tokens import Gauge
from holdfast.view.window import Window, window_for

__all__ = [
    "CompactedMessages",
    "Context",
    "FileStore",
    "Follower",
    "Gauge",
    "Header",
    "HoldfastError",
    "Log",
    "Session",
    "View",
    "Window",
    "compact",
    "describe",
    "fold",
    "load",
    "open_transcript",
    "read_lines",
    "replay",
    "sync",
    "violations",
    "window_for",
]
