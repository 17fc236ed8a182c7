"""Holdfast keeps an LLM agent working past its context window without losing anything.

The log is what happened, the view is what the model sees: a fold over the log. These are the
names a program needs; everything else is found by guessing its module.
"""

from holdfast.bridge import sync
from holdfast.context import Context, describe
from holdfast.errors import HoldfastError
from holdfast.gauge import Follower, replay
from holdfast.log import Header, Log, load
from holdfast.message_lists import CompactedMessages, compact
from holdfast.rules import violations
from holdfast.session import Session
from holdfast.store import FileStore
from holdfast.tokens import Gauge
from holdfast.transcripts.formats import open_transcript, read_lines
from holdfast.view import View, fold
from holdfast.window import Window, window_for

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
