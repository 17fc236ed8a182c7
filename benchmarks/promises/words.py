"""Whether the model still reads all of the user's words after five compactions.

Messages of 10 to 50,000 characters are typed, pasted, queued while another agent worked (and
imported with its transcript), and given as the reason of a refusal. The summaries are written once
by a model and once by a digest. A line of a message counts as kept if the next request contains it
verbatim.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import anthropic

from longhold.agent.build import build_agent
from longhold.agent.permissions import Answer, Question
from longhold.core.log import Header
from longhold.core.log.store import FileStore, new_id
from longhold.core.messages import JsonObject
from longhold.core.models.anthropic import AnthropicModel
from longhold.core.settings import MemorySettings, NotesSettings, Settings
from longhold.insight.transcripts.formats import open_transcript
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use

MODEL = "simulated/claude-sonnet-4-6"
SIZES = (10, 100, 1_000, 4_000, 8_000, 25_000, 50_000)
COMPACTIONS = 5
EDIT = "Edit number "
WORK = "I went on with the importer. " * 600
TITLES = {
    1: "Request and intent",
    2: "Technical concepts",
    4: "Errors and fixes",
    5: "Problem solving",
    7: "Pending tasks",
    8: "Current work",
    9: "Next step",
}
SUMMARY = "".join(
    f"## {n}. {title}\nThe importer is being written.\n" for n, title in TITLES.items()
)


class Worker:
    """Works without end; tries an edit where it is asked to, so that the user can refuse it."""

    def __init__(self) -> None:
        self.read = ""
        """What the model read with the last request."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        blocks = [block for message in request.messages for block in message["content"]]
        self.read = "\n".join(map(_text, blocks))
        last = _text(blocks[-1])
        if "The work pauses here" in last:
            return BrainAnswer(blocks=(text(f"<summary>{SUMMARY}</summary>"),))
        if last.startswith(EDIT):
            written = {"file_path": f"{last.removeprefix(EDIT)}.txt", "content": "x"}
            return BrainAnswer(blocks=(tool_use("Write", written),))
        return BrainAnswer(blocks=(text(WORK),))


def _text(block: JsonObject) -> str:
    content = block.get("text", block.get("content", ""))
    if isinstance(content, list):
        return "\n".join(map(_text, content))
    return str(content)


@dataclass(frozen=True, slots=True)
class Message:
    way: str
    text: str


def written(way: str, size: int) -> Message:
    """Make up a message of so many characters, no two lines alike."""
    if size < 50:
        return Message(way, f"{way[:3]} {size}".ljust(size, "."))
    lines = _log_lines(size) if way == "pasted" else _requirements(way, size)
    found: list[str] = []
    while sum(map(len, found)) + len(found) < size:
        found.append(next(lines))
    return Message(way, "\n".join(found)[:size].strip())


def _requirements(way: str, size: int) -> Iterator[str]:
    n = 0
    while True:
        n += 1
        yield f"{way} {size}.{n}: column {n * 7} must be checked against table_{n} before it is written."


def _log_lines(size: int) -> Iterator[str]:
    yield f"This is what it printed (case {size}), please mend the cause:"
    n = 0
    while True:
        n += 1
        yield f"2026-03-01 10:{n // 60 % 60:02}:{n % 60:02} ERROR importer[{size}] row {n}: bad value {n * 13:x}"


def kept_share(said: list[Message], read: str) -> float:
    """Return the share of the lines that the model read."""
    lines = [line for message in said for line in message.text.splitlines()]
    return sum(line in read for line in lines) / len(lines)


async def user_words_kept(place: Path) -> dict[str, float]:
    """Return the share kept for each way and each kind of summary."""
    found = {}
    for way, by in product(("typed", "pasted", "queued", "refused"), ("model", "digest")):
        project = place / f"{way}-{by}"
        await asyncio.to_thread(project.mkdir, parents=True)
        found[f"{way}, {by}"] = await _kept(way, by, project)
    return found


async def _kept(way: str, by: str, project: Path) -> float:
    brain, said = Worker(), [written(way, size) for size in SIZES]
    turns = [[f"{EDIT}{i}"] if way == "refused" else [one.text] for i, one in enumerate(said)]
    if way == "queued":
        turns = [[] for _ in said]
    with run_simulator(brain) as simulator:
        async with anthropic.AsyncAnthropic(base_url=simulator.url, api_key="any") as client:
            talk = Talk(project, client, refusals=[message.text for message in said])
            if way == "queued":
                talk.take_up(_transcript(said))
            for number, words in enumerate(turns):
                await talk.say(*words, f"now part {number}", f"then test part {number}")
                if number >= len(turns) - COMPACTIONS:
                    await talk.compact(by)
            await talk.say("go on")
    return kept_share(said, brain.read)


class Talk:
    """A session that an agent works in, and that is compacted while the agent is away."""

    def __init__(
        self, project: Path, client: anthropic.AsyncAnthropic, refusals: list[str]
    ) -> None:
        self._project = project
        self._client = client
        self._refusals = refusals
        self._id = ""
        self._settings = Settings(
            notes=NotesSettings(on=False),
            memory=MemorySettings(on=False),
        )

    def take_up(self, transcript: list[JsonObject]) -> None:
        """Go on with another agent's session."""
        file = self._project / "transcript.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in transcript))
        self._id = new_id()
        header = Header(session=self._id, directory=str(self._project))
        with open_transcript(file) as found:
            FileStore().add(header, found.entries)

    async def say(self, *prompts: str) -> None:
        agent = await build_agent(
            AnthropicModel(MODEL, client=self._client),
            directory=self._project,
            resume=self._id,
            ask=self._refuse,
            source="chat",
            settings=self._settings,
        )
        self._id = agent.session.id
        for prompt in prompts:
            async for _ in agent.run(prompt):
                pass
        await agent.close()

    async def _refuse(self, _question: Question) -> Answer:
        return Answer(choice="no", reason=self._refusals.pop(0))

    async def compact(self, by: str) -> None:
        """Summarise, with the model or without one."""
        client = self._client if by == "model" else None
        with Session.resume(self._id, settings=self._settings, client=client) as session:
            made = await session.compact()
        assert made.by == by, f"compacted by {made.by}, not by {by}"


def _transcript(said: list[Message]) -> list[JsonObject]:
    """Write a session during which all this was queued, each while a tool ran."""
    records: list[JsonObject] = [_record(0, "user", "Begin with the importer.")]
    for number, message in enumerate(said):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": "a"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}
        records += [
            _record(len(records), "assistant", [use], id=f"m{number}"),
            {"type": "queue-operation", "operation": "enqueue", "content": message.text},
            {"type": "queue-operation", "operation": "remove"},
        ]
        records.append(_record(len(records), "user", [result]))
    records.append(_record(len(records), "assistant", [text("Done.")], id="end"))
    return records


def _record(number: int, role: str, content: object, **more: str) -> JsonObject:
    """Write a record that hangs on the one before it; operations on the queue stand between."""
    message = {"role": role, "content": content} | ({"model": MODEL} if more else {}) | more
    gap = 3 if role == "user" else 1
    parent = f"u{number - gap}" if number else None
    return {"type": role, "uuid": f"u{number}", "parentUuid": parent, "message": message}
