"""Two processes exchange mail while they are killed at random: is any mail lost or doubled?

Each process has a real log and a real mailbox. It sends its mails in order, noting each in its log
before and after, and delivers what it receives into the same log. Both are killed with SIGKILL
repeatedly, at any moment, and restarted. Mail whose sending was interrupted is sent again, as a
resumed sender would do. At the end each log is read: mail is lost if it was sent but never
delivered, doubled if it was delivered twice, and out of order if it overtook an earlier mail.

    python benchmarks/mail.py [--mails 10000] [--kills 40] [--seed 1] [--json]
"""

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from harness import make_parser, print_result
from longhold.agent.subagents.ledger import Delivery, Mailbox, agent_box
from longhold.agent.subagents.mail import Mail, Note
from longhold.core.log import Header, Log, load
from longhold.core.log.entries import AnyEntry, Began, Ran, Said
from longhold.core.messages import text_of
from longhold.core.settings import Settings
from longhold.core.turn.engine import Engine

NAMES = ("ada", "ben")
BATCH = 25
"""Mails sent between two looks into the mailbox."""
LIFE_SECONDS = 1.2
"""A process lives at most this long before it is killed, starting included."""
WORK_SECONDS = 120
"""The whole trial; it takes about a minute on a slow machine."""


def log_path(place: Path, name: str) -> Path:
    return place / f"{name}.jsonl"


def mail(name: str, to: str, number: int) -> Mail:
    text = f"mail {number} from {name} " + "x" * (number % 97)
    return Mail(id=f"{name}-{number}", sender=name, to=to, body=Note(text=text))


def first_unsent(history: list[AnyEntry]) -> int:
    """Find the first mail whose sending is not known to have succeeded."""
    return sum(isinstance(entry, Ran) for entry in history)


async def work(place: Path, name: str, mails: int) -> None:
    """Send and receive until all is sent and all has come."""
    other = NAMES[1 - NAMES.index(name)]
    path = log_path(place, name)
    log = Log.open(path) if path.exists() else Log.create(path, Header(session=name))
    engine = Engine(log, Settings())
    deliver, box = Delivery(agent_box(place, name)), Mailbox(agent_box(place, other))
    number = first_unsent(engine.view.history)
    received = sum(isinstance(entry, Said) for entry in engine.view.history)
    while number < mails or received < mails:
        for _ in range(min(BATCH, mails - number)):
            engine.record(Began(tool_use_id=f"use-{number}", tool="SendMessage"))
            box.send(mail(name, other, number))
            engine.record(Ran(tool_use_id=f"use-{number}", content="sent"))
            number += 1
        before = len(engine.view.history)
        await deliver(engine)
        received += len(engine.view.history) - before
        if number == mails:
            await asyncio.sleep(0.01)


def start(place: Path, name: str, mails: int) -> subprocess.Popen:
    words = [sys.executable, __file__, "--work", name, "--place", str(place)]
    return subprocess.Popen([*words, "--mails", str(mails)])


def trial(place: Path, mails: int, kills: int, seed: int) -> dict:
    """Run both, kill them at random, and let them come to their end."""
    dice = random.Random(seed)
    began = time.monotonic()
    running = {name: start(place, name, mails) for name in NAMES}
    killed = 0
    while killed < kills and any(child.poll() is None for child in running.values()):
        time.sleep(dice.uniform(0, LIFE_SECONDS))
        name = dice.choice(NAMES)
        if running[name].poll() is None:
            running[name].send_signal(signal.SIGKILL)
            running[name].wait()
            killed += 1
            running[name] = start(place, name, mails)
    for child in running.values():
        child.wait(timeout=max(1, WORK_SECONDS - (time.monotonic() - began)))
    found = [judged(place, name, mails) for name in NAMES]
    total = {key: sum(one[key] for one in found) for key in found[0]}
    return {
        "sent": 2 * mails,
        **total,
        "kills": killed,
        "resent": resent(place),
        "seconds": round(time.monotonic() - began, 1),
    }


def resent(place: Path) -> int:
    """Count the mails whose sending was cut short after it had begun."""
    entries = [entry for name in NAMES for entry in load(log_path(place, name)).entries]
    begun = sum(isinstance(entry, Began) for entry in entries)
    return begun - sum(isinstance(entry, Ran) for entry in entries)


def judged(place: Path, name: str, mails: int) -> dict[str, int]:
    """Read what one side was told, in the order it was told."""
    entries = load(log_path(place, name)).entries
    said = [text_of(entry.content) for entry in entries if isinstance(entry, Said)]
    numbers = [int(text.partition("| mail ")[2].split()[0]) for text in said]
    return {
        "lost": mails - len(set(numbers)),
        "doubled": len(numbers) - len(set(numbers)),
        "out_of_order": sum(a > b for a, b in pairwise(numbers)),
    }


def main() -> None:
    parser = make_parser(__doc__, mails=10_000, kills=40, seed=1)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        asyncio.run(work(options.place, options.work, options.mails))
        return
    with tempfile.TemporaryDirectory() as name:
        result = trial(Path(name), options.mails, options.kills, options.seed)
    print_result(result, options.json)


if __name__ == "__main__":
    main()
