"""Generates coding sessions in the Claude Code transcript format.

For tests and benchmarks, where no recorded sessions are available. The same seed gives
the same JSON lines. Shares of characters, sizes, parallel calls, kinds of records and the growth
of usage follow recorded sessions; the project, its people and every sentence are invented.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict, Unpack

import msgspec

from generated_sessions.chance import Chance
from generated_sessions.turns import Recipe, SessionTurns

__all__ = ["SessionOptions", "generate", "write", "write_large"]

_encode = msgspec.json.Encoder().encode

DEFAULT_MODEL = "claude-opus-4-5-20251101"
DEFAULT_RECORDS = 400
"""Grows to 90,000 to 150,000 tokens of context: a long session that still fits a 200K window."""
ENDLESS = 10**9
"""More records than any file here is allowed to reach."""
LARGE_SCALE = 2.6
"""Brings the mean record of a large file to about 5 KB."""
LINE_TOKENS = 160_000
"""Where recorded sessions on a 200K window were compacted."""


class SessionOptions(TypedDict, total=False):
    """What a session should hold in addition to plain turns."""

    compactions: int
    microcompactions: int
    images: int
    malformed: int
    sidechain: bool
    model: str


def generate(
    seed: int,
    records: int = DEFAULT_RECORDS,
    *,
    compactions: int = 0,
    microcompactions: int = 0,
    images: int = 0,
    malformed: int = 0,
    sidechain: bool = False,
    model: str = DEFAULT_MODEL,
) -> Iterator[bytes]:
    """Yield the lines of one generated session, each with its line end.

    The file has at least this number of records and ends with the current turn.
    Compactions, microcompactions and images are spread evenly; without compactions a long
    session outgrows a 200K window, as on a wider one. Malformed lines come on top: without
    them the file is the one the same seed gives with `malformed=0`. `sidechain` makes the
    file of a sub-agent: one prompt, then rounds to the end.
    """
    recipe = Recipe(
        seed=seed,
        records=records,
        compactions=compactions,
        clearings=microcompactions,
        pictures=images,
        is_sidechain=sidechain,
        model=model,
    )
    lines = (_encode(record) + b"\n" for record in SessionTurns(recipe).run())
    return _spoil(lines, malformed, records, Chance(seed)) if malformed else lines


def write(
    path: Path, seed: int, records: int = DEFAULT_RECORDS, **options: Unpack[SessionOptions]
) -> int:
    with path.open("wb") as file:
        file.writelines(generate(seed, records, **options))
        return file.tell()


def write_large(path: Path, seed: int, size_bytes: int = 100_000_000) -> int:
    """Write one long session of that size or a little more, with records of about 5 KB; return its size.

    It is compacted whenever its prompt nears the end of a 200K window.
    """
    recipe = Recipe(
        seed=seed,
        records=ENDLESS,
        model=DEFAULT_MODEL,
        scale=LARGE_SCALE,
        line_tokens=LINE_TOKENS,
    )
    turns = SessionTurns(recipe)
    written = 0
    with path.open("wb") as file:
        for record in turns.run():
            written += file.write(_encode(record) + b"\n")
            if written >= size_bytes:
                turns.close()
    return written


def _spoil(lines: Iterator[bytes], count: int, records: int, chance: Chance) -> Iterator[bytes]:
    due = [records * (number + 1) // (count + 1) for number in range(count)]
    for number, line in enumerate(lines, start=1):
        yield line
        while due and due[0] <= number:
            due.pop(0)
            yield _malformed(line, chance)


def _malformed(line: bytes, chance: Chance) -> bytes:
    middle = chance.between(1, len(line) - 2)
    return chance.pick(
        (
            line[:middle].rstrip(b"\n") + b"\n",
            line[:middle] + line,
            b"\0" * chance.between(1, 4096) + b"\n",
            b'{"type":"user","message":"\xff\xfe"}\n',
            b"not a record\n",
        )
    )
