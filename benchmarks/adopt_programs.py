"""Five programs in a window of 32K, with a summariser that works and with one that fails.

Each program makes 240 turns at Longhold's default settings. Every request is checked by rules that
share no code with Longhold. `calls_twice` counts tool calls that the model repeated because its
prompt no longer mentioned them. `stuck` counts turns that did not end, `lost` turns that are not in
the log exactly once. Costs use one price for all, and are compared with LangChain's own
summarisation with prompt caching on the same turns.

    python benchmarks/adopt_programs.py [--turns 240] [--only langchain] [--json]
"""

import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

from adopting.programs import ALONE, CONVERSATION, PROGRAMS, question, talk
from adopting.provider import run_provider
from harness import make_parser, print_result, temporary_home
from longhold.core.log.entries import Compacted, Said
from longhold.core.log.store import FileStore
from longhold.core.messages import text_of

HERE = str(Path(__file__).parent)
sys.path[:] = [path for path in sys.path if path != HERE]  # a folder is called as a framework is


def measure(name: str, turns: int, *, summarises: bool) -> dict[str, Any]:
    """Run one program against a provider of its own."""
    with temporary_home(), tempfile.TemporaryDirectory() as place:
        began, error, done = time.perf_counter(), "", 0
        with run_provider(summarises=summarises) as (url, provider):
            try:
                done = talk(name, url, turns, Path(place))
            except Exception as problem:  # noqa: BLE001 - the figure says that it ended
                traceback.print_exc()
                error = f"{type(problem).__name__}: {problem}"[:300]
            found = provider.figures()
        found["seconds"] = round(time.perf_counter() - began, 1)
        found |= {"stuck": turns - done, "error": error}
        return found if name == ALONE else found | _read_log(turns)


def _read_log(turns: int) -> dict[str, Any]:
    entries = FileStore().load(CONVERSATION).entries
    heard = [text_of(one.content) for one in entries if isinstance(one, Said) and not one.hidden]
    said = Counter(words.partition("]]")[0] for words in heard)
    asked = [question(turn).partition("]]")[0] for turn in range(1, turns + 1)]
    compacted = [one.by for one in entries if isinstance(one, Compacted)]
    return {
        "lost": sum(said[one] != 1 for one in asked),
        "compactions": len(compacted),
        "compactions_by": dict(Counter(compacted)),
    }


def main() -> None:
    parser = make_parser(__doc__, turns=240)
    parser.add_argument("--only", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    options = parser.parse_args()
    alone = measure(ALONE, options.turns, summarises=True)
    found = {
        f"{name}, {'works' if summarises else 'fails'}": measure(
            name, options.turns, summarises=summarises
        )
        for name in options.only
        for summarises in (True, False)
    }
    total = {
        key: sum(one[key] for one in found.values()) for key in ("calls_twice", "stuck", "lost")
    }
    total["illegal"] = sum(sum(one["illegal"].values()) for one in found.values())
    total["usd_most"] = max(one["usd"] for one in found.values())
    total["usd_langchain_alone"] = alone["usd"]
    print_result({"programs": found, ALONE: alone, "total": total}, options.json)


if __name__ == "__main__":
    main()
