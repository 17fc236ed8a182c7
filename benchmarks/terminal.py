"""The chat in a real pseudo-terminal: start time, key latency and memory.

`start_s`: from the start of the program to a prompt that takes keys, resuming a session of 10 MB;
`ready_s`: to the state of that session in sight. `key_lag_p99_ms`: from a key to its letter on the
screen, while an answer of 200 tokens a second comes from the simulator through the official SDK.
`rss_mb`: the program's memory with a resumed session of 10,000 messages. The load average says how
quiet the machine was; a busy one adds its own delays.

    python benchmarks/terminal.py [--starts 5] [--keys 200] [--json]
"""

import json
import os
import pty
import random
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import make_parser, print_result, rss_mb, write_large
from longhold.simulator import BrainAnswer, BrainRequest, SimulatorSettings, run_simulator
from longhold.simulator.brains import text

MODEL = "simulated/claude-sonnet-5-5"
SESSION_BYTES = 10_000_000
MESSAGES = 10_000
TOKENS_PER_SECOND = 200
DELTA_CHARS = 12
"""About three tokens, so that an event comes every 15 ms."""
LETTERS = [
    chr(code) for code in (*range(0x410, 0x482), *range(0x48A, 0x530), *range(0xAC00, 0xD7A3))
]
"""Each is typed once and stands nowhere else on the screen, so that it is seen when it is drawn."""
LINE_KEYS = 32
"""After so many the input is emptied, so that it stays on one line."""
BETWEEN_KEYS_SECONDS = 0.06
WAIT_SECONDS = 60.0
DRAWN = b"opening the session"
"""Below the prompt, the last line of the first screen."""
FULL = b"% left"
"""In the state of a session that is open."""


class Program:
    """The chat in a pseudo-terminal."""

    def __init__(self, home: Path, *words: str) -> None:
        self.began = time.monotonic()
        self._master, slave = pty.openpty()
        variables = {"LONGHOLD_HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "longhold", "chat", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=home,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        os.close(slave)
        self._shown = b""

    def type(self, words: str) -> None:
        os.write(self._master, words.encode())

    def wait_for(self, wanted: bytes) -> float:
        """Read until these bytes came; return the seconds since the start."""
        end = time.monotonic() + WAIT_SECONDS
        while wanted not in self._shown:
            ready, _, _ = select.select([self._master], [], [], end - time.monotonic())
            if not ready:
                raise SystemExit(f"no {wanted!r} in {self._shown[-2_000:]!r}")
            self._shown = self._shown[-200:] + os.read(self._master, 1 << 16)
        self._shown = self._shown.partition(wanted)[2]
        return time.monotonic() - self.began

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


class Talker:
    """Talks for as long as keys are typed; numbers only, so that no letter of ours is among them."""

    def __init__(self, keys: int) -> None:
        seconds = keys * (BETWEEN_KEYS_SECONDS + 0.05) + 10
        chosen = random.Random(1)
        numbers = (str(chosen.randrange(1_000)) for _ in range(int(seconds * TOKENS_PER_SECOND)))
        lines = "\n\n".join(" ".join(group) for group in zip(*[numbers] * 40, strict=False))
        self._said = lines

    def answer(self, request: BrainRequest) -> BrainAnswer:
        return BrainAnswer(blocks=(text(self._said),))


def starts(home: Path, count: int) -> tuple[list[float], list[float]]:
    """Start the chat on a long session; return when the prompt was there, and when the session was."""
    prompts, readies = [], []
    with run_simulator() as simulator:
        for _ in range(count):
            where = ("--base-url", simulator.url, "--model", MODEL)
            program = Program(home, *where, "--resume", "newest")
            prompts.append(program.wait_for(DRAWN))
            readies.append(program.wait_for(FULL))
            program.close()
    return prompts, readies


def lags(home: Path, keys: int) -> list[float]:
    """Type while an answer comes; return the milliseconds each key took to be seen."""
    settings = SimulatorSettings(
        between_events_seconds=DELTA_CHARS / 4 / TOKENS_PER_SECOND, delta_chars=DELTA_CHARS
    )
    found = []
    with run_simulator(Talker(keys), settings) as simulator:
        program = Program(home, "--base-url", simulator.url, "--model", MODEL)
        program.wait_for(FULL)
        program.type("talk\r")
        program.wait_for(b"writing")
        for number in range(keys):
            letter = LETTERS[number]
            if number % LINE_KEYS == 0:
                program.type("\x15")
                time.sleep(BETWEEN_KEYS_SECONDS)
            began = time.monotonic()
            program.type(letter)
            program.wait_for(letter.encode())
            found.append((time.monotonic() - began) * 1_000)
            time.sleep(BETWEEN_KEYS_SECONDS)
        program.close()
    return found


def large_session(home: Path) -> None:
    """Import a session of 10 MB."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "long.jsonl"
        write_large(file, 1, SESSION_BYTES)
        _longhold(home, "import", str(file))


def long_session(home: Path) -> None:
    """Import a session of 10,000 short messages."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "talk.json"
        roles = ("user", "assistant")
        messages = [
            {"role": roles[n % 2], "content": f"message {n}: {'words ' * 20}"}
            for n in range(MESSAGES)
        ]
        file.write_text(json.dumps({"messages": messages}))
        _longhold(home, "import", str(file))


def _longhold(home: Path, *words: str) -> None:
    variables = {**os.environ, "LONGHOLD_HOME": str(home)}
    subprocess.run(
        [sys.executable, "-m", "longhold", *words],
        cwd=home,
        env=variables,
        check=True,
        capture_output=True,
    )


def memory(home: Path) -> float:
    with run_simulator() as simulator:
        program = Program(home, "--base-url", simulator.url, "--model", MODEL, "--resume", "newest")
        program.wait_for(FULL)
        program.type("hello\r/agents\r")
        program.wait_for(b"No agent")  # which comes after the answer
        found = rss_mb(program.process.pid)
        program.close()
    return found


def main() -> None:
    arguments = make_parser(__doc__, starts=5, keys=200).parse_args()
    with tempfile.TemporaryDirectory() as place:
        homes = [Path(place) / name for name in ("large", "keys", "long")]
        for home in homes:
            home.mkdir(mode=0o700)
        large_session(homes[0])
        prompts, readies = starts(homes[0], arguments.starts)
        waits = sorted(lags(homes[1], arguments.keys))
        long_session(homes[2])
        rss = memory(homes[2])
    figures = {
        "start_s": round(statistics.median(prompts), 3),
        "ready_s": round(statistics.median(readies), 3),
        "key_lag_p50_ms": round(statistics.median(waits), 1),
        "key_lag_p99_ms": round(waits[int(len(waits) * 0.99) - 1], 1),
        "rss_mb": round(rss, 1),
        "load_average": round(os.getloadavg()[0], 1),
    }
    print_result(figures, arguments.json)


if __name__ == "__main__":
    main()
