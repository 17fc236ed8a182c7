"""A disk that fails at its k-th operation while a session is written, closed and reopened."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from faults.tally import Tally
from harness import temporary_home
from longhold.core.log import load
from longhold.core.log.entries import AnyEntry, Failed
from longhold.core.log.store import FileStore
from longhold.core.messages.rules import violations
from longhold.core.settings import Settings
from longhold.errors import LongholdError
from longhold.session.session import Session

OPERATIONS = ("open", "write", "fsync", "ftruncate", "replace", "link", "mkdir")
WAYS = ("ENOSPC", "EIO", "EACCES", "short")
MODEL = "claude-sonnet-4-6"


@contextmanager
def failing(at: int, way: str) -> Iterator[list[str]]:
    """Let the system's k-th file operation fail; yields what was struck."""
    real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in OPERATIONS}
    struck: list[str] = []
    number = count(1)

    def faulty(name: str) -> Callable[..., Any]:
        def operation(*given: Any, **named: Any) -> Any:
            if next(number) != at:
                return real[name](*given, **named)
            struck.append(name)
            if way == "short" and name == "write":
                return real["write"](given[0], given[1][: len(given[1]) // 2])
            code = getattr(errno, way, errno.EIO)
            raise OSError(code, os.strerror(code))

        return operation

    try:
        for name in OPERATIONS:
            setattr(os, name, faulty(name))
        yield struck
    finally:
        for name, function in real.items():
            setattr(os, name, function)


async def disk_faults(most: int) -> Tally:
    """Strike each operation of a short session in each way, up to `most` operations."""
    tally = Tally()
    for way in WAYS:
        for at in range(1, most + 1):
            with temporary_home() as place:
                struck = await _strike(place, at, way, tally)
            if not struck:
                break
    return tally


async def _strike(place: Path, at: int, way: str, tally: Tally) -> bool:
    store, written = FileStore(), []
    session: Session | None = None
    with failing(at, way) as struck:
        try:
            session = Session.open(model=MODEL, directory=place, settings=Settings(), store=store)
            await work(session, written)
        except LongholdError:
            pass
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            tally.crashed(f"{way} at {at} ({struck})", error)
        if session is not None:
            with suppress(LongholdError):
                session.close()
    tally.faults += bool(struck)
    if session is not None and written:
        path = session._engine.log.path
        kept = {entry.n for entry in load(path).entries}
        tally.data_lost += sum(entry.n not in kept for entry in written)
        try:
            with Session.resume(session.id, settings=Settings(), store=store) as again:
                tally.crashes += bool(violations(again.view.messages()))
        except LongholdError as error:
            tally.crashed(f"{way} at {at}: resume", error)
    return bool(struck)


async def work(session: Session, written: list[AnyEntry]) -> None:
    """Three turns with a large result; `written` has what was acknowledged."""
    for turn in range(3):
        session.user(f"turn {turn}")
        written.append(session.view.history[-1])
        await session.prepare()
        use = {"type": "tool_use", "id": f"t{turn}", "name": "Bash", "input": {"command": "a"}}
        await session.record(_answer(f"a{turn}", [use], "tool_use"))
        session.tool_result(f"t{turn}", "line of text\n" * 10_000)
        await session.prepare()
        await session.record(_answer(f"b{turn}", [{"type": "text", "text": "done"}], "end_turn"))
        written.extend(e for e in session.view.history[-3:] if not isinstance(e, Failed))


def _answer(id: str, content: list[dict], reason: str) -> dict:
    usage = {"input_tokens": 900, "output_tokens": 9}
    return {
        "id": id,
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": reason,
        "usage": usage,
    }
