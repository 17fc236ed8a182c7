"""The state of a session in one line: how full, of what, how warm, how dear, what works beside it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longhold.core.messages.display import bar, dollars, tokens
from longhold.core.stages.notes.file import load_page, summarise_state
from longhold.errors import LongholdError

if TYPE_CHECKING:
    from longhold.agent.agent import Agent
    from longhold.core.log.spending import OwnSpending
    from longhold.core.turn.engine import Fullness
    from longhold.core.view import View


BAR_CHARS = 12
"""Shows a quarter more or less, and leaves room for words."""
BAR_COLUMNS = 50
"""In a narrower terminal the words are worth more than a bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    session: str
    model: str
    mode: str
    used_tokens: int
    line_tokens: int
    """Where room is made; `percent_left` is of this."""
    warning_tokens: int
    limit_tokens: int
    percent_left: int
    level: str
    cache_seconds: float
    """Until the provider forgets the prompt; 0 if it has, or never knew it."""
    usd: float
    own_usd: float
    """Of that, for calls the engine made for itself."""
    own_share: float
    jobs: int
    is_simulated: bool = False

    def short(self) -> str:
        money = f", ${self.usd:.2f}" if self.usd else ""
        own = f", own calls {self.own_share:.0%}" if self.own_usd else ""
        if self.is_simulated:
            money, own = ", simulated", ""
        return f"[{tokens(self.used_tokens)} tokens, {self.percent_left} % left{money}{own}]"

    def line(self, columns: int) -> str:
        return join_fitting(self.parts(columns), columns)

    def parts(self, columns: int) -> list[str]:
        share = self.used_tokens / self.line_tokens if self.line_tokens else 1.0
        full = f"{tokens(self.used_tokens)} of {tokens(self.line_tokens)}"
        line = "" if self.level == "ok" else f", past the {self.level} line"
        found = [f"{full}, {self.percent_left} % left{line}"]
        if columns >= BAR_COLUMNS:
            found[0] = f"▕{bar(share, BAR_CHARS)}▏{found[0]}"
        found.append(f"cache {_clock(self.cache_seconds)}" if self.cache_seconds else "cache cold")
        if self.is_simulated:
            found.append("simulated")
        elif self.usd:
            own = f", own {self.own_share:.0%}" if self.own_usd else ""
            found.append(f"{dollars(self.usd)}{own}")
        if self.jobs:
            found.append(f"{self.jobs} job{'s' if self.jobs > 1 else ''}")
        return [
            *found,
            *filter(None, (self.model.rpartition("/")[2].removeprefix("claude-"), self.mode)),
        ]


def join_fitting(parts: Sequence[str], columns: int, between: str = " · ") -> str:
    kept = list(parts)
    while len(kept) > 1 and len(between.join(kept)) > columns:
        kept.pop()
    return between.join(kept)[: max(columns, 0)]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


def status_of(agent: "Agent", now: float | None = None) -> Status:
    engine = agent.engine
    return make_status(
        engine.view,
        engine.fullness(),
        engine.own,
        session=agent.session.id,
        model=engine.model or agent.model.name,
        lifetime=engine.frame.lifetime,
        mode=agent.gate.mode,
        jobs=len(agent.jobs.running()),
        now=now,
    )


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
    now: float | None = None,
) -> Status:
    from longhold.core.models.capabilities import is_simulated

    spent = own.follow(view.history)
    now = time.time() if now is None else now
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
        cache_seconds=cache_seconds(view, lifetime, now),
        usd=spent.total.usd,
        own_usd=spent.own.usd,
        own_share=spent.share,
        jobs=jobs,
        is_simulated=is_simulated(model),
    )


def cache_seconds(view: "View", lifetime: str, now: float) -> float:
    """Return how long the provider keeps what the last answer of the conversation read or wrote."""
    from longhold.core.log.entries import Compacted, Replied
    from longhold.core.request.lifetime import seconds_of

    for entry in reversed(view.history):
        if isinstance(entry, Compacted) and entry.n not in view.in_force.dead:
            return 0.0
        if isinstance(entry, Replied) and entry.usage is not None:
            cached = entry.usage.cache_read_tokens + entry.usage.cache_write_tokens
            return max(0.0, entry.at + seconds_of(lifetime or "5m") - now) if cached else 0.0
    return 0.0


def where_lines(agent: "Agent") -> list[str]:
    try:
        file = agent.session.layers.notes.file(agent.engine)
        page = load_page(file, agent.session.view.history)
    except LongholdError:
        return []  # unreadable notes do not prevent resuming
    lines = summarise_state(page)
    return ["Where you were:", *lines] if lines else []
