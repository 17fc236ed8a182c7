"""Which questions a reader can still answer after a compaction.

Questions, with patterns for the right answers, are asked about generated sessions
(`exam_sessions.py`) and about recorded sessions if available (`exam_questions.toml` has files and
patterns). A compactor is a function from messages to a text. `docs/measured.md` explains how to
test a compactor.

Without a reader, the patterns must occur close to each other in the compacted text. With `--reader
NAME`, that model answers each question from the text alone, and the patterns, or the model given
with `--judge NAME`, decide whether the answer is right.

For each compactor (`digest`; `digest_at_recorded_size`, cut to the size of the recorded summary or
to 3 %; `recorded`; `recorded_with_engine`, the recorded summary with what the engine adds to a
model's; with `--model NAME` that model's summary as in a session; with `--compactor FILE.py:FUNCTION`
any other): the `score`, `by_kind`, `aside` (every third question, kept aside
while the digest is worked on), and `tokens_share` as median and most.

    python benchmarks/exam.py [FOLDER] [--json] [--missing] [--made-up N] [--compactor FILE:FUNCTION]
        [--model NAME] [--reader NAME] [--judge NAME] [--base-url URL]

`--show SESSION[:N]` prints what a reader sees after compaction N (0 is the first) of a file, or of a
made-up session such as `made-up-0`, and nothing else. `--variant` chooses the text:

- `digest`: the digest at its own budget.
- `recorded`: the digest at the size of the recorded summary, or 3 % where none was recorded.
- `model-request`: the request that a model gets after the conversation, which `--variant history` prints.
- `model`: the summary in `--summary FILE` with what the engine adds to it.
"""

import argparse
import asyncio
import importlib.util
import re
import statistics
import tomllib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from exam_sessions import Question, planted
from harness import RECORDED, make_parser, print_result
from longhold.core.messages import JsonObject, Text, message_to_wire
from longhold.core.models import open_model
from longhold.core.models.protocol import Model, Request, collect
from longhold.core.stages.compact.compose import Manner, compose, gather_material
from longhold.core.stages.compact.digest.headings import judgement
from longhold.core.stages.compact.segment import Segment as Covered
from longhold.core.stages.compact.summary import Written, ask_for_summary, read_summary
from longhold.core.view import fold
from longhold.core.view.items import render
from longhold.core.view.tokens import estimate_tokens
from retention import TOKENIZER, Count, Segment, by_digest, by_model, segments, told

QUESTIONS = Path(__file__).with_name("exam_questions.toml")
NEAR_CHARS = 500
"""All patterns of a gold stand within so much text, or they are about different things."""
MADE_UP = 4
SMALL_SHARE = 0.03
"""Of a made-up session, which has no recorded summary to be cut to the size of."""
ASIDE = 3
"""One question in so many is kept aside."""
ANSWER_TOKENS = 300

Compactor = Callable[[Segment], Awaitable[str]]
Right = Callable[[Question, str], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Exam:
    segment: Segment
    questions: tuple[Question, ...]


def exams(folder: Path, made_up: int, count: Count) -> Iterator[Exam]:
    for seed in range(made_up):
        plot = planted(seed)
        items = list(fold(plot.entries).items)
        tokens = sum(count(told(item)) for item in items)
        segment = Segment(f"made-up-{seed}", plot.entries, items, "", tokens)
        yield Exam(segment, tuple(plot.questions))
    for session in tomllib.loads(QUESTIONS.read_text("utf-8"))["session"]:
        for path in folder.rglob(f"{session['transcript']}*.jsonl*"):
            found = list(segments(path, count))[session["compaction"]]
            asked = (
                Question(kind=each["kind"], ask=each["ask"], gold=tuple(each["gold"]))
                for each in session["questions"]
            )
            yield Exam(found, tuple(asked))


def is_there(question: Question, text: str) -> bool:
    """True if all patterns of a question are found close to each other."""
    first, *others = question.gold
    for match in re.finditer(first, text):
        near = text[max(0, match.start() - NEAR_CHARS) : match.end() + NEAR_CHARS]
        if all(re.search(other, near) for other in others):
            return True
    return False


async def in_text(question: Question, text: str) -> bool:
    return is_there(question, text)


def answered_by(reader: Model, judge: Model | None) -> Right:
    async def right(question: Question, text: str) -> bool:
        answer = await said(
            reader,
            f"{text}\n\n---\nThe above is all that is left of a working session. Answer in one or "
            f"two sentences, with exact names; say so if it is not there.\n{question.ask}",
        )
        if judge is None:
            return all(re.search(pattern, answer) for pattern in question.gold)
        verdict = await said(
            judge,
            f"Question: {question.ask}\nAnswer: {answer}\nA right answer agrees with these patterns: "
            f"{' and '.join(question.gold)}\nIs the answer right? Say yes or no.",
        )
        return verdict.strip().lower().startswith("yes")

    return right


async def said(model: Model, text: str) -> str:
    """Ask a model one thing."""
    messages = [{"role": "user", "content": text}]
    request = Request(
        kwargs={"model": model.name, "max_tokens": ANSWER_TOKENS, "messages": messages}
    )
    reply = await collect(model.stream(request))
    return " ".join(block.text for block in reply.content if isinstance(block, Text))


def without_model(count: Count) -> dict[str, Compactor]:
    async def digest(segment: Segment) -> str:
        return by_digest(segment, None, estimate_tokens)

    async def small(segment: Segment) -> str:
        size = count(segment.summary) if segment.summary else int(segment.tokens * SMALL_SHARE)
        return by_digest(segment, size, count)

    async def recorded(segment: Segment) -> str:
        return segment.summary

    async def joined(segment: Segment) -> str:
        if not segment.summary:
            return ""
        covered = Covered(items=tuple(segment.items))
        material = gather_material(segment.history, covered, segment.tokens)
        return compose(
            material, Written(text=judgement(segment.summary)), Manner(is_auto=False)
        ).text

    return {
        "digest": digest,
        "digest_at_recorded_size": small,
        "recorded": recorded,
        "recorded_with_engine": joined,
    }


def written_by(model: str, client: Model) -> Compactor:
    async def write(segment: Segment) -> str:
        return (await by_model(segment, model, client))[0]

    return write


def messages_of(segment: Segment) -> list[JsonObject]:
    """Write a segment as a list of messages in the style of Anthropic's API."""
    return [message_to_wire(message) for message in render(segment.items)]


def loaded(place: str) -> Compactor:
    """Load somebody's compactor: `FILE.py:FUNCTION`, from a list of messages to a text."""
    file, _, name = place.partition(":")
    spec = importlib.util.spec_from_file_location("compactor", file)
    if spec is None or spec.loader is None or not name:
        raise SystemExit(f"--compactor wants FILE.py:FUNCTION, not {place}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, name)

    async def write(segment: Segment) -> str:
        return str(function(messages_of(segment)))

    return write


@dataclass(slots=True)
class Marks:
    """What one compactor got right."""

    open: list[bool] = field(default_factory=list)
    aside: list[bool] = field(default_factory=list)
    by_kind: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    shares: list[float] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, place: int, question: Question, is_right: bool, where: str) -> None:
        is_aside = place % ASIDE == ASIDE - 1
        (self.aside if is_aside else self.open).append(is_right)
        self.by_kind[question.kind].append(is_right)
        if not is_right and not is_aside:
            self.missing.append(f"{where} {question.kind}: {question.ask}")

    def summed(self) -> dict[str, object]:
        return {
            "score": share([*self.open, *self.aside]),
            "open": share(self.open),
            "aside": share(self.aside),
            "by_kind": {kind: share(each) for kind, each in sorted(self.by_kind.items())},
            "tokens_share": {
                "median": round(statistics.median(self.shares), 4),
                "most": round(max(self.shares), 4),
            },
        }


def share(right: list[bool]) -> float | None:
    return round(sum(right) / len(right), 3) if right else None


async def examined(
    each_exam: list[Exam], compactors: dict[str, Compactor], right: Right, count: Count
) -> dict[str, Marks]:
    marks = {name: Marks() for name in compactors}
    for exam in each_exam:
        for name, compactor in compactors.items():
            text = await compactor(exam.segment)
            if not text:
                continue
            marks[name].shares.append(count(text) / exam.segment.tokens)
            for i, question in enumerate(exam.questions):
                is_right = await right(question, text)
                marks[name].add(i, question, is_right, exam.segment.name)
    return {name: each for name, each in marks.items() if each.shares}


VARIANTS = ("digest", "recorded", "history", "model-request", "model")


def find_segment(name: str, folder: Path, count: Count) -> Segment:
    file, _, number = name.partition(":")
    for exam in exams(folder, MADE_UP, count) if file.startswith("made-up-") else ():
        if exam.segment.name == file:
            return exam.segment
    named = Path(file)
    paths = [named] if named.is_file() else sorted(folder.rglob(f"{file}*.jsonl*"))
    if not paths:
        raise SystemExit(f"{file} is neither a file nor the beginning of one below {folder}")
    found = list(segments(paths[0], count))
    if not found:
        raise SystemExit(f"{paths[0]} has no compaction, so there is no segment to show")
    return found[int(number or 0)]


def show(segment: Segment, variant: str, summary: str, count: Count) -> str:
    """Write what a reader sees in the place of a segment, as in a session."""
    covered = Covered(items=tuple(segment.items))
    material = gather_material(segment.history, covered, segment.tokens)
    if variant == "history":
        return "\n\n".join(f"[#{item.id}]\n{told(item)}" for item in segment.items)
    if variant == "model-request":
        whole = {item.id for item in segment.items}
        return ask_for_summary(
            covered.kind,
            directives=material.ledger.directives,
            shortened=[each for each in material.words().shortened if each.message in whole],
            pivot=covered.pivot,
        )
    if variant == "recorded":
        size = count(segment.summary) if segment.summary else int(segment.tokens * SMALL_SHARE)
        material = replace(material, budget_tokens=size, words_tokens=0)
    written = read_summary(summary, "end_turn") if variant == "model" else None
    if isinstance(written, str):
        raise SystemExit(f"the summary cannot be used, as in a session: {written}")
    return compose(material, written, Manner(log="the session's log", has_history=True)).text


async def run(given: argparse.Namespace, count: Count) -> dict[str, object]:
    def opened(name: str) -> Model | None:
        return open_model(name, base_url=given.base_url or None) if name else None

    writer, reader, judge = map(opened, (given.model, given.reader, given.judge))
    compactors = without_model(count)
    if writer is not None:
        compactors[given.model] = written_by(given.model, writer)
    if given.compactor:
        compactors[given.compactor] = loaded(given.compactor)
    right = answered_by(reader, judge) if reader is not None else in_text
    made = list(exams(given.folder, given.made_up, count))
    marks = await examined(made, compactors, right, count)
    for model in filter(None, (writer, reader, judge)):
        await model.close()
    if given.missing:
        for name, each in marks.items():
            print(name, *each.missing, sep="\n  ")
    rows: dict[str, object] = {name: each.summed() for name, each in marks.items()}
    return rows | {
        "questions": sum(len(exam.questions) for exam in made),
        "sessions": len(made),
        "reader": given.reader or "patterns in the text",
        "judge": given.judge or "patterns",
        "tokenizer": TOKENIZER,
    }


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--missing", action="store_true", help="list what could not be answered")
    parser.add_argument("--made-up", type=int, default=MADE_UP, help="how many sessions to make up")
    parser.add_argument("--compactor", default="", help="FILE.py:FUNCTION, messages to text")
    parser.add_argument("--model", default="", help="have this model write summaries too")
    parser.add_argument("--reader", default="", help="have this model answer from the text alone")
    parser.add_argument("--judge", default="", help="have this model judge the answers")
    parser.add_argument("--base-url", default="", help="where they answer")
    parser.add_argument("--show", default="", metavar="SESSION[:N]", help="print a reader's text")
    parser.add_argument("--variant", choices=VARIANTS, default="digest", help="which text to print")
    parser.add_argument("--summary", type=Path, help="a model's summary, for --variant model")
    given = parser.parse_args()
    import bpe_openai

    encoding = bpe_openai.get_encoding(TOKENIZER)
    if given.show:
        segment = find_segment(given.show, given.folder, lambda text: len(encoding.encode(text)))
        summary = given.summary.read_text("utf-8") if given.summary else ""
        print(show(segment, given.variant, summary, lambda text: len(encoding.encode(text))))
        return
    result = asyncio.run(run(given, lambda text: len(encoding.encode(text))))
    print_result(result, given.json)


if __name__ == "__main__":
    main()
