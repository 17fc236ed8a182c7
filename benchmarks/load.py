"""How long it takes to load a large log, compared with the fastest plain parser.

The log is an imported session that the package generates itself. `ratio_to_orjson` is the
time of `load` and `fold` over that of `orjson.loads` on every line with the objects kept,
the best of several runs each, in one process, in turns.

    python benchmarks/load.py [FILE…] [--mb 100] [--json]
"""

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from harness import make_parser, print_result, write_large
from longhold.core.log import Header, load, write_log
from longhold.core.view import View, fold
from longhold.insight.transcripts.formats import open_transcript

RUNS = 5
RECORD_SHARE = 0.44
"""How much of a generated transcript is left in the log: the rest is what no model sees."""


def prepare(directory: Path, megabytes: int) -> Path:
    """Write a log of about this size by importing a generated transcript."""
    transcript, log = directory / "large.jsonl", directory / "log.jsonl"
    write_large(transcript, 1, round(megabytes * 1_000_000 / RECORD_SHARE))
    with open_transcript(transcript) as opened:
        write_log(log, Header(session="bench"), opened.entries)
    return log


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    kept = work()
    seconds = time.perf_counter() - start
    del kept
    return seconds


def plain(path: Path) -> list:
    with path.open("rb") as file:
        return [orjson.loads(line) for line in file]


def ours(path: Path) -> View:
    return fold(load(path).entries)


def peak_mb(code: str, path: Path) -> float:
    """Measure the peak memory of a piece of code in a process of its own."""
    script = f"import sys; from pathlib import Path; path = Path(sys.argv[1]); {code}"
    script += "; print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, check=True
    )
    return round(float(done.stdout) / 1000, 1)


def measure(path: Path) -> dict:
    pairs = [(timed(lambda: plain(path)), timed(lambda: ours(path))) for _ in range(RUNS)]
    orjson_seconds, our_seconds = min(a for a, _ in pairs), min(b for _, b in pairs)
    return {
        "file_mb": round(path.stat().st_size / 1e6, 1),
        "orjson_seconds": round(orjson_seconds, 3),
        "load_and_fold_seconds": round(our_seconds, 3),
        "load_only_seconds": round(min(timed(lambda: load(path)) for _ in range(RUNS)), 3),
        "ratio_to_orjson": round(our_seconds / orjson_seconds, 2),
        "peak_mb": peak_mb("from longhold.core.log import load; kept = load(path)", path),
    }


def import_peak(directory: Path, megabytes: int) -> float:
    """Measure the peak memory of importing a transcript of this size."""
    transcript = directory / "import.jsonl"
    write_large(transcript, 2, megabytes * 1_000_000)
    code = (
        "from longhold.core.log import Header, write_log; "
        "from longhold.insight.transcripts.formats import open_transcript; "
        "t = open_transcript(path); "
        "write_log(path.with_suffix('.log.jsonl'), Header(session='x'), t.__enter__().entries)"
    )
    return peak_mb(code, transcript)


def main() -> None:
    parser = make_parser(__doc__, mb=100)
    parser.add_argument(
        "files", nargs="*", type=Path, help="logs to load instead of a generated one"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        results = [measure(path) for path in options.files or [prepare(directory, options.mb)]]
        result = max(results, key=lambda found: found["ratio_to_orjson"])
        result["import_peak_mb"] = import_peak(directory, options.mb)
    print_result(result, options.json)


if __name__ == "__main__":
    main()
