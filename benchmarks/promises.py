"""Whether the layers keep their promises, end to end: one figure for each promise.

Agents, programs and commands work over HTTP, with the official SDK, against the simulator.

- `user_words_kept`: of what the user typed, pasted, queued and gave as reasons of refusals, 10 to
  50,000 characters each, the least share that the model still reads after five compactions
- `false_statements`: about tools that were running when their process was killed
- `background_survives_abort`: of the jobs beside a conversation, the share that goes on when the
  user stops a turn
- `dream_prunes`, `dream_keeps_good_part`: a dream deletes with a reason, and what it oversteps costs
  it nothing else
- `recall_after_compaction`: a memory that left the view is recalled again
- `tool_change_read_share`: of the cache, after tools, servers and instructions changed
- `denied_run_exit`: what `longhold run` exits with if calls were denied and nothing was changed

Exits with 1 if a promise is not kept.

    python benchmarks/promises.py [--kills 200] [--seed 1] [--json]
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harness import make_parser, print_result, temporary_home
from longhold.cli.run_command import NOTHING_DONE
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use
from promises.background import background_survives_abort
from promises.kills import false_statements
from promises.memories import dreams, recall_after_compaction
from promises.words import user_words_kept
from tool_changes import all_changes, tool_change_read_share

KEPT: dict[str, Callable[[float], bool]] = {
    "user_words_kept": lambda share: share == 1.0,
    "false_statements": lambda count: count == 0,
    "background_survives_abort": lambda share: share == 1.0,
    "dream_prunes": bool,
    "dream_keeps_good_part": bool,
    "recall_after_compaction": bool,
    "tool_change_read_share": lambda share: share >= 0.99,
    "denied_run_exit": lambda code: code == NOTHING_DONE,
}


class Writer:
    """Tries to write a file, once."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        if request.messages[-1]["content"][-1]["type"] == "tool_result":
            return BrainAnswer(blocks=(text("Done."),))
        written = {"file_path": "a.txt", "content": "x"}
        return BrainAnswer(blocks=(tool_use("Write", written),))


def denied_run_exit(project: Path) -> int:
    """Run a task whose only call is denied; return the exit code of the command."""
    project.mkdir()
    with run_simulator(Writer()) as simulator:
        model = ["--model", "claude-sonnet-5-5", "--base-url", simulator.url]
        command = [sys.executable, "-m", "longhold", "run", *model, "-p", "Write a.txt"]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert not (project / "a.txt").exists()
    assert "Nothing was changed: 1 call denied." in done.stderr, done.stderr
    return done.returncode


async def _in_process(place: Path) -> dict[str, object]:
    words = await user_words_kept(place / "words")
    for name in ("abort", "dreams", "recall"):
        (place / name / ".git").mkdir(parents=True)
    return {
        "user_words_kept": min(words.values()),
        "background_survives_abort": await background_survives_abort(place / "abort"),
        **await dreams(place / "dreams"),
        "recall_after_compaction": await recall_after_compaction(place / "recall"),
        "tool_change_read_share": tool_change_read_share(await all_changes(place / "tools")),
        "words": words,
    }


def main() -> None:
    wanted = make_parser(__doc__, kills=200, seed=1).parse_args()
    began = time.monotonic()
    with temporary_home() as place:
        os.environ["ANTHROPIC_API_KEY"] = "any"
        told = false_statements(place / "kills", wanted.kills, wanted.seed)
        found = {
            **asyncio.run(_in_process(place)),
            "false_statements": sum(map(len, told.values())),
            "denied_run_exit": denied_run_exit(place / "denied"),
        }
    figures = {name: found[name] for name in KEPT}
    broken = [name for name, is_kept in KEPT.items() if not is_kept(figures[name])]
    details = {"words": found["words"], "false": told, "kills": wanted.kills, "broken": broken}
    seconds = round(time.monotonic() - began, 1)
    print_result(figures | details | {"seconds": seconds}, wanted.json)
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
