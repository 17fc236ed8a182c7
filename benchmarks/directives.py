"""Whether the user's requests survive five compactions in a row, word for word.

Sessions are generated here: requests, corrections, prohibitions, work between them, and three kinds
of cancellation: in plain words, in a paraphrase, and by implication. Each session is compacted by
digest five times, each time over the previous summary. Afterwards the digest and the ledger must
contain every directive verbatim. Plainly cancelled directives must not be shown as open. Requests
that only begin like a cancellation ("Cancel button should be red") must not be shown as closed.
`paraphrased` and `implicit` count the other two kinds, which no rule without a model can recognise.
For these, the check is that the cancelling words follow the request verbatim, for a model to read.

    python benchmarks/directives.py [--sessions 200] [--compactions 5] [--seed 1] [--json]
"""

import random
import sys
from collections import Counter
from dataclasses import dataclass, field

from harness import make_parser, print_result
from longhold.core.log.entries import AnyEntry, Compacted
from longhold.core.messages import Text, ToolResult, ToolUse
from longhold.core.stages.compact.digest import FactPieces, budget_for
from longhold.core.stages.compact.digest.context import LIMITS
from longhold.core.stages.compact.directives import (
    DirectiveLedger,
    render_user_messages,
    words_tokens,
)
from longhold.core.stages.facts.facts import Facts
from longhold.core.stages.facts.tool_steps import gather
from longhold.core.view import fold
from longhold.core.view.tokens import O200K, weigh
from longhold.session.importing.transcript_writer import TranscriptWriter

TURNS = 9
"""Between two compactions; recorded segments have a median of thirteen."""
TAKEN_BACK_SHARE = 0.35
"""Of the requests: more than in real sessions, so that every way comes up in each."""
WAYS = ("plain", "paraphrased", "implicit")
VERBS = ("Add", "Write", "Build", "Set up", "Introduce")
THINGS = (
    *("retry logic", "rate limiter", "CSV export", "dark mode", "audit log", "health endpoint"),
    *("login throttling", "session cache", "image resizing", "webhook signing", "search index"),
    *("migration script", "feature flags", "email digest", "metrics dashboard", "backup job"),
    *("pagination", "undo history", "keyboard shortcuts", "invoice template", "job queue"),
)
PLACES = ("the {} service", "the {} package", "the {} client", "the {} worker", "the {} page")
NAMES = ("billing", "gateway", "reporting", "accounts", "catalogue", "scheduler", "mobile", "admin")
RULES = (
    "Never touch {}/generated.py, it is written by the build.",
    "Use tabs in {}, the linter wants it.",
    "All errors in {} must carry the request id.",
    "Please do not push {} without my word.",
)
PLAIN = (
    "Never mind the {}.",
    "Actually, cancel the {}.",
    "Forget about the {}, please.",
    "Let's scrap the {} after all.",
    "No need for the {} any more.",
    "We don't need the {} anymore.",
    "Don't bother with the {}.",
    "I no longer want the {}.",
    "Never mind.",
    "Cancel that, please.",
)
PARAPHRASED = (
    "I have been thinking about the {}: it is not worth the trouble, is it. Leave things be.",
    "Management says the {} can wait until next year.",
    "The {} turned out to be somebody else's job.",
)
IMPLICIT = (
    "We bought a product that does the {} for us.",
    "The team with the {} in it was closed yesterday, so only the rest counts.",
)
WORK = (
    "Cancel {} button.",
    "Cancel button of the {} should be red.",
    "Cancel the {} when idle.",
    "Undo {} must work.",
    "Skip {} links.",
    "Drop {} support.",
    "Stop the {} if empty.",
    "Ignore {} needs a title.",
    "Forget the {} unless it is quick.",
)
"""Requests that begin like a cancellation and are none: what they are about stays wanted."""
WORK_SHARE = 0.12
CORRECTION = "No, that is not what I meant: the {} belongs into {}, not where you put it."


@dataclass
class Request:
    """One directive of a generated session."""

    id: int
    text: str
    thing: str = ""
    corrects: str = ""
    """What it says more about; it falls with that."""
    way: str = ""
    by: str = ""
    """The words that took it back."""


@dataclass
class Course:
    """A session as it grows."""

    rng: random.Random
    scribe: TranscriptWriter = field(default_factory=TranscriptWriter)
    entries: list[AnyEntry] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    things: list[str] = field(default_factory=list)
    calls: int = 0

    def turn(self) -> None:
        """Let the user say something and the agent work on it."""
        still = [r for r in self.requests[-6:] if r.thing and not r.way]
        if still and self.rng.random() < TAKEN_BACK_SHARE:
            self.take_back(self.rng.choice(WAYS), still)
        elif still and self.rng.random() < 0.15:
            thing = self.rng.choice(still).thing
            self.say(CORRECTION.format(thing, self.place()))
            self.requests[-1].corrects = thing
        elif still and self.rng.random() < WORK_SHARE:
            thing = self.rng.choice(still).thing
            self.say(self.rng.choice(WORK).format(thing))
            self.requests[-1].corrects = thing
        elif self.rng.random() < 0.2:
            self.say(self.rng.choice(RULES).format(self.rng.choice(NAMES)))
        else:
            self.ask()
        self.work()

    def ask(self) -> None:
        """Ask for something that was not asked for before."""
        kind, name = self.rng.choice(THINGS), self.rng.choice(NAMES)
        thing = f"{name} {kind}"
        if thing in self.things:
            return self.ask() if len(self.things) < len(THINGS) * len(NAMES) / 2 else None
        self.things.append(thing)
        verb = self.rng.choice(VERBS)
        why = self.rng.choice(("", " It is due on Friday.", f" See ticket OPS-{len(self.things)}."))
        self.say(f"{verb} the {thing} in {self.place()}.{why}", thing)
        return None

    def place(self) -> str:
        """Name some part of the product."""
        return self.rng.choice(PLACES).format(self.rng.choice(NAMES))

    def take_back(self, way: str, still: list[Request]) -> None:
        """Take a request back in one of the ways."""
        phrases = {"plain": PLAIN, "paraphrased": PARAPHRASED, "implicit": IMPLICIT}[way]
        phrase = self.rng.choice(phrases)
        last = self.requests[-1]
        if "{}" not in phrase and (not last.thing or last.way):
            phrase = phrases[0]
        target = self.rng.choice(still) if "{}" in phrase else last
        target.way, target.by = way, phrase.format(target.thing)
        self.say(target.by)

    def say(self, text: str, thing: str = "") -> None:
        """Write down what the user says."""
        entry = self.scribe.write_message((Text(text=text),))
        self.entries.append(entry)
        self.requests.append(Request(id=entry.n, text=text, thing=thing))

    def work(self) -> None:
        """Let the agent read, change and test something, and report."""
        for _ in range(self.rng.randint(1, 4)):
            self.calls += 1
            name = f"{self.rng.choice(NAMES)}/{self.rng.choice(THINGS).replace(' ', '_')}.py"
            use = self.rng.choice(
                (
                    ("Read", {"file_path": f"/srv/app/{name}"}),
                    (
                        "Edit",
                        {"file_path": f"/srv/app/{name}", "old_string": "a", "new_string": "b"},
                    ),
                    ("Bash", {"command": f"pytest tests/{name} -q"}),
                )
            )
            id = f"call_{self.calls}"
            block = ToolUse(id=id, name=use[0], input=use[1])
            self.entries.append(self.scribe.write_answer(f"r{self.calls}", (block,)))
            output = "\n".join(f"line {i} of {name}" for i in range(self.rng.randint(5, 120)))
            self.entries.append(self.scribe.ran(ToolResult(tool_use_id=id, content=output)))
        self.calls += 1
        done = (Text(text=f"Done: step {self.calls} is finished and tested."),)
        self.entries.append(self.scribe.write_answer(f"r{self.calls}", done))

    def compact(self) -> tuple[str, str]:
        """Compact everything by digest; give the digest and the ledger."""
        view = fold(self.entries)
        items = list(view.items)
        facts = gather(self.entries, items)
        ledger = keep(facts)
        budget = budget_for(round(weigh(view.total, O200K)), facts)
        text = FactPieces(facts=facts, marks=ledger.marks()).digest(
            budget, words_tokens=words_tokens(ledger)
        )
        entry = Compacted(
            first=items[0].id, last=items[-1].id, summary=(Text(text=text),), by="digest"
        )
        self.entries.append(self.scribe.write(entry))
        return text, render_user_messages(ledger, LIMITS.words_tokens).text


def keep(facts: Facts) -> DirectiveLedger:
    """Keep the ledger of a session."""
    return DirectiveLedger().follow(facts.words())


def run(seed: int, compactions: int) -> Counter[str]:
    """Play one session and count what became of its directives."""
    course = Course(random.Random(seed))
    digest_text = ledger_text = ""
    for _ in range(compactions):
        for _ in range(TURNS):
            course.turn()
        digest_text, ledger_text = course.compact()
    counts: Counter[str] = Counter()
    taken_back = {request.thing for request in course.requests if request.way}
    for request in course.requests:
        counts["directives"] += 1
        texts = (digest_text, ledger_text)
        counts["kept"] += all(request.text in text for text in texts)
        if request.way:
            counts[request.way] += 1
            marked = [is_marked(text, request) for text in texts]
            counts[f"{request.way}_open"] += not all(marked)
            counts[f"{request.way}_contradicted"] += all(
                text.rfind(request.by) > text.find(request.text) >= 0 for text in texts
            )
        elif request.corrects not in taken_back:
            counts["wrongly_closed"] += any(is_marked(text, request) for text in texts)
    return counts


def is_marked(text: str, request: Request) -> bool:
    """Say whether a directive stands there as taken back."""
    lines = [line for line in text.splitlines() if line.startswith("T") and request.text in line]
    return any("cancelled by" in line or "replaced by" in line for line in lines)


def main() -> None:
    """Run the sessions and print the counts."""
    given = make_parser(__doc__, sessions=200, compactions=5, seed=1).parse_args()
    total: Counter[str] = Counter()
    for i in range(given.sessions):
        total += run(given.seed + i, given.compactions)
        if not given.json and (i + 1) % 50 == 0:
            print(f"{i + 1} sessions", file=sys.stderr)
    result = {
        "sessions": given.sessions,
        "compactions": given.compactions,
        "directives": total["directives"],
        "kept_verbatim_share": round(total["kept"] / total["directives"], 4),
        "cancelled": total["plain"],
        "resurrected": total["plain_open"],
        "wrongly_closed": total["wrongly_closed"],
    }
    for way in ("paraphrased", "implicit"):
        result[way] = {
            "directives": total[way],
            "still_open": total[f"{way}_open"],
            "contradicted_verbatim": total[f"{way}_contradicted"],
        }
    print_result(result, given.json)


if __name__ == "__main__":
    main()
