"""pi's extension: a status line, a history search, and facts that a compaction left out. pi has no
settings for commands, so it loads a TypeScript file that calls this program.
"""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from longhold.core.log.entries import Replied
from longhold.core.models.capabilities import capabilities
from longhold.core.request.lifetime import lifetime_seconds, written_lifetime
from longhold.core.turn.status import Status
from longhold.core.view.window import infer_window
from longhold.errors import TranscriptError
from longhold.insight.clients.claude_code import session_report
from longhold.insight.read_session import read_entries

MARK = "// longhold: "
"""The first characters of Longhold's extension. A file without them belongs to the user."""
_PROGRAM = '["longhold"]'


def extension(program: Sequence[str]) -> str:
    source = (files("longhold.insight.clients") / "pi_extension.ts").read_text("utf-8")
    return source.replace(_PROGRAM, msgspec.json.encode(program).decode(), 1)


def status_line(path: Path, now: float) -> str:
    """Render a status line that stays correct until pi redraws it after the next answer."""
    history = read_entries(path)
    answers = (entry for entry in reversed(history) if isinstance(entry, Replied))
    last = next((entry for entry in answers if entry.usage and entry.usage.prompt_tokens), None)
    if last is None or last.usage is None:
        raise TranscriptError(path, "contains no answer with a token count yet")
    until = last.at + lifetime_seconds(last.model, written_lifetime(last.usage))
    spent, used = session_report(path), last.usage.prompt_tokens
    limit = infer_window(history) or capabilities(last.model).window_tokens
    status = Status(
        used_tokens=used,
        line_tokens=limit,
        percent_left=max(0, round((limit - used) / limit * 100)),
        cache_seconds=max(0.0, until - now),
        usd=spent.total.estimated_usd,
        avoidable_usd=spent.total.lost_usd,
    )
    return status.line(until=until)
