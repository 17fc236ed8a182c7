"""Shorten text, make it safe to print, and format numbers for people.

Untrusted text passes through `clean_text`, `clean_document` or `clean_line` before it is printed.
It passes through `quote_lines` or `quote_rest` before a model reads it in Longhold's own text.
"""

import re
import time
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence

CUT = "…"

SAID_CHARS = 76

LEAST_SHARE = 0.5  # if a cut at a sentence end keeps less than this share, cut between words

_ENDS = re.compile(r"(?<=[.!?])[\"'`)\]*_]*(?=\s)|\n")
_LIST_NUMBER = re.compile(r"(?:[#>*-]+ *)?(?:\*\*)?\d{1,2}[.)]")
_CODE = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_BLANK_LINES = re.compile(r"\n\s*\n+")


def one_line(text: str) -> str:
    return " ".join(text.split())


def remove_blank_lines(text: str) -> str:
    return _BLANK_LINES.sub("\n", text.strip())


def without_code(text: str) -> str:
    return remove_blank_lines(_CODE.sub(f"[code {CUT}]", text))


def clean_text(text: str, *, keep: str = "", instead: str = " ") -> str:
    """Replace characters that control a terminal or reorder a line, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else instead for char in text)


def clean_document(text: str, *, instead: str = " ") -> str:
    return clean_text(text, keep="\n\t", instead=instead)


def clean_line(text: str, chars: int = SAID_CHARS) -> str:
    return shorten(one_line(clean_text(text)), chars)


BAR = "|"  # begins every quoted line, unlike Longhold's own lines
_FRAMES = re.compile(
    r"<(?=\s*/?\s*(?:agent|instructions|mail|memory|memories|(?:system-)?reminder)\b)",
    re.IGNORECASE,
)


def quote_lines(text: str) -> list[str]:
    return [f"{BAR} {strip_hidden(line)}" for line in text.splitlines() or [""]]


def quote_rest(text: str) -> str:
    """Quote every line but the first and drop blank lines. Repeating this changes nothing."""
    first, *rest = text.splitlines() or [""]
    lines = (strip_hidden(line).rstrip() for line in rest)
    barred = (line if line.startswith(BAR) else f"{BAR} {line}" for line in lines if line)
    return "\n".join((strip_hidden(first), *barred))


def strip_hidden(line: str) -> str:
    """Drop characters that could hide, reverse or end a line. Escape Longhold's tags."""
    if not line.replace("\t", " ").isprintable():
        line = "".join(char for char in line if char == "\t" or not _is_hidden(char))
    return escape_frames(line)


def escape_frames(text: str) -> str:
    return _FRAMES.sub("&lt;", text) if "<" in text else text


def _is_hidden(char: str) -> bool:
    is_format = unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    return is_format and char not in "\u200c\u200d"  # joiners belong to scripts and emoji


def shorten(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 1]}{CUT}"


def shorten_path(path: str, chars: int) -> str:
    """Keep the end of a path, because it is more specific than the start."""
    return path if len(path) <= chars else f"{CUT}{path[1 - chars :]}"


def cut(text: str, chars: int) -> str:
    """Cut at the end of a sentence or line, so that pairs such as `id: thing` stay together."""
    text = text.strip()
    if len(text) <= chars:
        return text
    kept = _cut_at_break(text, max(chars - len(CUT) - 1, 1))
    return f"{kept} {CUT}"


def head_and_tail(text: str, chars: int, pointer: str) -> str:
    text = text.strip("\n")
    if len(text) <= chars:
        return text
    head = _cut_at_break(text, chars * 2 // 3)
    tail = _from(text, chars - chars * 2 // 3)
    missing = len(text) - len(head) - len(tail)
    where = f", all in {pointer}" if pointer else ""
    return f"{head}\n[{CUT} {missing:,} characters left out{where} {CUT}]\n{tail}"


def sentences(text: str) -> list[str]:
    parts, start = [], 0
    for end in _ENDS.finditer(text):
        part = text[start : end.end()].strip()
        if _LIST_NUMBER.fullmatch(part):  # a list number belongs to the next part
            continue
        parts.append(part)
        start = end.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def outline(text: str, chars: int) -> str:
    kept: list[str] = []
    length, in_code, after_break = 0, False, True
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("```"):
            in_code = not in_code
        elif not in_code and stripped and not set(stripped) <= set("-=*_|: "):
            shown = _outline_line(stripped, after_break)
            if shown and length + len(shown) > chars:
                return "\n".join([*kept, CUT])
            if shown:
                kept.append(shown)
                length += len(shown) + 1
        after_break = not stripped
    return "\n".join(kept)


def _outline_line(line: str, after_break: bool) -> str:
    if line[0] in "#-*+|>" or line[:2].rstrip(".)").isdigit():
        return line
    return sentences(line)[0] if after_break else ""


def first_bytes(text: str, limit_bytes: int) -> str:
    return text[:limit_bytes].encode("utf-8", "replace")[:limit_bytes].decode("utf-8", "ignore")


def count_fitting_lines(lines: Sequence[str], budget: int, count: Callable[[str], int]) -> int:
    sizes = range(1, len(lines) + 1)
    return bisect_right(sizes, budget, key=lambda n: count("\n".join(lines[:n])))


def list_some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def pluralize(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def tokens(count: float) -> str:
    if count < 0:
        return f"-{tokens(-count)}"
    if count < 1_000:
        return f"{count:.0f}"
    if count < 999_500:
        return f"{count / 1_000:.1f}K"
    if count < 999_500_000:
        return f"{count / 1_000_000:.2f}M"
    return f"{count / 1_000_000_000:.1f}B"


def dollars(usd: float) -> str:
    if usd < 0:
        return f"-{dollars(-usd)}"
    if usd >= 99.995:
        return f"${usd:,.0f}"
    return "under $0.01" if 0 < usd < 0.005 else f"${usd:.2f}"


def exact_dollars(usd: float) -> str:
    return f"${usd:.2f}" if abs(usd) >= 1 else f"${usd:.4f}"


def percent(part: float, whole: float) -> str:
    return f"{part / whole:.0%}".replace("%", " %") if whole else "0 %"


def human_size(count: float) -> str:
    if count < 1_000:
        return f"{count:.0f} bytes"
    for unit in ("KB", "MB"):
        count /= 1_000
        if count < 1_000:
            return f"{count:.1f} {unit}"
    return f"{count / 1_000:.1f} GB"


def ago(then: float, now: float | None = None) -> str:
    seconds = max(0.0, (now or time.time()) - then)
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if count := int(seconds // length):
            return f"{pluralize(count, unit)} ago"
    return "just now"


def bar(share: float, width: int = 24) -> str:
    full, rest = divmod(round(max(0.0, min(1.0, share)) * width * 8), 8)
    drawn = "█" * full + ("▏▎▍▌▋▊▉"[rest - 1] if rest else "")
    return drawn.ljust(width)


def byte_count(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _cut_at_break(text: str, chars: int) -> str:
    window = text[: chars + 1]
    ends = [end.end() for end in _ENDS.finditer(window)]
    if ends and ends[-1] >= chars * LEAST_SHARE:
        return window[: ends[-1]].rstrip()
    space = window.rfind(" ", int(chars * LEAST_SHARE))
    return window[: space if space > 0 else chars].rstrip()


def _from(text: str, chars: int) -> str:
    window = text[-chars:]
    first = _ENDS.search(window)
    if first and first.end() <= chars * LEAST_SHARE:
        return window[first.end() :].lstrip()
    space = window.find(" ")
    return window[space + 1 if 0 <= space <= chars * LEAST_SHARE else 0 :].lstrip()
