"""Many sessions in one process: their cost at rest, and how long they block the event loop.

Each is a conversation with a tool. The model takes a second or two to answer, without a provider or
HTTP. A timer in the same loop measures how late it fires.
"""

import asyncio
import ctypes
import gc
import os
import random
import statistics
import time
from contextlib import suppress
from pathlib import Path

from harness import temporary_home
from longhold import Session

MODEL = "claude-sonnet-4-6"
ANSWER_SECONDS = (1.0, 3.0)
"""How long a model takes."""
TALK_SECONDS = 20.0
TICK_SECONDS = 0.005
TOOLS = [
    {"name": "lookup", "description": "Looks it up.", "input_schema": {"type": "object"}},
]


def many_sessions(count: int, seconds: float = TALK_SECONDS) -> dict[str, float]:
    """Open so many sessions, measure them at rest, and let all of them talk for a while."""
    with temporary_home() as place:
        return asyncio.run(_measured(count, place, seconds))


async def _measured(count: int, place: Path, seconds: float) -> dict[str, float]:
    first = Session.open(model=MODEL, tools=TOOLS, directory=place)  # loads what all share
    await _turn(first, random.Random(0), wait=False)
    descriptors, memory = _descriptors(), _resident_mb()
    sessions = [Session.open(model=MODEL, tools=TOOLS, directory=place) for _ in range(count)]
    for n, session in enumerate(sessions):
        await _turn(session, random.Random(n), wait=False)
    at_rest = {
        "mb_per_session": round((_resident_mb() - memory) / count, 3),
        "descriptors_per_session": round((_descriptors() - descriptors) / count, 3),
    }
    lags: list[float] = []
    clock = asyncio.create_task(_clock(lags))
    turns = await asyncio.gather(*(_talk(session, seconds) for session in sessions))
    clock.cancel()
    with suppress(asyncio.CancelledError):
        await clock
    for session in (first, *sessions):
        session.close()
    return {
        "loop_lag_p99_ms": round(statistics.quantiles(lags, n=100)[98] * 1e3, 1),
        "loop_lag_p50_ms": round(statistics.median(lags) * 1e3, 1),
        "loop_lag_max_ms": round(max(lags) * 1e3, 1),
        "turns_per_second": round(sum(turns) / seconds, 1),
    } | at_rest


async def _clock(lags: list[float]) -> None:
    while True:
        due = time.perf_counter() + TICK_SECONDS
        await asyncio.sleep(TICK_SECONDS)
        lags.append(time.perf_counter() - due)


async def _talk(session: Session, seconds: float) -> int:
    dice, end, turns = random.Random(session.id), time.monotonic() + seconds, 0
    await asyncio.sleep(dice.uniform(0, ANSWER_SECONDS[1]))
    while time.monotonic() < end:
        await _turn(session, dice, wait=True)
        turns += 1
    return turns


async def _turn(session: Session, dice: random.Random, *, wait: bool) -> None:
    """Ask, let the model look something up, and answer."""
    session.user(f"What about number {dice.randrange(1_000)}? " * 4)
    await _answered(session, dice, wait, calls=True)
    rows = [f"row {n}: {dice.randrange(900)} paid on time" for n in range(40)]
    [use] = session.view.open_round().missing()
    session.tool_result(use.id, "\n".join(rows))
    await _answered(session, dice, wait, calls=False)


async def _answered(session: Session, dice: random.Random, wait: bool, *, calls: bool) -> None:
    request = await session.prepare()
    if wait:
        await asyncio.sleep(dice.uniform(*ANSWER_SECONDS))
    id = f"{dice.getrandbits(64):x}"
    text = {"type": "text", "text": f"It is paid, says row {dice.randrange(40)}. " * 5}
    use = {"type": "tool_use", "id": f"toolu_{id}", "name": "lookup", "input": {"n": id}}
    size = sum(len(str(message)) for message in request.kwargs["messages"]) // 4
    await session.record(
        {
            "id": f"msg_{id}",
            "role": "assistant",
            "model": MODEL,
            "content": [text, use] if calls else [text],
            "stop_reason": "tool_use" if calls else "end_turn",
            "usage": {"input_tokens": size, "output_tokens": 60},
        }
    )


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _resident_mb() -> float:
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
