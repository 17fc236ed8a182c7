"""Text for a terminal: made safe to print, and numbers, sizes, times and bars as people read them."""

import time

SAID_CHARS = 76
"""One line of what was said is enough to recognise a turn or a message."""


def tokens(count: float) -> str:
    """Format a number of tokens: 950, 12.3K, 1.05M, 21.8B."""
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


def percent(part: float, whole: float) -> str:
    return f"{part / whole:.0%}".replace("%", " %") if whole else "0 %"


def plain(text: str) -> str:
    """Make untrusted text safe to print on one line: no control characters."""
    return "".join(char if char.isprintable() else " " for char in text)


def harmless(text: str) -> str:
    """Make untrusted text safe to print, keeping its lines and tabs."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else " " for char in text)


def one_line(text: str, chars: int = SAID_CHARS) -> str:
    text = plain(" ".join(text.split()))
    return text if len(text) <= chars else text[: chars - 1] + "…"


def size(bytes: float) -> str:
    for unit in ("B", "KB", "MB"):
        if bytes < 1_000:
            return f"{bytes:.0f} {unit}" if unit == "B" else f"{bytes:.1f} {unit}"
        bytes /= 1_000
    return f"{bytes:.1f} GB"


def ago(then: float, now: float | None = None) -> str:
    seconds = max(0.0, (now or time.time()) - then)
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def bar(share: float, width: int = 24) -> str:
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + ("▏▎▍▌▋▊▉"[rest - 1] if rest else "")
    return drawn.ljust(width)
