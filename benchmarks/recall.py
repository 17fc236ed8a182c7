"""Recall: how often the right memory is among the five shown, and how long it takes.

Each turn of a conversation is one memory; each question names the turns that hold its answer.
A question is a hit when one of those is in what recall puts before the model. Measured is the
whole of `Recall.recall` without a model: search, reading, cutting, counting the use. With
LOCOMO.json (the LoCoMo conversations: ten, 1,986 questions with evidence) the questions are
people's; without it they are generated, with fewer words in common with their answers than a
copy has, and the hit rate says little about the world: only the latency is comparable.

At 200 a question's memories are turns of its own conversation; at 10,000 all conversations
together, filled up with generated turns.

Beside it stand two sets of our own, written to share few words with their answers and so harder
than people's questions: a chat of two friends, and, where the recorded sessions are, questions on
what was said in those. `by_words` is the same without the `recall` extra.

    python benchmarks/recall.py [LOCOMO.json] [--questions N] [--json]
"""

import asyncio
import gzip
import json
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from harness import RECORDED, make_parser, print_result
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory
from longhold.core.memory.recall import Recall
from longhold.core.memory.search import MemorySearch, load_installed
from longhold.core.memory.store import MemoryStore

SMALL, LARGE = 200, 10_000
SEED = 11
SHORT, LONG = 60, 700
"""Characters of a text in a session that count as one memory."""
RUNS = 3
"""Each question is asked so often and its best time counts: other work on the machine is not ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing that was said."""

    id: str
    text: str
    when: str = ""
    place: str = ""
    """Its conversation and its position there, as a memory's evidence names them."""


class Answer(NamedTuple):
    is_hit: bool
    ms: float
    cpu_ms: float
    """Of this thread, which other work on the machine does not change."""


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
        turns = placed(turns, f"conversation-{number}")
        known = {turn.id for turn in turns}
        for asked in one["qa"]:
            ids = tuple(f"{number}-{id}" for id in asked.get("evidence", ()))
            if known.intersection(ids):
                questions.append(
                    Question(text=asked["question"], evidence=ids, conversation=number)
                )
        conversations.append(turns)
    return conversations, questions


def placed(turns: list[Turn], conversation: str) -> list[Turn]:
    """Give each turn its place, which extraction records with every memory."""
    return [replace(turn, place=f"{conversation}#{n}") for n, turn in enumerate(turns)]


DATA = Path(__file__).parent / "data"


def two_friends() -> tuple[list[Turn], list[Question]]:
    """Read our own chat of two friends, and questions that share few words with their answers."""
    turns: list[Turn] = []
    when = ""
    for line in (DATA / "two_friends.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            when = line[2:]
        else:
            turns.append(Turn(id=f"f{len(turns) + 1}", text=line, when=when))
    questions = []
    for line in (DATA / "two_friends_questions.txt").read_text(encoding="utf-8").splitlines():
        lines, text = line.split("|")
        ids = tuple(f"f{n}" for n in lines.split())
        questions.append(Question(text=text, evidence=ids, conversation=0))
    return placed(turns, "friends"), questions


def recorded_sessions() -> tuple[list[Turn], list[Question]]:
    """Read what was said in the recorded sessions, and our questions on it; nothing without them."""
    turns: list[Turn] = []
    by_record: dict[str, list[str]] = {}
    questions = (DATA / "session_questions.txt").read_text(encoding="utf-8").splitlines()
    names = sorted({line.split()[0] for line in questions})
    for path in [path for name in names for path in RECORDED.glob(f"claude-code/*/{name}")]:
        said: list[Turn] = []
        for record, text in _said_in(path):
            said.append(Turn(id=f"s{len(turns) + len(said)}", text=text))
            by_record.setdefault(f"{path.name} {record}", []).append(said[-1].id)
        turns += placed(said, path.name)
    asked = [line.split("|") for line in questions]
    return turns, [
        Question(text=text, evidence=tuple(by_record[key]), conversation=0)
        for key, text in asked
        if key in by_record
    ]


def _said_in(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of a session with the ids of their records; short and long ones are left out."""
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        for line in file:
            with suppress(ValueError, KeyError, TypeError):
                record = json.loads(line)
                content = record["message"]["content"]
                blocks = [{"text": content}] if isinstance(content, str) else content
                for text in (str(block.get("text", "")).strip() for block in blocks):
                    if SHORT <= len(text) <= LONG and not text.startswith("<"):
                        yield record["uuid"], text


def on_own_sets(directory: Path) -> dict[str, dict[str, object]]:
    """Ask our own questions, with and without the static embedding."""
    results: dict[str, dict[str, object]] = {}
    for name, read in (("two friends", two_friends), ("sessions", recorded_sessions)):
        turns, questions = read()
        if questions:
            with filled(directory / name, turns) as store:
                result: dict[str, object] = {"memories": len(turns), "questions": len(questions)}
                answers = asyncio.run(ask(store, questions))
                result |= figures(answers)
                # The weights were chosen on the even half.
                result["odd_half"] = figures(answers[1::2])["hit_rate_at_5"]
                by_words = MemorySearch(store.database, lambda: None)
                found = [
                    {
                        hit.file
                        for hit in [h for h in by_words.find(q.text, 10) if h.is_significant][:5]
                    }
                    for q in questions
                ]
                with_words = sum(bool(_right(q) & f) for q, f in zip(questions, found, strict=True))
                results[name] = result | {"by_words": round(with_words / len(questions), 4)}
    return results


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
            evidence=(turn.place,) if turn.place else (),
            body=f"{turn.when}\n{turn.text}\n",
        )
        changes.append(MemoryChange(file=memory.file, text=memory.text, expected=""))
    store.commit(changes, by="agent", why="benchmark")
    return store


async def ask(store: MemoryStore, questions: list[Question]) -> list[Answer]:
    """Ask every question in a session of its own."""
    answers = []
    for question in questions:
        times, cpu = [], []
        for _ in range(RUNS):
            recall = Recall(store, repository=store.root)
            began, cpu_began = time.perf_counter(), time.thread_time()
            found = await recall.recall(question.text)
            times.append((time.perf_counter() - began) * 1_000)
            cpu.append((time.thread_time() - cpu_began) * 1_000)
        is_hit = bool(found and _right(question) & set(found.names))
        answers.append(Answer(is_hit, min(times), min(cpu)))
    return answers


def _right(question: Question) -> set[str]:
    return {f"{id.replace(':', '-').lower()}.md" for id in question.evidence}


def at_small(
    conversations: list[list[Turn]], questions: list[Question], directory: Path
) -> list[Answer]:
    """Ask each question among 200 turns of its conversation, its evidence among them."""
    rng, answers = random.Random(SEED), list[Answer]()
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
            answers += asyncio.run(ask(store, members))
    return answers


def figures(answers: list[Answer]) -> dict[str, float]:
    took = sorted(one.ms for one in answers)
    cpu = sorted(one.cpu_ms for one in answers)
    last = min(len(took) - 1, int(len(took) * 0.99))
    return {
        "hit_rate_at_5": round(sum(one.is_hit for one in answers) / len(took), 4),
        "p50_ms": round(took[len(took) // 2], 2),
        "p99_ms": round(took[last], 2),
        "cpu_p99_ms": round(cpu[last], 2),
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="the LoCoMo conversations")
    parser.add_argument("--questions", type=int, default=0, help="ask only so many; 0 is all")
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
        own = on_own_sets(Path(name))
    result = {
        "data": options.file.name if options.file else "generated (no LoCoMo file was given)",
        "questions": len(questions),
        "meaning": load_installed() is not None,
        str(SMALL): figures(small),
        str(LARGE): figures(large),
        "own": own,
    }
    print_result(result, options.json)


if __name__ == "__main__":
    main()
