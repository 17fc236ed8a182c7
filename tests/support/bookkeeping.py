"""A long conversation with a tool, for any driver, and the provider's record of it."""

import json
import re
import urllib.request

from longhold.core.log import load
from longhold.core.log.entries import Compacted, Rewound, Said
from longhold.core.log.store import FileStore
from longhold.core.messages import text_of
from longhold.simulator import BrainAnswer
from longhold.simulator.brains import text, tool_use

MODEL = "claude-sonnet-4-6"
WINDOW = 20_000
TURNS = 24
"""With some 1,000 tokens a turn, more than the window holds."""
SYSTEM = "You keep the books of a small firm. " * 60


def question(turn):
    return f"This is turn {turn}: what do the books say?"


def lookup(turn: int) -> str:
    """Looks an entry of the books up."""
    rows = [f"row {n}: paid {turn * n} to the bakery on time" for n in range(70)]
    return "\n".join([f"entry {turn}", *rows])


class Clerk:
    """Looks an entry up in each turn, going by the last message alone."""

    def answer(self, request):
        last = json.dumps(request.messages[-1])
        if found := re.findall(r"entry (\d+)", last):
            return BrainAnswer(blocks=(text(f"Turn {found[-1]} is in the books."),))
        turns = re.findall(r"turn (\d+):", last)
        turn = int(turns[-1]) if turns else 0
        return BrainAnswer(blocks=(tool_use("lookup", {"turn": turn}),))


class Wire:
    """What the simulator saw."""

    def __init__(self, simulator):
        with urllib.request.urlopen(f"{simulator.url}/simulator/stats") as answer:
            stats = json.loads(answer.read())
        self.refused = {
            status: n for status, n in stats["totals"]["by_status"].items() if status != "200"
        }
        self.read_share = stats["totals"]["cache_read_ratio"]
        self.peak_tokens = max(
            one["read_tokens"] + one["write_5m_tokens"] + one["uncached_tokens"]
            for one in stats["requests"]
        )


def break_next(simulator, *faults):
    """Let the simulator's next answers be these faults."""
    body = json.dumps({"queue": list(faults)}).encode()
    head = {"content-type": "application/json"}
    request = urllib.request.Request(f"{simulator.url}/simulator/faults", body, head)
    urllib.request.urlopen(request).close()


TOO_LONG = "400"


def entries(session, kind):
    """List what a session's log has of a kind."""
    found = load(FileStore().find(session).path).entries
    return [entry for entry in found if isinstance(entry, kind)]


def assert_managed(simulator, session):
    """The window held, the cache was read, nothing was refused, and each turn is there once."""
    wire = Wire(simulator)
    assert wire.refused == {}
    assert wire.peak_tokens < WINDOW
    assert wire.read_share > 0.75  # short: the first, uncached prompts weigh more than in an hour
    assert entries(session, Compacted)
    assert not entries(session, Rewound)
    said = [text_of(e.content) for e in entries(session, Said) if not e.hidden]
    assert said == [question(turn) for turn in range(TURNS)]
