"""Other libraries on the same sessions: time per turn, tokens after, what is kept, cost, API rules.

Each peer is installed into a virtual environment of its own (`--environments DIR`, by default in the user's
cache) and driven through its public API with its best documented settings (`peering/driver.py`), at the
same line, with the same scripted summary. What it would send is billed by the simulator at the
recorded pace, with markers on the system prompt and the newest two messages; a summary of its own
reads its messages without the cache, as these libraries ask for it. Rules are those of the Messages API.

`ms_per_turn_1000` and `ms_per_turn_10000` are medians of the library's own work for one turn of a session
with so many messages and nothing to do, each in a process of its own, in milliseconds of processor time, so
that other programs do not count, one turn after the other; ours includes writing the log.
`fastest_peer_ratio_…` is the fastest peer's time to ours, `fastest_on_disk_ratio_…` that of the fastest whose
turn is on disk when it ends, as ours is. Retention is measured as
`retention.py` does, where the view first became smaller. A peer that cannot be installed or driven
has a reason instead of figures.

    python benchmarks/peers.py [FILES…] [--peer NAME]… [--sessions N] [--environments DIR] [--page FILE]
        [--json]
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from harness import make_parser, print_result, recordings, temporary_home
from longhold.core.log.entries import Compacted
from longhold.insight.replay.policies import POLICIES
from longhold.insight.replay.recorded_session import RecordedSession, read_recording
from peering.ours import kept_by_ours, ms_per_turn
from peering.page import render
from peering.play import PeerProcess, Played, play_peer, timed

WINDOW_TOKENS = 200_000
LINE_TOKENS = 160_000
"""At 80 % of the window, where libraries begin by default or nearly so."""
QUIET_LINE_TOKENS = 50_000_000
"""Above anything: a turn in which nothing is due."""
SIZES = (1_000, 10_000)
PACKAGES = {
    "langchain_summary": ("langchain", ("langchain",)),
    "langchain_editing": ("langchain", ("langchain",)),
    "deepagents": ("deepagents", ("deepagents",)),
    "pydantic_ai": ("pydantic_ai", ("pydantic-ai-slim", "pydantic-ai-harness")),
    "openai_agents": ("openai_agents", ("openai-agents",)),
    "openai_agents_newest": ("openai_agents", ("openai-agents",)),
    "openai_agents_in_memory": ("openai_agents", ("openai-agents",)),
    "agent_framework": ("agent_framework", ("agent-framework-core",)),
    "headroom": ("headroom", ("headroom-ai",)),
    "litellm": ("litellm", ("litellm",)),
}
"""For each peer its environment, and what is installed into it."""
ON_DISK = ("openai_agents", "openai_agents_newest")
"""Those whose turn is on disk when it ends, as ours is."""
INSTALL_SECONDS = 600
PLAY_SECONDS = 300
"""For all sessions of one peer; one that takes longer has its times only, and a reason."""


def environment(place: Path, packages: Sequence[str]) -> Path:
    """Return the interpreter of an environment, made if it is not there."""
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True, timeout=INSTALL_SECONDS)
        install = [python, "-m", "pip", "install", "--quiet", *packages]
        subprocess.run(install, check=True, timeout=INSTALL_SECONDS)
    return python


def version_of(python: Path, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


def figures(played: Sequence[Played]) -> dict[str, Any]:
    """Sum up what a library made of the sessions."""
    kept = [one.scores for one in played if one.scores]
    names = sorted({name for scores in kept for name in scores if name != "tokens_share"})
    shares = [one.tokens_share for one in played if one.tokens_share is not None]
    return {
        "usd": round(sum(one.usd for one in played), 4),
        "prefix_moves": sum(one.prefix_moves for one in played),
        "over_window_calls": sum(one.over_window_calls for one in played),
        "summaries": sum(one.summaries for one in played),
        "rule_violations": sum(one.rule_violations for one in played),
        "tokens_share": round(statistics.median(shares), 4) if shares else None,
        **{name: _median([scores.get(name) for scores in kept]) for name in names},
    }


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(statistics.median(known), 4) if known else None


def ours(found: Sequence[RecordedSession]) -> dict[str, Any]:
    """Measure ours as the others are: the same sessions, the same line's window."""
    played = []
    for recording in found:
        result = POLICIES["ours"].play(
            recording,
            model=recording.model,
            lifetime=recording.lifetime,
            window_tokens=WINDOW_TOKENS,
        )
        kept = kept_by_ours(recording, WINDOW_TOKENS)
        played.append(
            Played(
                usd=result.total.usd,
                prefix_moves=result.prefix_moves,
                over_window_calls=result.over_window_calls,
                summaries=result.own["compact"].calls if "compact" in result.own else 0,
                rule_violations=kept.rule_violations,
                tokens_share=kept.tokens_share,
                scores=kept.scores,
            )
        )
    times = {f"ms_per_turn_{n}": own_process(ms_per_turn, n) for n in SIZES}
    return times | figures(played)


def own_process(measure: Callable[[int], float], size: int) -> float:
    """Measure in a process that has done nothing else, as each peer is."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, size).result()


def measured(name: str, place: Path, found: Sequence[RecordedSession]) -> dict[str, Any]:
    """Install and drive a peer; what was found until something failed, and the reason."""
    folder, packages = PACKAGES[name]
    known: dict[str, Any] = {}
    try:
        python = environment(place / folder, packages)
        known["version"] = version_of(python, packages[-1])
        for size in SIZES:
            with PeerProcess(python, name, QUIET_LINE_TOKENS) as peer:
                known[f"ms_per_turn_{size}"] = timed(peer, size)
        until, played = time.monotonic() + PLAY_SECONDS, []
        for recording in found:
            with PeerProcess(python, name, LINE_TOKENS) as peer:
                played.append(play_peer(peer, recording, WINDOW_TOKENS, until=until))
        return known | figures(played)
    except (OSError, subprocess.SubprocessError, RuntimeError, ValueError) as error:
        return known | {"reason": f"{type(error).__name__}: {str(error).splitlines()[-1][:200]}"}


def chosen_sessions(files: Sequence[Path], most: int) -> list[RecordedSession]:
    """Read sessions on record from their beginning, those that were compacted most often first."""
    found: dict[int, list[RecordedSession]] = defaultdict(list)
    for path in files:
        recording = read_recording(path)
        full = sum(isinstance(entry, Compacted) for entry in recording.entries)
        if full and recording.answers and not recording.missing_tokens:
            found[full].append(recording)
    return [one for full in sorted(found, reverse=True) for one in found[full]][:most]


def ratios(ours: dict[str, Any], peers: dict[str, dict[str, Any]]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for size in SIZES:
        key = f"ms_per_turn_{size}"
        times = {name: one[key] for name, one in peers.items() if one.get(key)}
        kept = {name: ms for name, ms in times.items() if name in ON_DISK}
        for words, among in (("fastest_peer", times), ("fastest_on_disk", kept)):
            fastest = min(among.values(), default=None)
            found[f"{words}_ratio_{size}"] = fastest and round(fastest / ours[key], 2)
    first, last = (f"ms_per_turn_{size}" for size in SIZES)
    found["ours_growth"] = round(ours[last] / ours[first], 2)
    fit = [one["usd"] for one in peers.values() if one.get("over_window_calls") == 0]
    found["cheapest_peer_usd"] = min(fit, default=None)
    return found


def main() -> None:
    parser = make_parser(__doc__, takes_files=True, sessions=2)
    parser.add_argument("--peer", action="append", default=[], choices=list(PACKAGES))
    parser.add_argument("--environments", type=Path, default=None)
    parser.add_argument("--page", type=Path, help="write a page of it to this file")
    given = parser.parse_args()
    place = given.environments or Path(
        os.environ.get("LONGHOLD_PEERS", Path.home() / ".cache" / "longhold-peers")
    )
    place.mkdir(parents=True, exist_ok=True)
    with recordings(given.files, within="claude-code/entire-cli") as files, temporary_home():
        found = chosen_sessions(files, given.sessions)
        own = ours(found)
        peers: dict[str, dict[str, Any]] = {}
        for name in given.peer or PACKAGES:
            peers[name] = measured(name, place, found)
            if not given.json:
                print(name, json.dumps(peers[name]), flush=True)
    fixed = {
        "sessions": len(found),
        "calls": sum(len(one.answers) for one in found),
        "line_tokens": LINE_TOKENS,
        "python": platform.python_version(),
    }
    result = {"ours": own, "peers": peers} | ratios(own, peers) | fixed
    if given.page:
        given.page.write_text(render(result), encoding="utf-8")
    print_result(result, given.json)


if __name__ == "__main__":
    main()
