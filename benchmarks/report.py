"""Time and memory of `longhold report` over many sessions, and whether its sums are right.

Sessions are made by repeating the recorded ones (or, where there are none, made-up ones) under new
names and ids in a temporary directory, which is removed. The command runs as a user runs it:
`first_s` with an empty index, `second_s` with a full one, best of three, each with the processor
time of all its processes, which a busy machine does not change. `rss_mb` is the most that
all its processes held together. `mismatches` counts the recorded files whose calls, cache reads
and writes differ from a naive count. `page_kb` is the page of a made-up session of 10 MB,
`page_draw_ms` what headless Chromium takes to draw it, `report_page_kb` the page of the report. `search_ms` is `longhold history WORDS` over all of them, the
process from start to end, the slowest of some queries, each best of three; `search_starts` is its
processor time in starts of an empty Python, which says the same on a slow machine; `search_first_s` what
the first search takes, which reads every word.

    python benchmarks/report.py [--mb 40] [--json]
"""

import gzip
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness import RECORDED, make_parser, print_result, write, write_large
from longhold.insight.cost import bill
from longhold.insight.transcripts.formats import open_transcript

ID = re.compile(rb'msg_[0-9A-Za-z]{6}|"sessionId":"[0-9a-f]{6}')
SAMPLE_SECONDS = 0.05
QUERIES = ("test fails", "why was the commit hook changed", "error", '"git status"')
"""A common pair, a question, one word that is everywhere, a phrase."""


def sources(directory: Path) -> list[bytes]:
    """Return transcripts to repeat."""
    found = sorted((RECORDED / "claude-code").glob("*/*.jsonl.gz"))
    if found:
        return [gzip.decompress(path.read_bytes()) for path in found]
    made = directory / "made-up.jsonl"
    texts = []
    for seed in range(6):
        write(made, seed, 400, compactions=1)
        texts.append(made.read_bytes())
        made.unlink()
    return texts


def fill(directory: Path, megabytes: int) -> int:
    """Write so many megabytes of sessions, each with ids of its own; return how many."""
    texts, written, count = sources(directory), 0, 0
    while written < megabytes << 20:
        text, mark = texts[count % len(texts)], f"{count:06x}".encode()
        renamed = ID.sub(lambda id, mark=mark: id[0][:-6] + mark, text)
        place = directory / f"project-{count % 12}" / f"{count}.jsonl"
        place.parent.mkdir(exist_ok=True)
        written += place.write_bytes(renamed)
        count += 1
    return count


def children(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += children(int(child))
    return found


def memory_kb(pid: int) -> int:
    """Add up what a process and its children hold, shared pages shared out among them."""
    total = 0
    for each in children(pid):
        try:
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text()
        except OSError:
            continue
        total += int(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1])
    return total


class Run(NamedTuple):
    seconds: float
    cpu_seconds: float
    """Of all its processes: what a busy machine does not change."""
    most_mb: float
    report: dict


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def empty_start_seconds() -> float:
    """Return the processor time of a Python that does nothing, best of five."""
    taken = []
    for _ in range(5):
        spent = cpu_seconds()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        taken.append(cpu_seconds() - spent)
    return min(taken)


def run(directory: Path, home: Path, *words: str, command: str = "report") -> Run:
    """Run a command to its end, with its bytecode kept, as that of an installed package is."""
    environment = os.environ | {"LONGHOLD_HOME": str(home)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "longhold", command, str(directory), "--json", *words]
    most, began, spent = 0, time.perf_counter(), cpu_seconds()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    done: list[bytes] = []
    reader = threading.Thread(target=lambda: done.append(process.stdout.read()))
    reader.start()
    while process.poll() is None:
        with suppress(OSError, TypeError):  # a child may end while it is looked at
            most = max(most, memory_kb(process.pid))
        time.sleep(SAMPLE_SECONDS)
    seconds = time.perf_counter() - began
    spent = cpu_seconds() - spent
    reader.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return Run(seconds, spent, most / 1_000, json.loads(done[0]))


def usages(path: Path) -> dict[str, dict]:
    """Collect the last usage of each answer, of sub-agents beside the file too."""
    calls: dict[str, dict] = {}
    for line in gzip.decompress(path.read_bytes()).split(b"\n"):
        record = None
        with suppress(ValueError):
            record = json.loads(line)
        message = record.get("message") if isinstance(record, dict) else None
        if isinstance(record, dict) and record.get("type") == "progress":
            message = ((record.get("data") or {}).get("message") or {}).get("message")
        if isinstance(message, dict) and message.get("id") and message.get("usage"):
            calls[message["id"]] = message["usage"]
    for agent in path.with_name(path.name.removesuffix(".jsonl.gz")).glob("subagents/*.gz"):
        calls |= usages(agent)
    return calls


def naive(path: Path) -> tuple[int, int, int]:
    """Count calls, cache reads and writes without any of our readers."""
    used = [usage for usage in usages(path).values() if any(map(_count, usage.values()))]
    reads = sum(usage.get("cache_read_input_tokens") or 0 for usage in used)
    return len(used), reads, sum(usage.get("cache_creation_input_tokens") or 0 for usage in used)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def mismatches() -> int | None:
    """Count recorded files whose sums differ from a naive count; None where there are none."""
    found = sorted((RECORDED / "claude-code").glob("**/*.jsonl.gz"))
    if not found:
        return None
    wrong = 0
    for path in found:
        with open_transcript(path) as transcript:
            total = bill(transcript.entries).total.tally
        wrong += naive(path) != (total.calls, total.cache_read_tokens, total.cache_write_tokens)
    return wrong


def session_page() -> dict[str, int | None]:
    """Write the page of a long session; return its size and how long a browser takes to draw it."""
    with tempfile.TemporaryDirectory(prefix="longhold-page-") as name:
        session, page = Path(name) / "session.jsonl", Path(name) / "page.html"
        write_large(session, 5, 10_000_000)
        command = [sys.executable, "-m", "longhold", "inspect", str(session), "--html", str(page)]
        environment = os.environ | {"LONGHOLD_HOME": str(Path(name) / "home")}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        return {"page_kb": page.stat().st_size // 1_000, "page_draw_ms": draw_ms(page)}


def draw_ms(page: Path) -> int | None:
    """Open a page in headless Chromium, from the address to the last plot; best of three."""
    from browser import CHROMIUM, chromium  # the tests' support, which the harness put on the path

    if CHROMIUM is None:
        return None
    taken = []
    with (
        tempfile.TemporaryDirectory(prefix="longhold-chromium-") as profile,
        chromium(Path(profile)) as browser,
    ):
        for _ in range(3):
            browser.open(page.as_uri())
            taken.append(int(browser.run("document.documentElement.dataset.drawn")))
    return min(taken)


def measure(megabytes: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="longhold-report-") as name:
        directory, home = Path(name) / "sessions", Path(name) / "home"
        directory.mkdir()
        home.mkdir(mode=0o700)
        sessions = fill(directory, megabytes)
        first = run(directory, home)
        again = [run(directory, home) for _ in range(3)]
        run(directory, home, "--html", str(home / "report.html"))
        page = (home / "report.html").stat().st_size
        read = run(directory, home, QUERIES[0], command="history")
        searches = [
            min(run(directory, home, query, command="history") for _ in range(3))
            for query in QUERIES
        ]
        assert all(one.report["total"] for one in searches)
        words_mb = (home / "history.sqlite").stat().st_size / 1e6
    slowest = max(searches)
    assert all(one.report["total"] == first.report["total"] for one in again)
    second = min(again, key=lambda one: one.seconds)
    return {
        "mb": megabytes,
        "sessions": sessions,
        "calls": first.report["total"]["calls"],
        "first_s": round(first.seconds, 2),
        "first_cpu_s": round(first.cpu_seconds, 2),
        "second_s": round(second.seconds, 3),
        "second_cpu_s": round(second.cpu_seconds, 3),
        "rss_mb": round(max(one.most_mb for one in (first, *again, read, *searches))),
        "mismatches": mismatches(),
        "report_page_kb": round(page / 1_000),
        "search_ms": round(slowest.seconds * 1_000),
        "search_cpu_ms": round(slowest.cpu_seconds * 1_000),
        "search_starts": round(slowest.cpu_seconds / empty_start_seconds()),
        "search_first_s": round(read.seconds, 2),
        "search_first_cpu_s": round(read.cpu_seconds, 2),
        "words_mb": round(words_mb),
        **session_page(),
    }


def main() -> None:
    options = make_parser(__doc__, mb=40).parse_args()
    found = measure(options.mb)
    print_result(found, options.json)


if __name__ == "__main__":
    main()
