"""A fast path for Claude Code's status line, with figures that the last full run stored. Claude
Code requests the line after each answer and every ten seconds, in every open session. A full run
loads the price tables and reads the session for avoidable costs, which takes ten times as long.
"""

import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from longhold.core.messages.usage import Usage, count_of, fields_of, usage_from_wire
from longhold.core.turn.status import Status

FOLDER = "statusline"
KEPT_SECONDS = 600.0
"""After this time everything is read again, because new calls may have had avoidable costs."""
TAIL_BYTES = 512 << 10  # bytes read from the end of a transcript for the last answer

_Fields = Mapping[str, Any]
_early: list[bytes] = []


def read_stdin() -> bytes:
    """Return the client's input, even if it was already read by the fast path."""
    return _early.pop() if _early else sys.stdin.buffer.read()


def kept_file(home: Path, path: Path) -> Path:
    return home / FOLDER / f"{path.name}.json"


def last_answer(path: Path) -> _Fields:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().split(b"\n")
    for line in reversed(lines):
        if b'"assistant"' not in line:
            continue
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            record = fields_of(msgspec.json.decode(line))
            is_answer = record.get("type") == "assistant" and not record.get("isSidechain")
            if is_answer and fields_of(fields_of(record.get("message")).get("usage")):
                return record
    return {}


def model_of(answer: _Fields) -> str:
    return str(fields_of(answer.get("message")).get("model") or "")


def usage_of(answer: _Fields) -> Usage:
    return usage_from_wire(fields_of(answer.get("message")).get("usage"))


def make_line(given: _Fields, answer: _Fields, kept: _Fields, now: float) -> str:
    """Render the line. A cold cache adds the price of rewriting the prompt."""
    window, usage = fields_of(given.get("context_window")), usage_of(answer)
    used = usage_from_wire(window.get("current_usage")).prompt_tokens or usage.prompt_tokens
    size, left = count_of(window.get("context_window_size")), None
    spent = fields_of(given.get("cost")).get("total_cost_usd")
    if usage.prompt_tokens:
        with suppress(ValueError, TypeError, OverflowError):
            at = datetime.fromisoformat(answer["timestamp"]).timestamp()
            lifetime = kept["lifetimes"]["1h" if usage.written_1h_tokens else "5m"]
            left = max(0.0, at + lifetime - now)
    status = Status(
        used_tokens=used,
        line_tokens=size if used else 0,
        percent_left=max(0, round((size - used) / size * 100)) if size else 0,
        cache_seconds=left,
        rewrite_usd=kept["write_usd"] * usage.prompt_tokens,
        usd=spent if isinstance(spent, int | float) else 0.0,
        avoidable_usd=kept["avoidable_usd"],
    )
    return status.line()


def known_line(text: bytes, home: Path, now: float) -> str | None:
    """Return the line, or None if the last full run is too old or had another session or model."""
    try:
        given = msgspec.json.decode(text)
        path = Path(str(given.get("transcript_path")))
        kept = msgspec.json.decode(kept_file(home.expanduser(), path).read_bytes())
        answer = last_answer(path)
        is_known = [kept["path"], kept["model"]] == [str(path), model_of(answer)]
        if not is_known or not 0 <= now - kept["at"] < KEPT_SECONDS:
            return None
        return make_line(given, answer, kept, now)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError):
        return None


def say_known_line() -> bool:
    home = Path(os.environ.get("LONGHOLD_HOME") or "~/.longhold")
    text = sys.stdin.buffer.read()
    line = known_line(text, home, time.time())
    if line is None:
        _early.append(text)
        return False
    sys.stdout.write(line + "\n")
    return True
