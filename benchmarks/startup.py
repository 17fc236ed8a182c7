"""How long `import longhold` and `longhold --help` take, compared with `import anthropic`.

Each figure is the best of several fresh processes, the interpreter's own start included. The
kinds take turns, so that a busy machine slows all of them alike; one round before the first
writes the bytecode. `import_ratio`, `help_ratio` and `session_ratio` (the first use of
`longhold.Session`) are shares of `import anthropic`; `names_ms` is what loading every public name
takes, for comparison.

    python benchmarks/startup.py [--rounds 7] [--json]
"""

import os
import subprocess
import sys
import time

from harness import make_parser, print_result

KINDS = {
    "anthropic": ("-c", "import anthropic"),
    "import": ("-c", "import longhold"),
    "help": ("-m", "longhold", "--help"),
    "session": ("-c", "import longhold; longhold.Session"),
    "names": ("-c", "from longhold import *"),
}


def once(words: tuple[str, ...]) -> float:
    """Run one process to its end; return its milliseconds."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    command = [sys.executable, *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return (time.perf_counter() - began) * 1_000


def measure(rounds: int) -> dict[str, float]:
    """Return the best time of each kind, and the ratios."""
    for words in KINDS.values():
        once(words)
    runs = [{kind: once(words) for kind, words in KINDS.items()} for _ in range(rounds)]
    best = {kind: min(run[kind] for run in runs) for kind in KINDS}
    return {
        f"{kind}_ratio": round(best[kind] / best["anthropic"], 4)
        for kind in ("import", "help", "session")
    } | {f"{kind}_ms": round(took, 1) for kind, took in best.items()}


def main() -> None:
    options = make_parser(__doc__, rounds=7).parse_args()
    found = measure(options.rounds)
    print_result(found, options.json)


if __name__ == "__main__":
    main()
