"""The page of the peers: each compared with Longhold, and where it is better."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from peering.driver import PEERS

OURS = "ours"
WORK = {
    "ms_per_turn_1000": "ms a turn at 1,000",
    "ms_per_turn_10000": "at 10,000",
    "usd": "cost, $",
    "summaries": "summaries",
    "prefix_moves": "prefix moves",
    "over_window_calls": "over the window",
    "rule_violations": "rules broken",
}
KEPT = {
    "tokens_share": "tokens after",
    "user_messages": "user's messages",
    "changed_files": "files changed",
    "read_files": "files read",
    "commands": "commands",
    "errors": "errors",
    "anchors_said": "names said",
    "anchors_seen": "names seen",
}
"""Shares, as `retention.py` measures them."""
LESS_IS_BETTER = frozenset(WORK) - {"summaries"} | {"tokens_share"}
JUDGED = (set(WORK) | set(KEPT)) - {"summaries"}
HEAD = """# Beside other libraries

`python benchmarks/peers.py --page benchmarks/results/peers.md` drives each library, in an environment of its own and through its
public API, on the same recorded sessions ({sessions}, {calls} calls, a window of 200K, Python {python}), with the same
scripted summary, and writes this page. What it would send is billed by the [simulator](../../docs/models.md)'s cache at the
recorded pace; it is given the usage that a provider would report. Times are processor time of the library's own work
in a turn in which nothing is due, not how messages are put into its types; ours is the whole of `prepare`, `record` and
`tool_result`, the log included. A turn of ours and of the sessions in a file is on disk when it ends; the others keep
nothing that outlives the process.

"""
BETWEEN = """
What is kept, as shares, in the view when it first became smaller (a dash: nothing of the kind was there, or it never
became smaller). A large share of the tokens keeps more of everything, and costs more with every call.

"""
SETTINGS = """
## How each is set

"""
BETTER = """
## Where others are better

"""
NOTE = """
Those nearest by the turn do the least in it: a session that stores items and returns the newest neither measures them
nor decides anything. Names count as seen where the text holds them, however it is ordered. Two sessions are few: the
shares say what a library keeps, not how much better one is by a few hundredths.
"""


def render(found: Mapping[str, Any]) -> str:
    """Write the page from what `peers.py` prints."""
    rows = {OURS: found[OURS], **found["peers"]}
    text = HEAD.format(**found)
    text += "".join(_table(rows, WORK)) + _quickest(found[OURS], found["peers"])
    text += BETWEEN + "".join(_table(rows, KEPT))
    text += SETTINGS + "".join(_settings(found["peers"]))
    return text + BETTER + "".join(_better(found[OURS], found["peers"])) + NOTE


def _table(rows: Mapping[str, Mapping[str, Any]], columns: Mapping[str, str]) -> Iterator[str]:
    yield f"| | {' | '.join(columns.values())} |\n"
    yield f"|---|{'---|' * len(columns)}\n"
    for name, one in rows.items():
        cells = " | ".join(_cell(one.get(key)) for key in columns)
        yield f"| {'**ours**' if name == OURS else f'`{name}`'} | {cells} |\n"


def _cell(value: float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, int) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _quickest(ours: Mapping[str, Any], peers: Mapping[str, Mapping[str, Any]]) -> str:
    """Say how the quickest of the others compares, at either length."""
    said = []
    for key, messages in (("ms_per_turn_1000", "1,000"), ("ms_per_turn_10000", "10,000")):
        times = {name: one[key] for name, one in peers.items() if one.get(key) is not None}
        if times and ours.get(key):
            name = min(times, key=times.__getitem__)
            said.append(f"{times[name] / ours[key]:.2f} times ours at {messages} (`{name}`)")
    return f"\nA turn of the quickest other takes {', '.join(said)}.\n" if said else ""


def _settings(peers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, one in peers.items():
        said = " ".join((inspect.getdoc(PEERS[name]) or "").split())
        reason = f" Not measured in full: {one['reason']}." if "reason" in one else ""
        yield f"- `{name}` {one.get('version', '')}: {said}{reason}\n"


def _better(ours: Mapping[str, Any], peers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Name, for every measure, the peers whose figure is better than ours."""
    for key, label in (WORK | KEPT).items():
        own = ours.get(key)
        if key not in JUDGED or own is None:
            continue
        theirs = {name: one[key] for name, one in peers.items() if one.get(key) is not None}
        ahead = [
            f"`{name}` ({_cell(value)})"
            for name, value in theirs.items()
            if (value < own if key in LESS_IS_BETTER else value > own)
        ]
        if ahead:
            yield f"- {label} (ours {_cell(own)}): {', '.join(ahead)}\n"
