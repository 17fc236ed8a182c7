"""A long session in a small window with all layers: does anything grow that should not?"""

import gc
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from faults.worker import REPORT_EVERY, Worker, make_project
from longhold.agent.build import build_agent
from longhold.core.log.entries import AnyEntry, Asked, Compacted, Failed
from longhold.core.messages.rules import violations
from longhold.core.settings import Settings

WINDOW_TOKENS = 32_000
SAMPLE_EVERY = 5
"""Runs between two looks at memory and descriptors."""
REMEMBER_EVERY = 25
"""Runs between two things that the user wants to be remembered."""
COMPARED = 100
"""Compactions at the beginning, and at the end, whose time is compared; a third of fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    rss_mb: float
    descriptors: int


def take_sample() -> Sample:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    rss = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return Sample(rss_mb=rss, descriptors=sum(1 for _ in Path("/proc/self/fd").iterdir()))


def soak_settings() -> Settings:
    """Return settings with every layer on, in a small window."""
    given = Settings()
    return replace(
        given,
        window=replace(given.window, limit_tokens=WINDOW_TOKENS),
        notes=replace(given.notes, model=True),
        memory=replace(given.memory, extract="always", consent="write"),
    )


def prompt_of(run: int) -> str:
    asked = f"Go on with part {run}: raise the counts, then report."
    return f"{asked} Remember that part {run} is done." if run % REMEMBER_EVERY == 0 else asked


async def soak(place: Path, turns: int) -> dict[str, float]:
    """Play turns, each one answer of the model, and compare the end with the beginning.

    Expects `LONGHOLD_HOME` to be in `place`.
    """
    project = place / "project"
    make_project(project)
    model, samples = Worker(project), list[Sample]()
    began = time.monotonic()
    agent = await build_agent(model, directory=project, mode="bypass", settings=soak_settings())
    try:
        while len(model.gaps_ms) < turns:
            run = len(model.gaps_ms) // REPORT_EVERY
            async for _ in agent.run(prompt_of(run)):
                pass
            if run % SAMPLE_EVERY == 0:
                await agent.background.drain(10)
                samples.append(take_sample())
        history = agent.session.view.history
        broken = violations(agent.session.view.messages())
    finally:
        await agent.close()
    compacted = [entry for entry in history if isinstance(entry, Compacted)]
    compacting = compactions_ms(history, model.gaps_ms)
    compared = min(COMPARED, max(1, len(compacting) // 3))
    log = agent.engine.log.path
    return {
        "turns": len(model.gaps_ms),
        "turns_per_compaction": round(len(model.gaps_ms) / max(1, len(compacted)), 1),
        "tokens_per_turn": _tokens_per_turn(compacted, len(model.gaps_ms)),
        "rss_growth": _growth([one.rss_mb for one in samples]),
        "rss_mb": round(samples[-1].rss_mb, 1),
        "fd_growth": _growth([one.descriptors for one in samples]),
        "compactions": len(compacted),
        "compaction_ms_first": _median(compacting[:compared]),
        "compaction_ms_last": _median(compacting[-compared:]),
        "turn_ms_first": _median(model.gaps_ms[: turns // 3]),
        "turn_ms_last": _median(model.gaps_ms[-turns // 3 :]),
        "broken_rules": len(broken),
        "failed_layers": sum(isinstance(entry, Failed) for entry in history),
        "log_mb": round(log.stat().st_size / 1e6, 1),
        "soak_seconds": round(time.monotonic() - began, 1),
    }


def compactions_ms(history: Sequence[AnyEntry], gaps_ms: Sequence[float]) -> list[float]:
    """Return the time before each request that a compaction came before."""
    found, request, has_compacted = [], 0, False
    for entry in history:
        has_compacted |= isinstance(entry, Compacted)
        if isinstance(entry, Asked) and entry.source == "main":
            if has_compacted and request < len(gaps_ms):
                found.append(gaps_ms[request])
            request, has_compacted = request + 1, False
    return found


def _growth(values: Sequence[float]) -> float:
    """Return by what share the last third is above the middle one."""
    third = max(1, len(values) // 3)
    middle, last = values[-2 * third : -third] or values[:1], values[-third:]
    return round(statistics.mean(last) / statistics.mean(middle) - 1, 4)


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 1) if values else 0.0


def _tokens_per_turn(compacted: Sequence[Compacted], turns: int) -> int:
    """Return by how much the context grew in a turn, between compactions."""
    grown = sum(two.before_tokens - one.after_tokens for one, two in pairwise(compacted))
    return round(grown / max(1, turns * (len(compacted) - 1) / max(1, len(compacted))))
