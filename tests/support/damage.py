"""Logs damaged on purpose, as by disks, copies and people, reproducible by seed."""

import random
from typing import Literal, get_args

import msgspec

from longhold.core.messages import JsonObject

DamageKind = Literal["flip", "cut", "zero", "double", "swap", "renumber", "fake", "head"]
DAMAGE_KINDS: tuple[DamageKind, ...] = get_args(DamageKind)

MOST_ZEROS = 300
"""A block that never reached the disk reads as zeros; lines are about this long."""


def damage_log(log: bytes, kind: DamageKind, dice: random.Random) -> bytes:
    """Return the bytes of a log with one damage of a kind at a random place."""
    lines = log.splitlines(keepends=True)
    at = dice.randrange(1, len(lines)) if len(lines) > 1 else 0
    match kind:
        case "flip":
            place = dice.randrange(len(log))
            flipped = bytes([log[place] ^ (1 << dice.randrange(8))])
            return log[:place] + flipped + log[place + 1 :]
        case "cut":
            start = dice.randrange(len(log))
            return log[:start] + log[start + dice.randrange(1, len(log) - start + 1) :]
        case "zero":
            start = dice.randrange(len(log))
            count = min(dice.randrange(1, MOST_ZEROS), len(log) - start)
            return log[:start] + bytes(count) + log[start + count :]
        case "double":
            lines.insert(dice.randrange(1, len(lines) + 1), lines[at])
        case "swap":
            other = dice.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case "renumber":
            lines[at] = _change_line(
                lines[at], {"n": dice.choice((-1, 0, 1, 2**70, _number(dice, lines)))}
            )
        case "fake":
            lines.insert(dice.randrange(1, len(lines) + 1), _make_fake(dice, lines))
        case "head":
            lines[0] = dice.choice(
                (b"", b"\n", b"{}\n", b"\x00\x00\n", lines[0][: len(lines[0]) // 2])
            )
    return b"".join(lines)


def _number(dice: random.Random, lines: list[bytes]) -> int:
    return dice.randrange(1, 2 * len(lines) + 2)


def _change_line(line: bytes, fields: JsonObject) -> bytes:
    try:
        known = msgspec.json.decode(line, type=dict[str, object])
        return msgspec.json.encode(known | fields) + b"\n"
    except (msgspec.MsgspecError, OverflowError, RecursionError):
        return b'{"entry":"said","content":[],"n":99999999999999999999999}\n'


def _make_fake(dice: random.Random, lines: list[bytes]) -> bytes:
    """Make up an entry that acts on places of the log, there or not."""
    n, first, last = (_number(dice, lines) for _ in range(3))
    made: JsonObject = dice.choice(
        (
            {"entry": "undone", "target": first},
            {"entry": "redone", "target": first},
            {"entry": "snipped", "targets": [first, last]},
            {"entry": "collapsed", "first": first, "last": last, "text": "a line"},
            {"entry": "compacted", "first": last, "last": first, "summary": []},
            {"entry": "cleared", "ids": ["call_0", "toolu_1"], "texts": [""]},
            {"entry": "pinned", "targets": [first]},
            {"entry": "ran", "tool_use_id": "nobody", "content": "x"},
            {"entry": "replied", "response_id": "", "content": []},
            {"entry": "framed", "rests_on": [first]},
        )
    )
    return msgspec.json.encode(made | {"n": n}) + b"\n"
