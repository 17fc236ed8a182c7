"""Whether `longhold history` finds the session that a user means.

Asks each labelled query (`benchmarks/data/history_queries.toml`) of all recorded sessions. `first`
is the share whose session comes first, `first_three` the share among the first three. A sub-agent's
file counts as its session. `tuned` and `held_back` are the even and the odd queries.

    python benchmarks/history.py [--json]
"""

import time
import tomllib
from contextlib import closing
from pathlib import Path

from harness import RECORDED, make_parser, percentile, print_result, temporary_home
from longhold.insight.session_files import find_sessions
from longhold.insight.session_search import SessionWords, search_sessions

QUERIES = Path(__file__).parent / "data" / "history_queries.toml"


def place_of(meant: str, paths: list[str]) -> int:
    """Return the rank of the session meant, from 1; 0 if it is not among those shown."""
    for rank, path in enumerate(paths, start=1):
        if any(part.startswith(meant) for part in Path(path).parts):
            return rank
    return 0


def share(ranks: list[int], most: int) -> float:
    return round(sum(1 <= rank <= most for rank in ranks) / len(ranks), 4) if ranks else 0.0


def main() -> None:
    options = make_parser(__doc__).parse_args()
    queries = tomllib.loads(QUERIES.read_text())["queries"]
    ranks, seconds, missed = [], [], []
    with temporary_home(), closing(SessionWords()) as words:
        files = find_sessions([RECORDED])
        words.refresh(files)
        for query, meant in queries:
            began = time.perf_counter()
            found = search_sessions(words, files, query)
            seconds.append(time.perf_counter() - began)
            ranks.append(place_of(meant, [hit.path for hit in found.hits]))
            if ranks[-1] != 1:
                first = Path(found.hits[0].path).name if found.hits else "nothing"
                missed.append(f"{query!r}: place {ranks[-1]}, first {first}")
    print_result(
        {
            "sessions": len(files),
            "queries": len(queries),
            "first": share(ranks, 1),
            "first_three": share(ranks, 3),
            "tuned": {"first": share(ranks[::2], 1), "first_three": share(ranks[::2], 3)},
            "held_back": {"first": share(ranks[1::2], 1), "first_three": share(ranks[1::2], 3)},
            "p50_ms": round(1000 * percentile(seconds, 0.5), 1),
            "missed": missed,
        },
        options.json,
    )


if __name__ == "__main__":
    main()
