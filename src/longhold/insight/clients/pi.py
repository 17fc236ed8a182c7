"""pi's extension: a status line, a search of the history, and what a compaction left out.

pi has no settings for commands. It loads TypeScript from its directory; ours calls this program.
"""

import time
from importlib.resources import files
from pathlib import Path

import msgspec

from longhold.core.log.entries import Replied
from longhold.errors import TranscriptError
from longhold.insight.clients.claude_code import (
    HOUR_SECONDS,
    SHORT_SECONDS,
    avoidable_part,
    session_report,
    thousands,
)
from longhold.insight.read_session import read_entries

MARK = "// longhold: "
"""How our file begins; another of its name is the user's."""
_PROGRAM = '["longhold"]'


def extension(program: str) -> str:
    source = (files("longhold.insight.clients") / "pi_extension.ts").read_text("utf-8")
    return source.replace(_PROGRAM, msgspec.json.encode(program.split()).decode(), 1)


def status_line(path: Path, now: float) -> str:
    """Describe a session's context, cache and money; it stays true until the next answer."""
    history = read_entries(path)
    answers = (entry for entry in reversed(history) if isinstance(entry, Replied))
    last = next((entry for entry in answers if entry.usage and entry.usage.prompt_tokens), None)
    if last is None or last.usage is None:
        raise TranscriptError(path, "has no answer with a count of tokens yet")
    until = last.at + (HOUR_SECONDS if last.usage.written_1h_tokens else SHORT_SECONDS)
    clock = time.strftime("%H:%M:%S", time.localtime(until))
    cache = f"cache warm until {clock}" if until > now else f"cache cold since {clock}"
    spent = session_report(path)
    parts = (
        f"context {thousands(last.usage.prompt_tokens)}",
        cache,
        f"${spent.total.estimated_usd:.2f}",
    )
    return " · ".join((*parts, *avoidable_part(spent)))
