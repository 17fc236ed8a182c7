"""Recall by words: how often the right memory is among the five shown, and how long it takes.

Each turn of a conversation is one memory; each question names the turns that hold its answer.
A question is a hit when one of those is in what recall puts before the model. Measured is the
whole of `Recall.recall` without a model: search, reading, cutting, counting the use. With
LOCOMO.json (the LoCoMo conversations: ten, 1,986 questions with evidence) the questions are
people's; without it they are generated, with fewer words in common with their answers than a
copy has, and the hit rate says little about the world: only the latency is comparable.

At 200 a question's memories are turns of its own conversation; at 10,000 all conversations
together, filled up with generated turns.

    python benchmarks/recall.py [LOCOMO.json] [--questions N] [--json]
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from holdfast.memory.commits import MemoryChange
from holdfast.memory.memory import Memory
from holdfast.memory.recall import Recall
from holdfast.memory.store import MemoryStore

SMALL, LARGE = 200, 10_000
SEED = 11
RUNS = 3
"""Each question is asked so often and its best time counts: other work on the machine is not ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing that was said."""

    id: str
    text: str
    when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something asked later, and the turns that answer it."""

    text: str
    evidence: tuple[str, ...]
    conversation: int


def locomo(path: Path) -> tuple[list[list[Turn]], list[Question]]:
    """Read the LoCoMo file: turns of each conversation, and the questions that have evidence."""
    conversations, questions = [], []
    for number, one in enumerate(json.loads(path.read_text(encoding="utf-8"))):
        told = one["conversation"]
        turns = [
            Turn(
                id=f"{number}-{turn['dia_id']}",
                text=f"{turn['speaker']}: {turn['text']} {turn.get('blip_caption', '')}".strip(),
                when=told.get(f"{key}_date_time", ""),
            )
            for key in told
            if isinstance(told[key], list)
            for turn in told[key]
        ]
        known = {turn.id for turn in turns}
        for asked in one["qa"]:
            ids = tuple(f"{number}-{id}" for id in asked.get("evidence", ()))
            if known.intersection(ids):
                questions.append(
                    Question(text=asked["question"], evidence=ids, conversation=number)
                )
        conversations.append(turns)
    return conversations, questions


THINGS = {
    "moved to {value} for work last {month}": "Where does {who} live now?",
    "adopted a {value} from the shelter in {month}": "Which pet did {who} adopt?",
    "is allergic to {value}, so be careful at the {month} party": "What food can't {who} eat?",
    "runs the {value} service and is on call in {month}": "Which service is {who} on call for?",
    "prefers {value} over email since {month}": "How does {who} like to be contacted?",
    "bought a {value} in {month} and loves it": "What did {who} buy?",
    "will present the {value} results in {month}": "Which results does {who} present?",
    "learnt to play the {value} during {month}": "What instrument does {who} play?",
}
MONTHS = ("January", "March", "April", "June", "July", "September", "October", "December")
SYLLABLES = (
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "ke",
    "li",
    "mo",
    "nu",
    "pa",
    "re",
    "so",
    "ta",
    "vi",
)


def generated(count: int, asked: int, rng: random.Random) -> tuple[list[Turn], list[Question]]:
    """Make up turns about people, and questions about some of them."""
    turns, questions = [], []
    for number in range(count):
        first, last, value = (_word(rng, length).capitalize() for length in (2, 3, 3))
        who = f"{first} {last}"
        thing = rng.choice(list(THINGS))
        said = thing.format(value=value, month=rng.choice(MONTHS))
        turns.append(Turn(id=f"g{number}", text=f"{who} {said}."))
        if len(questions) < asked:
            text = THINGS[thing].format(who=who)
            questions.append(Question(text=text, evidence=(f"g{number}",), conversation=0))
    return turns, questions


def _word(rng: random.Random, syllables: int) -> str:
    return "".join(rng.choice(SYLLABLES) for _ in range(syllables))


def filled(place: Path, turns: list[Turn]) -> MemoryStore:
    """Make a store of turns, one memory each."""
    store = MemoryStore(place)
    now = time.time()
    changes = []
    for number, turn in enumerate(turns):
        memory = Memory(
            file=f"{turn.id.replace(':', '-').lower()}.md",
            name=turn.id,
            description=turn.text[:140],
            created=now - number,
            modified=now - number,
            body=f"{turn.when}\n{turn.text}\n",
        )
        changes.append(MemoryChange(file=memory.file, text=memory.text, expected=""))
    store.commit(changes, by="agent", why="benchmark")
    return store


async def ask(store: MemoryStore, questions: list[Question]) -> tuple[int, list[float]]:
    """Ask every question in a session of its own; give hits and milliseconds."""
    hits, took = 0, []
    for question in questions:
        times = []
        for _ in range(RUNS):
            recall = Recall(store, repository=store.root)
            began = time.perf_counter()
            found = await recall.recall(question.text)
            times.append((time.perf_counter() - began) * 1_000)
        took.append(min(times))
        right = {f"{id.replace(':', '-').lower()}.md" for id in question.evidence}
        hits += bool(found and right & set(found.names))
    return hits, took


def at_small(
    conversations: list[list[Turn]], questions: list[Question], directory: Path
) -> tuple[int, list[float]]:
    """Ask each question among 200 turns of its conversation, its evidence among them."""
    rng, hits, took = random.Random(SEED), 0, []
    groups: list[tuple[set[str], list[Question]]] = []
    for question in questions:
        for ids, members in groups:
            if members[0].conversation == question.conversation and len(ids) < SMALL - 10:
                ids.update(question.evidence)
                members.append(question)
                break
        else:
            groups.append((set(question.evidence), [question]))
    for number, (ids, members) in enumerate(groups):
        turns = conversations[members[0].conversation]
        needed = [turn for turn in turns if turn.id in ids]
        others = [turn for turn in turns if turn.id not in ids]
        chosen = needed + rng.sample(others, min(SMALL - len(needed), len(others)))
        with filled(directory / f"small-{number}", chosen) as store:
            found, times = asyncio.run(ask(store, members))
        hits, took = hits + found, took + times
    return hits, took


def figures(hits: int, took: list[float]) -> dict[str, float]:
    took = sorted(took)
    return {
        "hit_rate_at_5": round(hits / len(took), 4),
        "p50_ms": round(took[len(took) // 2], 2),
        "p99_ms": round(took[min(len(took) - 1, int(len(took) * 0.99))], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, help="the LoCoMo conversations")
    parser.add_argument("--questions", type=int, default=0, help="ask only so many; 0 is all")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rng = random.Random(SEED)
    if options.file:
        conversations, questions = locomo(options.file)
    else:
        turns, questions = generated(600, 400, rng)
        conversations = [turns]
    questions = questions[: options.questions or None]
    with tempfile.TemporaryDirectory() as name:
        small = at_small(conversations, questions, Path(name))
        every = [turn for turns in conversations for turn in turns]
        more, _ = generated(max(0, LARGE - len(every)), 0, random.Random(SEED + 1))
        more = [Turn(id=f"x{turn.id}", text=turn.text) for turn in more]
        with filled(Path(name) / "large", (every + more)[:LARGE]) as store:
            large = asyncio.run(ask(store, questions))
    result = {
        "data": options.file.name if options.file else "generated (no LoCoMo file was given)",
        "questions": len(questions),
        str(SMALL): figures(*small),
        str(LARGE): figures(*large),
    }
    if not options.json:
        for key, value in result.items():
            print(f"{key:>12}  {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
