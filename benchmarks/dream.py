"""Thirty generated sessions, six dreams without a model: is a fact lost, or an old one not marked?

Each session writes one memory per statement, with its evidence: facts, updates, contradictions,
cancellations, repetitions in the same or nearly the same words, and statements that look alike but
are all true. The store dreams after every fifth session. A planted fact is lost if no valid memory
states it. A superseded fact is not marked if a memory still states it as valid.

Updates name their subject in the original words, because a dream without a model can recognise only
those. Updates in other words are counted separately as `paraphrased_unmarked`.

    python benchmarks/dream.py [--sessions 30] [--seed 5] [--json]
"""

import random
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from harness import make_parser, print_result
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.dream import dream
from longhold.core.memory.memory import INDEX_BYTES, INDEX_LINE_CHARS, INDEX_LINES, Memory
from longhold.core.memory.store import MemoryStore
from longhold.core.settings import DreamSettings

DREAM_EVERY = 5
FACTS = 9
"""In each session; enough that not every live fact finds room in the index."""
LOOKALIKES = 3
"""In each session; enough that most find one they could be mistaken for."""
SERVICES = ("billing", "search", "login", "mail", "export", "report", "queue", "image", "audit")
ASPECTS = ("port", "database", "owner id", "queue name", "timeout", "bucket", "replica count")
WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays")
TRUE_TOGETHER = (
    "The {service} tests now use pytest",
    "The {service} tests use the staging database",
    "The {service} office hours are UTC",
    "The {service} office hours are 9-17",
    "The {service} main port is 8080",
    "The {service} main port is 8080/tcp",
    "The {service} team is now remote",
    "The {service} team is small",
    "The {service} team is friendly",
    "Never deploy the {service} service without Ann",
    "The {service} service is slow in winter",
    "The {service} service is documented in docs/{service}.md",
)
DAY = 86_400.0


@dataclass(slots=True)
class World:
    """What is true now, and what was."""

    rng: random.Random
    live: dict[str, str] = field(default_factory=dict)
    """By subject, the sentence that holds."""
    old: list[str] = field(default_factory=list)
    """Sentences that no longer hold."""
    reworded: list[str] = field(default_factory=list)
    """Sentences that no longer hold, of which only other words tell."""

    def session(self) -> list[str]:
        """Make up what one session says, and remember what of it is true."""
        said = [self._fact() for _ in range(FACTS)]
        said += [
            line for line in (self._update(), self._contradiction(), self._cancellation()) if line
        ]
        said += [self._again(), *(self._lookalike() for _ in range(LOOKALIKES))]
        if self.rng.random() < 0.3:
            said += self._reworded()
        return said

    def _value(self) -> str:
        return f"{self.rng.choice('abcdefgh')}{self.rng.randrange(100, 9_999)}"

    def _subject(self) -> str:
        place = f"{self.rng.choice(SERVICES)}-{self.rng.randrange(1, 40)}"
        return f"The {self.rng.choice(ASPECTS)} of {place}"

    def _fact(self) -> str:
        subject = self._subject()
        if subject in self.live:
            return self.live[subject]
        if self.rng.random() < 0.2:
            subject = f"deploy {self.rng.choice(SERVICES)}-{self.rng.randrange(1, 60)}"
            if subject in self.live or any(subject in line for line in self.old):
                return self._again()
            self.live[subject] = f"We {subject} on {self.rng.choice(WEEKDAYS)}"
        else:
            self.live[subject] = f"{subject} is {self._value()}"
        return self.live[subject]

    def _change(self, forms: tuple[str, ...]) -> str:
        known = [
            subject for subject in self.live if subject.startswith("The ") and " of " in subject
        ]
        if not known:
            return ""
        subject = self.rng.choice(known)
        self.old.append(self.live[subject])
        self.live[subject] = self.rng.choice(forms).format(subject=subject, value=self._value())
        return self.live[subject]

    def _update(self) -> str:
        return self._change(
            (
                "{subject} is now {value}",
                "{subject} moved to {value}",
                "{subject} changed to {value}",
            )
        )

    def _contradiction(self) -> str:
        return self._change(("{subject} is {value}",))

    def _cancellation(self) -> str:
        known = [subject for subject in self.live if subject.startswith("deploy ")]
        if not known:
            return ""
        subject = self.rng.choice(known)
        line = self.live.pop(subject)
        self.old.append(line)
        ended = line.replace("We deploy", "We no longer deploy")
        self.live[f"end of {subject}"] = ended
        return ended

    def _again(self) -> str:
        line = self.rng.choice(list(self.live.values()) or ["Nothing yet"])
        return line if self.rng.random() < 0.5 else f"{line}."

    def _lookalike(self) -> str:
        line = self.rng.choice(TRUE_TOGETHER).format(service=self.rng.choice(SERVICES))
        self.live[line] = line
        return line

    def _reworded(self) -> list[str]:
        name = f"{self.rng.choice(SERVICES)}-{self.rng.randrange(100, 999)}"
        self.reworded.append(f"Backups of {name} run at {self._value()}")
        return [self.reworded[-1], f"They take the nightly copy of {name} at {self._value()}"]


def write_session(store: MemoryStore, number: int, said: list[str], at: float) -> None:
    """Write down what a session said, as an extraction would."""
    changes = []
    for place, line in enumerate(said):
        moment = at + place
        memory = Memory(
            file=f"s{number:02}-{place:02}.md",
            name=f"Said in session {number}",
            description=line,
            created=moment,
            modified=moment,
            evidence=(f"s{number}#{place}",),
            body=f"{line.rstrip('.')}.\n",
        )
        changes.append(MemoryChange(file=memory.file, text=memory.text, expected=""))
    store.commit(changes, by="extraction", why=f"session {number}")


def holds(store: MemoryStore) -> set[str]:
    """Give every sentence that a memory says as one that holds."""
    return {one.description.rstrip(".") for one in store.memories() if not one.superseded_by}


def is_over(store: MemoryStore) -> bool:
    """Tell whether the index broke one of its limits."""
    text = (store.root / "MEMORY.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    return (
        len(lines) > INDEX_LINES
        or len(text.encode()) > INDEX_BYTES
        or any(len(line) >= INDEX_LINE_CHARS for line in lines)
    )


def run(place: Path, sessions: int, seed: int) -> dict[str, int]:
    world = World(rng=random.Random(seed))
    dreams = over = merged = marked = 0
    with MemoryStore(place) as store:
        for number in range(sessions):
            write_session(store, number, world.session(), 1_700_000_000.0 + number * DAY)
            if (number + 1) % DREAM_EVERY == 0:
                report = dream(store, DreamSettings(), repository=place)
                dreams += 1
                merged += len(report.merged)
                marked += len(report.superseded)
                over += is_over(store)
        said = holds(store)
        memories = len(store.versions())
    live = set(world.live.values())
    return {
        "sessions": sessions,
        "dreams": dreams,
        "memories": memories,
        "merged": merged,
        "marked": marked,
        "planted": len(live),
        "superseded": len(set(world.old) - live),
        "lost": len(live - said),
        "superseded_unmarked": len((set(world.old) - live) & said),
        "index_over_limit": over,
        "paraphrased": len(world.reworded),
        "paraphrased_unmarked": len(set(world.reworded) & said),
    }


def main() -> None:
    options = make_parser(__doc__, sessions=30, seed=5).parse_args()
    with tempfile.TemporaryDirectory() as name:
        result = run(Path(name) / "memory", options.sessions, options.seed)
    print_result(result, options.json)


if __name__ == "__main__":
    main()
