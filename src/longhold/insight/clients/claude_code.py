"""Claude Code's status line and compaction hooks. Both ignore unreadable input and never fail."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from longhold.core.log.entries import AnyEntry, Compacted
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import clean_line
from longhold.core.messages.usage import fields_of
from longhold.core.models.prices import cost
from longhold.core.request.lifetime import lifetime_seconds
from longhold.core.settings import home
from longhold.core.settings.private_files import write_private
from longhold.errors import LongholdError
from longhold.insight.clients import known_status
from longhold.insight.cost import begins_turn, words_of
from longhold.insight.read_session import read_entries
from longhold.insight.report import SpendingReport, make_report
from longhold.insight.session_files import find_sessions
from longhold.insight.session_index import open_index
from longhold.insight.timeline import follow_context

PRICED_TOKENS = 100_000  # almost all prompts have the token price of a prompt of this size
REFRESHED_BYTES = 16 << 20
"""Reading a longer session again takes a second, so the last report is used."""
KEPT_CHARS = 6_000  # about 1,500 tokens, less than 1 % of a window of 200K tokens
JUST_NOW = 8  # a compaction within this many entries of the end is the current one
WORDS_CHARS, NAMES = 400, 60  # maximum characters per user message, and maximum number of names
KEEP = "Later work refers to what follows, so the summary must keep it word for word."
LOST = (
    "Kept by Longhold from before the compaction, because the summary does not say it. It is a"
    " record, not a new request; the whole history can be searched with search_history."
)


def status_line(given: Mapping[str, Any], now: float) -> str:
    path = Path(str(given.get("transcript_path") or ""))
    answer = known_status.last_answer(path) if path.is_file() else {}
    model = known_status.model_of(answer)
    paid = cost(model, write_5m_tokens=PRICED_TOKENS)
    kept = {
        "at": now,
        "path": str(path),
        "model": model,
        "lifetimes": {name: lifetime_seconds(model, name) for name in ("5m", "1h")},
        "write_usd": paid.total / PRICED_TOKENS if paid else 0.0,
        "avoidable_usd": session_report(path).avoidable_usd if path.is_file() else 0.0,
    }
    if path.is_file():
        with suppress(OSError, LongholdError):
            write_private(known_status.kept_file(home(), path), msgspec.json.encode(kept))
    return known_status.make_line(given, answer, kept, now)


def session_report(path: Path) -> SpendingReport:
    with suppress(LongholdError, OSError), open_index() as index:
        files = find_sessions([path])
        if files and files[0].bytes <= REFRESHED_BYTES:
            index.refresh(files, processes=1)
        return make_report(index, [path])
    return SpendingReport()


def keep(given: Mapping[str, Any]) -> str:
    """Return the facts to keep before a compaction, or the facts that the summary lost after it."""
    with suppress(LongholdError, OSError):
        history = read_entries(Path(str(given.get("transcript_path") or "")))
        is_over = given.get("hook_event_name") != "PreCompact"
        names, words = _list_at_stake(history, is_over=is_over)
        if names or words:
            return _write(LOST if is_over else KEEP, names, words)
    return ""


def _list_at_stake(history: Sequence[AnyEntry], *, is_over: bool) -> tuple[list[str], list[str]]:
    """List names and user messages that the next compaction would remove or the last one lost."""
    if not history:
        return [], []
    is_written = is_over and any(isinstance(entry, Compacted) for entry in history[-JUST_NOW:])
    end = history[-1].n
    ahead = Compacted(n=end + 1, first=history[0].n, last=end, summary=())
    found = follow_context([*history, *([] if is_written else [ahead])]).boundaries
    last = found[-1]
    typed = {entry.n: words_of(entry) for entry in history if begins_turn(entry)}
    words = [typed[n] for n in last.words if n in typed and n not in last.kept_words]
    return [name for name, _ in last.lost][:NAMES], words[::-1]


def _write(intro: str, names: Sequence[str], words: Sequence[str]) -> str:
    parts = [intro]
    if names:
        parts.append("Names in use: " + ", ".join(clean_line(name, 200) for name in names))
    left = KEPT_CHARS - sum(map(len, parts))
    said = []
    for text in words:
        line = f"- {clean_line(mask_secrets(text), WORDS_CHARS)}"
        left -= len(line) + 1
        if left < 0:
            break
        said.append(line)
    if said:
        parts += ["The user's own words, the latest first:", *said]
    return mask_secrets("\n".join(parts))


def read_input(text: bytes) -> Mapping[str, Any]:
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return fields_of(msgspec.json.decode(text))
    return {}
