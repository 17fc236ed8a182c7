"""Logs of a generated session, damaged in every way and reopened."""

import random
import tempfile
from pathlib import Path

import msgspec

from faults.tally import Tally
from harness import DAMAGE_KINDS, damage_log, generate
from longhold.core.log import Header, Log, load, write_log
from longhold.core.log.entries import AnyEntry
from longhold.core.messages.rules import violations
from longhold.core.settings import Settings
from longhold.core.turn.engine import Engine
from longhold.errors import NewerFormat, TranscriptError
from longhold.insight.transcripts.formats import read_lines

RECORDS = 120


def damaged_logs(count: int, seed: int) -> Tally:
    """Damage a log this often per kind; each opens, with all that is intact, and goes on."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "whole.jsonl"
        entries = read_lines(generate(seed, RECORDS), "claude-code")
        write_log(path, Header(session="whole"), entries)
        whole = path.read_bytes()
        spoilt = Path(place) / "spoilt.jsonl"
        for kind in DAMAGE_KINDS:
            for number in range(count):
                dice = random.Random(f"{seed} {kind} {number}")
                spoilt.write_bytes(damage_log(whole, kind, dice))
                tally.inputs += 1
                try:
                    tally.data_lost += lost_in(spoilt)
                except (NewerFormat, TranscriptError) as error:
                    tally.data_lost += bool(_intact(spoilt.read_bytes())) and not isinstance(
                        error, NewerFormat
                    )
                except Exception as error:  # noqa: BLE001 - that is what is looked for
                    tally.crashed(f"{kind} {number}", error)
    return tally


def lost_in(path: Path) -> int:
    """Open a damaged log and go on with it; count intact entries that it does not have."""
    numbers = {entry.n for entry in _intact(path.read_bytes()) if 0 < entry.n <= 2**53}
    engine = Engine(Log.open(path), Settings())
    with engine.log:
        engine.resume()
        engine.say("go on")
        broken = violations(engine.view.messages())
        if broken:
            raise AssertionError(broken[0])
        return len(numbers - {entry.n for entry in load(path).entries})


def _intact(data: bytes) -> list[AnyEntry]:
    found = []
    for line in data.split(b"\n"):
        try:
            found.append(msgspec.json.decode(line, type=AnyEntry))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return found
