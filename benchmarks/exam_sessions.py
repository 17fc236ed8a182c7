"""Generated sessions for the exam, with planted content for every kind of question.

Each plays the same plot with other names: the user points at a document, the agent compares
commits, gives an explanation and a better one, changes a function that has neighbours, decides
something in thinking only, is told something while it works, and is left with a failing command.
Ordinary work is between these events, so that a compactor has to choose.
"""

import random
from dataclasses import dataclass, field
from re import escape

from longhold.core.log.entries import AnyEntry
from longhold.core.messages import JsonObject, Text, Thinking, ToolResult, ToolUse
from longhold.session.importing.transcript_writer import TranscriptWriter

PARTS = ("billing", "ledger", "catalogue", "scheduler", "gateway", "archive", "mailer", "roster")
PEOPLE = ("Ines Albrecht", "Tomasz Reyes", "Noor Haddad", "Paula Lindqvist", "Kofi Mensah")
FILLER_ROUNDS = 14
"""Rounds of ordinary work after each planted one: enough to make a segment of some 60,000 tokens."""
FILLER_LINES = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    kind: str
    ask: str
    gold: tuple[str, ...]
    """Patterns that must all be found close to each other."""


@dataclass(slots=True)
class Plot:
    """A session as it is written, and what may be asked about it."""

    rng: random.Random
    writer: TranscriptWriter = field(default_factory=TranscriptWriter)
    entries: list[AnyEntry] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    calls: int = 0

    def say(self, text: str) -> None:
        self.entries.append(self.writer.write_message((Text(text=text),)))

    def answer(self, text: str) -> None:
        self.calls += 1
        self.entries.append(self.writer.write_answer(f"r{self.calls}", (Text(text=text),)))

    def call(
        self, tool: str, given: JsonObject, output: str, *, thought: str = "", failed: bool = False
    ) -> None:
        self.calls += 1
        id = f"call_{self.calls}"
        use = ToolUse(id=id, name=tool, input=given)
        content = (Thinking(thinking=thought), use) if thought else (use,)
        self.entries.append(self.writer.write_answer(f"r{self.calls}", content))
        block = ToolResult(tool_use_id=id, content=output, is_error=failed)
        self.entries.append(self.writer.ran(block))

    def ask(self, kind: str, question: str, *gold: str) -> None:
        self.questions.append(Question(kind=kind, ask=question, gold=gold))

    def number(self, low: int = 11, high: int = 97) -> int:
        return self.rng.randint(low, high)

    def hash(self) -> str:
        digits = "".join(self.rng.choices("0123456789abcdef", k=5))
        return f"{self.rng.choice('abcdef')}{self.number(1, 9)}{digits}"

    def work(self) -> None:
        """Look around, as agents do most of the time."""
        for _ in range(FILLER_ROUNDS):
            part = self.rng.choice(PARTS)
            path = f"/srv/shop/{part}/module_{self.number()}.py"
            lines = (
                f"{i}\tdef step_{self.number()}_{part}(value): return value * {self.number()}"
                for i in range(1, self.rng.randint(10, FILLER_LINES))
            )
            self.call("Read", {"file_path": path}, "\n".join(lines))


def planted(seed: int) -> Plot:
    """Write one session; the same seed gives the same one."""
    plot = Plot(random.Random(seed))
    part, other = plot.rng.sample(PARTS, 2)
    for scene in (_document, _commits, _explanations, _change, _thought, _queued, _unfinished):
        scene(plot, part, other)
        if scene is not _unfinished:
            plot.work()
    return plot


def _document(plot: Plot, part: str, other: str) -> None:
    limit, name = plot.number(120, 990), f"{other}_export"
    path = f"/srv/shop/docs/{part}-export.md"
    plot.say(f"Please build the export that docs/{part}-export.md describes.")
    prose = "\n\n".join(
        f"The {word} of this page are given for people who are new to it. Nothing follows from them."
        for word in ("pictures", "names", "examples", "figures")
    )
    text = (
        f"# Export of the {part}\n\n## Why\n\n{prose}\n\n## Limits\n\n- at most {limit} rows in a file"
        f"\n- never write into `{name}`\n\n## Not wanted\n\n- no second csv library, `csv` is enough\n"
    )
    plot.call("Read", {"file_path": path}, text)
    plot.ask("pointed", "How many rows may a file have?", rf"{limit} rows")
    plot.ask("pointed", "Where must nothing be written?", rf"never write into `?{name}")
    plot.ask("pointed", "What is not wanted?", "(?i)no second csv library")


def _commits(plot: Plot, part: str, other: str) -> None:
    first, second, person = plot.hash(), plot.hash(), plot.rng.choice(PEOPLE)
    plot.say(f"Since when does the {part} round its sums?")
    plot.call(
        "Bash",
        {"command": f"git log -S round_half --format=fuller -- {part}/sums.py"},
        f"commit {first}\nAuthor: {person} <dev@example.org>\n\n    Round sums of the {part}\n\n"
        + "\n".join(f"+ line {i} of the diff" for i in range(60)),
    )
    plot.call("Bash", {"command": f"git diff {first} {second} --stat"}, f" {part}/sums.py | 12 +++")
    plot.answer(f"Since {first}; I compared it with {second}, which has no rounding.")
    plot.ask("names", "Which commit began to round?", first)
    plot.ask("names", "Who wrote it?", escape(person))


def _explanations(plot: Plot, part: str, other: str) -> None:
    plot.say(f"Why is the nightly {part} run slow?")
    plot.answer(f"The problem is the index: the {part} table has none on `created_at`.")
    plot.say("There is one, look again.")
    plot.work()
    plot.answer(
        f"You are right, the index exists. The actual cause is the lock that {other}_sync holds "
        "while it waits for the network."
    )
    plot.ask("explanation", "Why is the run slow?", f"{other}_sync", "(?i)lock")


def _change(plot: Plot, part: str, other: str) -> None:
    number = plot.number()
    changed, beside = f"split_{part}_{number}", f"join_{other}_{number}"
    path = f"/srv/shop/{part}/batches.py"
    code = (
        f"def {beside}(parts):\n    return [row for part in parts for row in part]\n\n\n"
        f"def {changed}(rows, size):\n    return [rows]\n"
    )
    plot.say(f"Make {changed} respect the size.")
    plot.call("Read", {"file_path": path}, code)
    old, new = (
        "    return [rows]\n",
        "    return [rows[i : i + size] for i in range(0, len(rows), size)]\n",
    )
    given: JsonObject = {"file_path": path, "old_string": code.split("\n\n\n")[1], "new_string": ""}
    given["new_string"] = str(given["old_string"]).replace(old, new)
    plot.call("Edit", given, "The file has been updated.")
    plot.call("Bash", {"command": f"pytest -q {part}"}, f"{number} passed in 1.2s")
    plot.answer(f"`{changed}` cuts the rows into parts of that size.")
    plot.ask("helper", "Which function stands beside the one that was changed?", beside)
    plot.ask("facts", "How many tests passed after the change?", rf"{number} passed")


def _thought(plot: Plot, part: str, other: str) -> None:
    plot.say(f"Store the {part} state somewhere that survives a restart.")
    plot.call(
        "Write",
        {"file_path": f"/srv/shop/{part}/state.py", "content": "import sqlite3\n\nOPEN = 1\n"},
        "File created.",
        thought=f"A JSON file would do. But two workers of the {other} write at once, so I decided "
        "on sqlite instead of JSON because it locks.",
    )
    plot.answer(f"The state of the {part} is in sqlite.")
    plot.ask(
        "reason", "Why sqlite and not a file?", "(?i)sqlite", "(?i)two workers|at once|it locks"
    )


def _queued(plot: Plot, part: str, other: str) -> None:
    plot.say(f"Now go through the {other} and add types.")
    plot.call("Read", {"file_path": f"/srv/shop/{other}/types.py"}, "x = 1\n")
    plot.say(f"by the way, the {other} fixtures belong to another team, hands off")
    plot.call("Bash", {"command": f"mypy {other}"}, "Success: no issues found")
    plot.ask("queued", "What did the user add meanwhile?", "(?i)fixtures", "(?i)hands off")


def _unfinished(plot: Plot, part: str, other: str) -> None:
    number = plot.number()
    plot.say("Run everything and tell me what is left.")
    test = f"test_{part}_keeps_{number}"
    plot.call(
        "Bash",
        {"command": "make check"},
        f"ruff ok\nmypy ok\nFAILED tests/{part}_test.py::{test} - assert {number} == {number + 1}\n",
        failed=True,
    )
    plot.answer(f"Everything but {test} is green. Shall I look into it or leave it to you?")
    plot.ask("state", "Which test fails, and how?", test, rf"assert {number} == {number + 1}")
    plot.ask("state", "What was the user asked last?", "(?i)look into it or leave it")
