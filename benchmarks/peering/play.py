"""Replays a recording to a peer call by call, and bills and scores the peer's requests."""

import json
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from longhold.core.log.entries import AnyEntry, Ran, Replied, Said
from longhold.core.messages import JsonObject, Message, ToolUse, Usage, content_from_wire, text_of
from longhold.core.messages.rules import violations
from longhold.core.models.prices import price_call
from longhold.core.models.protocol import Request
from longhold.core.request.billing.cache import SimulatorClock
from longhold.core.request.billing.tokens import encode
from longhold.core.view import fold
from longhold.insight.replay.billing import PromptBiller
from longhold.insight.replay.recorded_session import RecordedSession, filler
from retention import Scores, Segment, measure, told

DRIVER = Path(__file__).parent / "driver.py"
TURNS = 101
SMALLER = 0.9
"""A view that lost more than a tenth was made smaller."""
MARKED = 2
SUMMARY_TOKENS = 5_000
TIMED_SECONDS = 20.0
"""For the turns that are timed; a slow peer has fewer."""
Chat = dict[str, Any]


@dataclass(kw_only=True)
class Played:
    """What came of one session."""

    usd: float = 0.0
    prefix_moves: int = 0
    over_window_calls: int = 0
    summaries: int = 0
    rule_violations: int = 0
    tokens_share: float | None = None
    scores: Scores = field(default_factory=dict)


class PeerProcess:
    """A peer in its own environment, asked over its standard input."""

    def __init__(self, python: Path, name: str, line_tokens: int) -> None:
        self._words = [str(python), str(DRIVER), name, str(line_tokens)]

    def __enter__(self) -> "PeerProcess":
        self._process = subprocess.Popen(
            self._words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        )
        return self

    def ask(self, **asked: object) -> JsonObject:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(msgspec.json.encode(asked) + b"\n")
        self._process.stdin.flush()
        if not (line := self._process.stdout.readline()):
            raise RuntimeError("the peer ended without an answer")
        answer: JsonObject = msgspec.json.decode(line)
        return answer

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.wait()


def small_turn(number: int) -> list[Chat]:
    """One call of a tool, and its result: about a hundred tokens."""
    function = {"name": "Read", "arguments": json.dumps({"file_path": f"src/part_{number}.py"})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    said = f"Looking at part {number} of the work, as the plan says."
    text = f"value_{number} = {number}\n" * 10
    return [
        {"role": "assistant", "content": said, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "name": "Read", "content": text},
    ]


def timed(peer: PeerProcess, messages: int) -> float:
    """Give the median of a turn's milliseconds once there are so many messages."""
    start: list[Chat] = [{"role": "user", "content": "Do the work."}]
    for number in range(messages // 2):
        start += small_turn(number)
    peer.ask(turns=[start])
    turns = [small_turn(messages + number) for number in range(TURNS)]
    return round(statistics.median(peer.ask(turns=turns, seconds=TIMED_SECONDS)["ms"]), 3)


def play_peer(
    peer: PeerProcess, recording: RecordedSession, window_tokens: int, *, until: float
) -> Played:
    """Play a recording at its own pace, and bill and score what the peer would send.

    Raises TimeoutError if the process's clock (`time.monotonic`) passes `until`.
    """
    played, clock = Played(), SimulatorClock(is_frozen=True)
    biller = PromptBiller(clock, recording.counter, recording.density)
    earlier = clock.now() - next(entry.at for entry in recording.entries if entry.at)
    frame = filler(round(recording.frame_tokens / recording.density))
    new: list[Chat] = []
    largest, prompt = 0, 0
    reported: dict[str, int] = {}
    for entry, at in calls_of(recording, new):
        for answered in [message for message in new if message["role"] == "assistant"][:1]:
            answered["usage"] = reported
        if time.monotonic() > until:
            raise TimeoutError(f"{recording.name} was not at its end when the time was over")
        clock.advance(max(0.0, entry.at + earlier - clock.now()))
        answer = peer.ask(new=new)
        new.clear()
        wire = to_wire(answer["messages"])
        if answer["summaries"] > played.summaries:
            played.summaries = answer["summaries"]
            asked = Usage(input_tokens=prompt, output_tokens=SUMMARY_TOKENS)
            played.usd += price_call(recording.model, asked).usd
        bill = biller.bill(_request(recording, frame, wire))
        assert entry.usage is not None
        usage = bill.usage + Usage(output_tokens=entry.usage.output_tokens)
        prompt = usage.prompt_tokens
        reported = {"input_tokens": prompt, "output_tokens": usage.output_tokens}
        played.usd += price_call(recording.model, usage).usd
        played.prefix_moves += bill.moved
        played.over_window_calls += prompt > window_tokens
        text = texts(wire)
        if played.tokens_share is None and len(text) < SMALLER * largest:
            segment = segment_at(recording, at)
            played.scores = measure(text, segment, count, False)
            played.tokens_share = round(count(text) / max(1, segment.tokens), 4)
            played.rule_violations += len(violations(messages_of(wire)))
        largest = max(largest, len(text))
    return played


def calls_of(recording: RecordedSession, new: list[Chat]) -> Iterator[tuple[Replied, int]]:
    """Collect what is new in `new`; yield before each answer, with its place in the record."""
    names: dict[str, str] = {}
    seen: set[str] = set()
    for at, entry in enumerate(recording.entries):
        match entry:
            case Said(content=content):
                new.append({"role": "user", "content": text_of(content) or "(an image)"})
            case Ran(tool_use_id=id, content=content) if id in names:
                shown = {"role": "tool", "tool_call_id": id, "name": names[id]}
                new.append(shown | {"content": text_of(content) or "done"})
            case Replied():
                if entry.response_id not in seen and entry.usage and entry.usage.prompt_tokens:
                    if new and new[-1]["role"] != "assistant":
                        yield entry, at
                    seen.add(entry.response_id)
                _answer(entry, new, names)


def _answer(entry: Replied, new: list[Chat], names: dict[str, str]) -> None:
    uses = [block for block in entry.content if isinstance(block, ToolUse)]
    names |= {use.id: use.name for use in uses}
    calls = [
        {
            "id": use.id,
            "type": "function",
            "function": {"name": use.name, "arguments": json.dumps(use.input)},
        }
        for use in uses
    ]
    text = text_of(entry.content)
    if new and new[-1]["role"] == "assistant":
        new[-1]["content"] += text
        if calls:
            new[-1].setdefault("tool_calls", []).extend(calls)
    elif text or calls:
        shown: Chat = {"role": "assistant", "content": text}
        new.append(shown | ({"tool_calls": calls} if calls else {}))


def to_wire(messages: Sequence[Chat]) -> list[JsonObject]:
    """Put chat messages into the shape of the Messages API, nothing mended."""
    wire: list[JsonObject] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks: list[JsonObject] = []
        if message["role"] == "tool":
            id = message.get("tool_call_id")
            blocks = [{"type": "tool_result", "tool_use_id": id, "content": _text(message)}]
        elif text := _text(message):
            blocks = [{"type": "text", "text": text}]
        for call in message.get("tool_calls") or ():
            given = json.loads(call["function"]["arguments"] or "{}")
            use = {"id": call["id"], "name": call["function"]["name"], "input": given}
            blocks.append({"type": "tool_use", **use})
        if wire and wire[-1]["role"] == role:
            wire[-1]["content"] += blocks
        elif blocks:
            wire.append({"role": role, "content": blocks})
    return wire


def _text(message: Chat) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _request(recording: RecordedSession, frame: str, wire: list[JsonObject]) -> Request:
    lifetime: JsonObject = {"type": "ephemeral"}
    if recording.lifetime == "1h":
        lifetime["ttl"] = "1h"
    system = [{"type": "text", "text": frame, "cache_control": lifetime}]
    marked = [
        message
        if place < len(wire) - MARKED
        else message
        | {
            "content": [
                *message["content"][:-1],
                message["content"][-1] | {"cache_control": lifetime},
            ]
        }
        for place, message in enumerate(wire)
    ]
    return Request(kwargs={"model": recording.model, "system": system, "messages": marked})


def messages_of(wire: Sequence[JsonObject]) -> list[Message]:
    return [Message(one["role"], content_from_wire(one["content"])) for one in wire]


def texts(wire: Sequence[JsonObject]) -> str:
    """Join all that is sent, inputs of tools included."""
    found: list[str] = []
    for message in wire:
        for block in message["content"]:
            found.append(str(block.get("text") or block.get("content") or ""))
            found += [str(value) for value in (block.get("input") or {}).values()]
    return "\n".join(found)


def segment_at(recording: RecordedSession, at: int) -> Segment:
    """Return all that had been said by then, as `retention.py` scores it."""
    history: list[AnyEntry] = [
        entry for entry in recording.entries[:at] if isinstance(entry, Said | Replied | Ran)
    ]
    items = list(fold(history).items)
    return Segment("", history, items, "", sum(count(told(item)) for item in items))


def count(text: str) -> int:
    return len(encode(text))
