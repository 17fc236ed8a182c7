"""The recorded sessions that benchmarks play: those named, those beside the project, or generated ones."""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from longhold.simulator.sessions import write

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
