"""Helpers of the benchmarks: options, results, temporary homes, recorded sessions, a gateway.

A benchmark takes `--json` and prints its figures, then one JSON object as the last line; with
`--json`, it prints only that line. Generated sessions and damaged logs are shared with the tests;
benchmarks import them from here.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from chaos_model import KINDS as FAULT_KINDS
from chaos_model import ChaosModel
from damage import DAMAGE_KINDS, damage_log
from generated_sessions import generate, write, write_large
from local_model import LocalModel, installed_path

__all__ = [
    "DAMAGE_KINDS",
    "FAULT_KINDS",
    "MODEL",
    "RECORDED",
    "ChaosModel",
    "LocalModel",
    "count_lost_lines",
    "damage_log",
    "generate",
    "installed_path",
    "make_parser",
    "make_replay_parser",
    "percentile",
    "print_result",
    "read_lines",
    "read_object",
    "recordings",
    "rss_mb",
    "run_gateway",
    "serve",
    "temporary_home",
    "write",
    "write_large",
]

RECORDED = Path(__file__).parents[2] / "shared" / "data" / "transcripts"
MODEL = "claude-opus-5"
"""Priced as the models that were recorded."""
_GENERATED = 4
_WINDOW_TOKENS = 200_000


def make_parser(
    doc: str, *, takes_files: bool = False, **defaults: float
) -> argparse.ArgumentParser:
    """Describe a benchmark by the first line of its docstring; each default becomes an option."""
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    if takes_files:
        parser.add_argument("files", nargs="*", type=Path)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--json", action="store_true", help="print nothing but one line of JSON")
    return parser


def make_replay_parser(doc: str) -> argparse.ArgumentParser:
    parser = make_parser(doc, takes_files=True)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument(
        "--lifetime",
        default="",
        choices=("", "5m", "1h"),
        help="of the cache; default: as recorded",
    )
    parser.add_argument("--sessions", type=int, default=1_000, help="the most to replay")
    return parser


def print_result(found: Mapping[str, Any], is_json: bool) -> None:
    """Print each figure on a line, by its path (`policies.ours.usd`), then the JSON object."""
    if not is_json:
        for name, value in _flatten(found):
            print(f"{name:>32}  {value}")
    print(json.dumps(found))


def _flatten(found: Mapping[Any, Any], under: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in found.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{under}{key}.")
        else:
            yield f"{under}{key}", value


@contextmanager
def temporary_home() -> Iterator[Path]:
    """Make a directory whose `home` this process and its children use as `LONGHOLD_HOME`."""
    with tempfile.TemporaryDirectory(prefix="longhold-") as name:
        os.environ["LONGHOLD_HOME"] = f"{name}/home"
        yield Path(name)


@contextmanager
def recordings(
    named: Sequence[Path], most: int = 1_000, *, within: str = ""
) -> Iterator[list[Path]]:
    """Give the files to play: those named, those recorded, or generated ones, deleted afterwards."""
    files = list(named) or sorted((RECORDED / within).rglob("*.jsonl.gz"))
    if files:
        yield files[:most]
        return
    print("no recorded sessions here: generated ones are used, which say little", file=sys.stderr)
    with tempfile.TemporaryDirectory() as name:
        made = [Path(name) / f"{seed}.jsonl" for seed in range(_GENERATED)]
        for seed, path in enumerate(made):
            write(path, seed)
        yield made[:most]


def read_lines(log: Path | None) -> list[bytes]:
    """Return the complete lines of a log; the last one may have been cut short by a kill."""
    return log.read_bytes().split(b"\n")[:-1] if log else []


def count_lost_lines(before: Sequence[bytes], log: Path | None) -> int:
    """Count the lines that were in a log before a kill and are not there, or changed, after it."""
    after = read_lines(log)
    changed = sum(one != other for one, other in zip(before, after, strict=False))
    return changed + max(0, len(before) - len(after))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that this share of all values does not exceed; 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def rss_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1_024 for line in lines if line.startswith("VmRSS"))


def read_object(lines: Iterable[str]) -> str:
    """Read the JSON object that a server prints when it is ready."""
    text = ""
    for line in lines:
        text += line
        if line == "}\n":
            return text
    raise RuntimeError(f"the server ended before it was ready; it printed {text!r}")


@contextmanager
def serve(*words: str, home: str | Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Run a Python command that serves; yield the JSON object it prints first, and its process id."""
    window = {"LONGHOLD_WINDOW_LIMIT_TOKENS": str(_WINDOW_TOKENS)}
    process = subprocess.Popen(
        [sys.executable, *words],
        env={**os.environ, **window, "LONGHOLD_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield json.loads(read_object(process.stdout)), process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def run_gateway(upstream: str, home: str | Path) -> Iterator[tuple[str, int]]:
    """Run `longhold gateway` in its own process; yield its address and its process id."""
    words = ("-m", "longhold", "gateway", "--upstream", upstream, "--port", "0", "--json")
    with serve(*words, home=home) as (printed, pid):
        yield printed["url"], pid
