"""A model's context window and the thresholds within it.

    0 ─── warning ── auto ────── full ────── blocking ── effective ── limit
          20K before  threshold  13K before  3K before   less the reserve

Distances apply to a 200K window and shrink in proportion for smaller windows. The threshold is both
the trigger for freeing space and the target size. `full` is the limit beyond which a call fails.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from longhold.core.log.entries import AnyEntry, Compacted, Replied
from longhold.core.models.capabilities import PLAIN_WINDOW_TOKENS, capabilities
from longhold.core.settings import WindowSettings
from longhold.errors import ConfigError

AUTO_BUFFER_TOKENS = 13_000  # distance from the end of the window, so that an answer still fits
ERROR_BUFFER_TOKENS = 20_000  # distance from the threshold at which the context is shown in red

Level = Literal["ok", "warning", "error", "auto", "blocking"]


COST = "cost"  # places the threshold where it costs least

WINDOWS = (PLAIN_WINDOW_TOKENS, 272_000, 400_000, 1_000_000, 2_000_000)
"""Common window sizes, used to guess a client's window from its requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    limit_tokens: int
    reserve_tokens: int
    effective_tokens: int
    auto_tokens: int  # the compaction threshold, from which context is freed if `auto` is on
    warning_tokens: int
    error_tokens: int
    blocking_tokens: int  # from here nothing is sent until context is freed
    full_tokens: int  # the largest threshold that this window allows, regardless of settings
    auto: bool = True
    cold_tokens: int = 0  # size from which compacting an expired cache pays, or 0 if unknown

    @property
    def base_tokens(self) -> int:
        """The size that counts as full, which is the compaction threshold if `auto` is on."""
        return self.auto_tokens if self.auto else self.effective_tokens

    def percent_left(self, used_tokens: float) -> int:
        base = self.base_tokens
        return max(0, round((base - used_tokens) / base * 100)) if base > 0 else 0

    def level(self, used_tokens: float) -> Level:
        if used_tokens >= self.blocking_tokens:
            return "blocking"
        if self.auto and used_tokens >= self.auto_tokens:
            return "auto"
        if used_tokens >= self.error_tokens > self.warning_tokens:
            return "error"
        return "warning" if used_tokens >= self.warning_tokens else "ok"


@lru_cache(maxsize=64)
def window_for(model: str, settings: WindowSettings | None = None) -> Window:
    settings = settings or WindowSettings()
    known = capabilities(model)
    limit = settings.limit_tokens or known.window_tokens
    if not settings.allow_long:
        limit = min(limit, PLAIN_WINDOW_TOKENS)
    return lines(limit, settings, max_output_tokens=known.max_output_tokens)


def scale_tokens(tokens: int, limit_tokens: int) -> int:
    return min(tokens, tokens * limit_tokens // PLAIN_WINDOW_TOKENS)


def lines(limit_tokens: int, settings: WindowSettings, *, max_output_tokens: int) -> Window:
    if limit_tokens < 1:
        raise ConfigError(f"a window of {limit_tokens} tokens holds nothing; give at least 1")
    reserve = min(max_output_tokens, scale_tokens(settings.reserve_tokens, limit_tokens))
    effective = limit_tokens - reserve
    proactive = min(limit_tokens, settings.auto_window_tokens or limit_tokens) - reserve
    buffer = scale_tokens(AUTO_BUFFER_TOKENS, limit_tokens)
    auto = _auto_line(settings.auto_line, proactive, buffer)
    base = auto if settings.auto else effective
    return Window(
        limit_tokens=limit_tokens,
        reserve_tokens=reserve,
        effective_tokens=effective,
        auto_tokens=auto,
        warning_tokens=max(1, base - scale_tokens(settings.warning_buffer_tokens, limit_tokens)),
        error_tokens=max(1, base - scale_tokens(ERROR_BUFFER_TOKENS, limit_tokens)),
        blocking_tokens=max(
            1, effective - scale_tokens(settings.blocking_buffer_tokens, limit_tokens)
        ),
        full_tokens=max(1, effective - buffer) if settings.auto else effective,
        auto=settings.auto,
    )


def _auto_line(wanted: str, effective_tokens: int, buffer_tokens: int) -> int:
    """Return the compaction threshold from the settings, up to the default for the window."""
    own = max(1, effective_tokens - buffer_tokens)
    text = wanted.strip().replace("_", "").replace(",", "")
    if text in ("", COST):
        return own
    is_share = text.endswith("%")
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = math.nan
    if not (0 < number <= 100 if is_share else number >= 1):
        raise ConfigError(
            f"window.auto_line is {wanted!r}; give a number of tokens such as '150000', "
            "a share such as '80%', 'cost', or '' for the end of the window"
        )
    line = max(1, math.floor(effective_tokens * number / 100)) if is_share else number
    return int(min(own, line))


def infer_window(history: Iterable[AnyEntry]) -> int:
    """Infer a client's window from its own reports, compactions and largest call, or return 0."""
    stated = full = largest = 0
    model = ""
    for entry in history:
        if isinstance(entry, Replied) and entry.usage is not None:
            model = entry.model or model
            stated = entry.usage.window_tokens or stated
            largest = max(largest, entry.usage.prompt_tokens)
        elif isinstance(entry, Compacted) and entry.by == "import" and entry.trigger == "auto":
            full = max(full, entry.before_tokens)
    if stated and stated >= largest:
        return stated
    if full or largest > capabilities(model).window_tokens:
        return next((size for size in WINDOWS if size >= max(full, largest)), largest)
    return 0
