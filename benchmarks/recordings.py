"""The sessions that benchmarks play: those named, those next to the project, or generated ones.

Generated sessions and damaged logs are shared with the tests; benchmarks import them from here.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from damage import DAMAGE_KINDS, damage_log
from generated_sessions import generate, write, write_large

__all__ = [
    "DAMAGE_KINDS",
    "GENERATED",
    "MODEL",
    "RECORDED",
    "damage_log",
    "generate",
    "parser_of",
    "recordings",
    "write",
    "write_large",
]

RECORDED = Path(__file__).parents[2] / "shared" / "data" / "transcripts"
MODEL = "claude-opus-5"
"""Priced as the models that were recorded."""
GENERATED = 4


@contextmanager
def recordings(named: Sequence[Path], most: int = 1_000) -> Iterator[list[Path]]:
    """Give the files to play; generated ones are gone afterwards."""
    files = list(named) or sorted(RECORDED.rglob("*.jsonl.gz"))
    if files:
        yield files[:most]
        return
    with tempfile.TemporaryDirectory() as name:
        made = [Path(name) / f"{seed}.jsonl" for seed in range(GENERATED)]
        for seed, path in enumerate(made):
            write(path, seed)
        yield made[:most]


def parser_of(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument(
        "--lifetime", default="", choices=("", "5m", "1h"), help="of the cache; as recorded if none"
    )
    parser.add_argument("--sessions", type=int, default=1_000, help="so many at most")
    parser.add_argument("--json", action="store_true", help="print nothing but the result")
    return parser
