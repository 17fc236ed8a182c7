"""A model in this process that works on an invented project with real tools, endlessly.

It reads, searches, edits and runs commands in turn, reports after a while, and answers overhead
calls: summaries of its prompt, and memories from the user's words.
"""

import re
from collections.abc import AsyncIterator, Iterator
from itertools import takewhile
from pathlib import Path
from time import process_time

import msgspec

from longhold.core.messages import Content, Json, JsonObject, Text, ToolUse, Usage
from longhold.core.models.capabilities import capabilities
from longhold.core.models.protocol import Event, Reply, Request, play
from longhold.simulator.brains import BrainRequest
from longhold.simulator.brains.digest import DigestBrain

MODEL = "claude-sonnet-4-6"
FILES = 40
LINES = 300
READ_LINES = 69
TAIL_LINES = 46
FOUND_LINES = 17
"""With these an answer and its results have about 915 tokens, by characters, before anything is
cleared: the median of 24 recorded sessions of coding agents, counted the same way, is 914."""
THOUGHTS = 3
"""Sentences beside each call; they stay when the results are cleared."""
REPORT_EVERY = 12
"""Answers of which the last is a report and ends the run."""
CHARS_PER_TOKEN = 3.6
NOTES = "Pause here and bring the notes"
BESIDE = (NOTES, "The work pauses here", "You now ")
"""How questions beside the conversation begin."""
LOOK_BACK = 6
"""Messages in which such a question and what came of it lie."""


def make_project(root: Path) -> None:
    """Write the files that the worker works on."""
    (root / "src").mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        lines = [
            f"def step_{number}_{line}(value: int) -> int:  # part {line} of file {number}"
            if line % 4 == 0
            else f"    total_{line} = value * {line} + {number}"
            for line in range(LINES)
        ]
        (root / "src" / f"part_{number}.py").write_text("\n".join(["count = 0", *lines]) + "\n")


class Worker:
    """`gaps_ms` has the CPU time of this process from each answer to the next question."""

    def __init__(self, root: Path, begin: int = 0) -> None:
        """`begin` is how many answers another process gave before."""
        self.name, self.capabilities = MODEL, capabilities(MODEL)
        self.gaps_ms: list[float] = []
        self._root = root
        self._begin = begin
        self._asked = 0
        self._beside = DigestBrain()
        self._rested = process_time()
        self._sent: list[bytes] = []

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        beside = _question(request)
        if not beside:
            self.gaps_ms.append((process_time() - self._rested) * 1_000)
        self._asked += 1
        content = self._aside(request, beside) if beside else self._step()
        calls = any(isinstance(block, ToolUse) for block in content)
        usage = self._usage(request, is_main=not beside)
        reply = Reply(
            response_id=f"msg_{self._begin}_{self._asked}",
            model=MODEL,
            content=content,
            stop_reason="tool_use" if calls else "end_turn",
            usage=usage,
        )
        if not beside:
            self._rested = process_time()
        for event in play(reply):
            yield event

    async def count(self, request: Request) -> int | None:
        return None

    async def close(self) -> None:
        """Nothing to let go of."""

    def _usage(self, request: Request, *, is_main: bool) -> Usage:
        """Report as read what the request shares with the conversation's last one."""
        given = request.kwargs
        parts = [given.get("tools", ()), given.get("system", ""), *given["messages"]]
        sent = [msgspec.json.encode(_plain(part)) for part in parts]
        pairs = zip(sent, self._sent, strict=False)
        shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
        read, rest = (sum(map(len, some)) for some in (sent[:shared], sent[shared:]))
        if is_main:
            self._sent = sent
        return Usage(
            cache_read_tokens=int(read / CHARS_PER_TOKEN),
            cache_write_tokens=int(rest / CHARS_PER_TOKEN),
            input_tokens=3,
            output_tokens=120,
        )

    def _step(self) -> Content:
        number = self._begin + len(self.gaps_ms)
        if number % REPORT_EVERY == 0:
            return (Text(text=f"Part {number // REPORT_EVERY} is done: the counts are raised."),)
        uses = (
            ToolUse(id=f"toolu_{self._begin}_{self._asked}_{place}", name=name, input=given)
            for place, (name, given) in enumerate(self._calls(number))
        )
        said = " ".join(
            f"Step {number}.{place} raises count {number * place} and leaves the others alone."
            for place in range(THOUGHTS)
        )
        return (Text(text=said), *uses)

    def _calls(self, number: int) -> Iterator[tuple[str, dict[str, str | int]]]:
        """Yield what is called in one answer: the file at hand is edited every other time."""
        name = f"src/part_{number // 2 % FILES}.py"
        path = self._root / name
        if number % 2:
            text = path.read_text()
            old = text[: text.index("    total_9 ")]
            new = f"count = {number}\n" + old.partition("\n")[2]
            yield "Edit", {"file_path": str(path), "old_string": old, "new_string": new}
            yield "Bash", {"command": f"git status 2>&1; tail -n {TAIL_LINES} {name}"}
        else:
            yield "Read", {"file_path": str(path), "limit": READ_LINES}
            yield (
                "Grep",
                {
                    "pattern": f"total_{number % LINES} =",
                    "output_mode": "content",
                    "head_limit": FOUND_LINES,
                },
            )

    def _aside(self, request: Request, asked: str) -> Content:
        """Answer a question beside the conversation; what calls a tool does so once."""
        if _last(request)[-1].get("type") == "tool_result":
            return (Text(text="That is all."),)
        if asked.startswith(NOTES):
            return (self._noted(asked),)
        answer = self._beside.answer(
            BrainRequest(
                model=MODEL,
                system=(),
                tools=tuple(request.kwargs.get("tools", ())),
                messages=tuple(_in_blocks(message) for message in request.kwargs["messages"]),
                max_tokens=4_096,
            )
        )
        return tuple(
            Text(text=str(block["text"]))
            if block["type"] == "text"
            else ToolUse(
                id=f"toolu_{self._begin}_{self._asked}_{place}",
                name=str(block["name"]),
                input=block["input"],
            )
            for place, block in enumerate(answer.blocks)
        )

    def _noted(self, asked: str) -> ToolUse:
        path, line = re.findall(r"The notes lie in (.+)\. This|## Current state\n(.+)", asked)
        given = {
            "file_path": path[0],
            "old_string": line[1],
            "new_string": f"{line[1]}\nStep {len(self.gaps_ms)} was done last.",
        }
        return ToolUse(id=f"toolu_{self._begin}_{self._asked}", name="Edit", input=given)


def _in_blocks(message: JsonObject) -> JsonObject:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {"role": message["role"], "content": blocks}


def _plain(part: Json) -> Json:
    """Leave out the cache markers, which move."""
    if isinstance(part, dict):
        return {key: _plain(value) for key, value in part.items() if key != "cache_control"}
    return [_plain(each) for each in part] if isinstance(part, list | tuple) else part


def _last(request: Request) -> list[JsonObject]:
    return list(_in_blocks(request.kwargs["messages"][-1])["content"])


def _question(request: Request) -> str:
    """Return what is asked beside the conversation; "" if this is the conversation itself."""
    for message in request.kwargs["messages"][-1:-LOOK_BACK:-1]:
        for block in reversed(_in_blocks(message)["content"]):
            if str(block.get("text", "")).startswith(BESIDE):
                return str(block["text"])
    return ""
