"""A session's status line. Unknown figures are left out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longhold.core.messages.text import bar, dollars, pluralize, tokens

if TYPE_CHECKING:
    from longhold.core.log.spending import OwnSpending
    from longhold.core.policy.threshold import Fullness
    from longhold.core.view import View

BAR_CHARS = 12
DAY_SECONDS = 86_400.0
BAR_COLUMNS = 50  # a narrower terminal shows text instead of a bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    session: str = ""
    model: str = ""
    mode: str = ""
    used_tokens: int = 0
    line_tokens: int = 0  # the compaction threshold, or a client's window
    warning_tokens: int = 0
    limit_tokens: int = 0
    percent_left: int = 0
    level: str = "ok"
    cache_seconds: float | None = None  # seconds until the provider drops the prompt, or 0
    usd: float = 0.0
    own_usd: float = 0.0  # the overhead part of `usd`
    own_share: float = 0.0
    avoidable_usd: float = 0.0  # the part of `usd` that was lost to cache misses
    rewrite_usd: float = 0.0  # cost of writing the prompt in the next call if the cache is cold
    jobs: int = 0
    is_simulated: bool = False

    def short(self) -> str:
        money = f", {dollars(self.usd)}" if self.usd else ""
        own = f", overhead {self.own_share:.0%}" if self.own_usd else ""
        if self.is_simulated:
            money, own = ", simulated", ""
        return f"[{tokens(self.used_tokens)} tokens, {self.percent_left} % left{money}{own}]"

    def line(self, columns: int | None = None, *, until: float | None = None) -> str:
        """Render the line. A client that does not redraw it passes `until`, the cache's expiry."""
        parts = [
            *self.context_parts(columns or 0),
            *self.cache_parts(until),
            *self.money_parts(),
            *([pluralize(self.jobs, "job")] if self.jobs else []),
            self.model.rpartition("/")[2].removeprefix("claude-"),
            self.mode,
        ]
        parts = [part for part in parts if part]
        return " · ".join(parts) if columns is None else join_fitting(parts, columns)

    def context_parts(self, columns: int) -> list[str]:
        if not self.line_tokens:
            return [f"{tokens(self.used_tokens)} tokens"] if self.used_tokens else []
        share = self.used_tokens / self.line_tokens
        drawn = f"▕{bar(share, BAR_CHARS)}▏" if columns >= BAR_COLUMNS else ""
        full = f"{tokens(self.used_tokens)} of {tokens(self.line_tokens)}"
        line = "" if self.level == "ok" else f", past the {self.level} threshold"
        return [f"{drawn}{full}, {self.percent_left} % left{line}"]

    def cache_parts(self, until: float | None) -> list[str]:
        if self.cache_seconds is None:
            return []
        if until:
            state = "warm until" if self.cache_seconds else "cold since"
            is_old = not self.cache_seconds and time.time() - until > DAY_SECONDS
            shown = time.strftime("%Y-%m-%d" if is_old else "%H:%M:%S", time.localtime(until))
            return [f"cache {state} {shown}"]
        if self.cache_seconds:
            minutes, rest = divmod(int(self.cache_seconds), 60)
            return [f"cache {minutes}:{rest:02d}"]
        again = f": the next call writes about {dollars(self.rewrite_usd)}"
        return [f"cache cold{again if self.rewrite_usd else ''}"]

    def money_parts(self) -> list[str]:
        if self.is_simulated:
            return ["simulated"]
        own = f", own {self.own_share:.0%}" if self.own_usd else ""
        parts = [f"{dollars(self.usd)}{own}"] if self.usd else []
        avoidable = self.avoidable_usd
        return parts + ([f"{dollars(avoidable)} avoidable"] if avoidable >= 0.005 else [])


def join_fitting(parts: Sequence[str], columns: int, between: str = " · ") -> str:
    kept = list(parts)
    while len(kept) > 1 and len(between.join(kept)) > columns:
        kept.pop()
    return between.join(kept)[: max(columns, 0)]


def make_status(
    view: "View",
    full: "Fullness",
    own: "OwnSpending",
    *,
    session: str,
    model: str,
    lifetime: str,
    mode: str = "",
    jobs: int = 0,
) -> Status:
    from longhold.core.models.capabilities import is_simulated

    spent = own.follow(view.history)
    return Status(
        session=session,
        model=model,
        mode=mode,
        used_tokens=full.used_tokens,
        line_tokens=full.window.base_tokens,
        warning_tokens=full.window.warning_tokens,
        limit_tokens=full.window.limit_tokens,
        percent_left=full.window.percent_left(full.used_tokens),
        level=full.window.level(full.used_tokens),
        cache_seconds=cache_seconds(view, lifetime, time.time()),
        usd=spent.total.usd,
        own_usd=spent.own.usd,
        own_share=spent.share,
        jobs=jobs,
        is_simulated=is_simulated(model),
    )


def cache_seconds(view: "View", lifetime: str, now: float) -> float:
    """Return how long the provider will keep the last prompt, counted from its request."""
    from longhold.core.log.entries import Compacted, Replied
    from longhold.core.request.lifetime import lifetime_seconds

    for entry in reversed(view.history):
        if isinstance(entry, Compacted) and entry.n not in view.in_force.dead:
            return 0.0
        if isinstance(entry, Replied) and entry.usage is not None:
            cached = entry.usage.cache_read_tokens + entry.usage.cache_write_tokens
            lives = lifetime_seconds(view.model, lifetime or "5m")
            began = view.answered.at if view.answered is not None else entry.at
            return max(0.0, began + lives - now) if cached else 0.0
    return 0.0
