"""Sheets for an examination by fresh readers and judges (`exam/README.md` has the procedure).

    python benchmarks/exam_sheets.py write DIR [--half development] [--variants digest,recorded]
    python benchmarks/exam_sheets.py compose DIR     # readers' sheets for the models' summaries
    python benchmarks/exam_sheets.py judge DIR       # judges' sheets for the answers that are there
    python benchmarks/exam_sheets.py score DIR [--json]
    python benchmarks/exam_sheets.py look SESSION:N QUERY   # words, or a range such as #41-#57

`write` makes one `VARIANT-SESSION.reader.md` for each variant and session, and `READY`, which lists
where each answer belongs. The variants are `digest`, `recorded` (the size of the recorded summary),
`look` (the digest, and one look into the history for each question) and `model`: for it a
`model-SESSION.request.md` is written, a model's answer goes to `model-SESSION.summary.md`, and
`compose` adds what the engine adds. `score` compares the judge's grades with patterns.
"""

import argparse
import asyncio
import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from exam import find_segment, is_there, show
from exam_sessions import Question
from harness import RECORDED
from longhold.core.messages import JsonObject
from longhold.core.tools.context import ToolContext
from longhold.core.tools.history.history import History
from longhold.core.tools.history.tool import history_tool
from longhold.core.tools.protocol import Outcome, Tool
from retention import TOKENIZER, Segment

QUESTIONS = Path(__file__).parent / "exam" / "questions.toml"
VARIANTS = ("digest", "recorded", "model", "look")
SECOND = 10
"""A second judge grades one answer in so many."""
GRADES = (0.0, 0.5, 1.0)

READER = """\
# Reader's sheet

Below is all that is left of a working session between a user and a coding agent, and then
{count} questions about it. Answer each from the text alone: what it says, or what follows from it.
Give exact names, numbers and reasons in one to three sentences. If the text does not say it, write
"not there" (a part of the answer is better than nothing). Do not open any other file.
{look}
Write the answers to `{answers}`, each as `## NUMBER` on a line of its own and the answer below.
"""
LOOK = """
For each question you may look into the history at most once, and only if the text does not answer
it. The command prints what the agent's History tool would print, for words or for a range of
messages as they are cited in the text. It changes nothing. Write `(looked)` after such an answer.

    {command} '{session}' 'WORDS, or a range such as #41-#57'
"""
SUMMARISER = """\
# Summariser's sheet

Below is a working session between a user and a coding agent, written out, and at its end a request
to you. Do what the request asks and write your whole answer to `{summary}`. Read all of it; open no
other file.
"""
JUDGE = """\
# Judge's sheet

Grade each answer by its gold. 1: it says everything the gold needs to be useful, in any words, and
nothing that contradicts it. 0.5: it says the more important half. 0: it misses the point, is wrong,
or says that it is not there. More detail than the gold is fine unless it is wrong. Be strict.

Write the grades to `{grades}`: for each number a line `## NUMBER: GRADE` and one line with the reason.
"""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One session of the examination."""

    name: str
    segment: Segment
    questions: tuple[Question, ...]
    golds: tuple[str, ...]

    @property
    def short(self) -> str:
        return re.sub(r"\W+", "-", self.name)


Count = Callable[[str], int]


def read_sheets(half: str, count: Count) -> Iterator[Sheet]:
    for session in tomllib.loads(QUESTIONS.read_text("utf-8"))["session"]:
        if half and session["half"] != half:
            continue
        name = f"{session['transcript']}:{session['compaction']}"
        asked = session["questions"]
        yield Sheet(
            name=name,
            segment=find_segment(name, RECORDED, count),
            questions=tuple(
                Question(kind=each["kind"], ask=each["ask"], gold=tuple(each["patterns"]))
                for each in asked
            ),
            golds=tuple(each["gold"] for each in asked),
        )


def write(folder: Path, half: str, variants: list[str], count: Count) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines, shares = [], dict[str, float]()
    for sheet in read_sheets(half, count):
        for variant in variants:
            if variant == "model":
                request = folder / f"model-{sheet.short}.request.md"
                summary = folder / f"model-{sheet.short}.summary.md"
                history = show(sheet.segment, "history", "", count)
                asked = show(sheet.segment, "model-request", "", count)
                head = SUMMARISER.format(summary=summary)
                request.write_text(f"{head}\n---\n\n{history}\n\n---\n\n{asked}\n", "utf-8")
                lines.append(f"summariser: {request} -> {summary}, then `compose`")
                continue
            text = show(sheet.segment, "digest" if variant == "look" else variant, "", count)
            lines.append(write_reader(folder, sheet, variant, text))
            shares[f"{variant}-{sheet.short}"] = round(count(text) / sheet.segment.tokens, 4)
    record_shares(folder, shares)
    commands = "\n".join(
        f"{step}: `{sys.executable} {Path(__file__).resolve()} {step} {folder}`"
        for step in ("compose", "judge", "score")
    )
    (folder / "READY").write_text("\n".join([*lines, "", commands, ""]), "utf-8")


def write_reader(folder: Path, sheet: Sheet, variant: str, text: str) -> str:
    file = folder / f"{variant}-{sheet.short}.reader.md"
    answers = folder / f"{variant}-{sheet.short}.answers.md"
    command = f"{sys.executable} {Path(__file__).resolve()} look"
    look = LOOK.format(command=command, session=sheet.name) if variant == "look" else ""
    head = READER.format(count=len(sheet.questions), answers=answers, look=look)
    asked = "\n".join(f"## {i}\n{each.ask}\n" for i, each in enumerate(sheet.questions, 1))
    file.write_text(f"{head}\n---\n\n{text}\n\n---\n\n# Questions\n\n{asked}", "utf-8")
    return f"reader: {file} -> {answers}"


def record_shares(folder: Path, shares: dict[str, float]) -> None:
    file = folder / "shares.json"
    known = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps(known | shares, indent=1), "utf-8")


def compose(folder: Path, count: Count) -> None:
    for sheet in read_sheets("", count):
        summary = folder / f"model-{sheet.short}.summary.md"
        if summary.exists():
            text = show(sheet.segment, "model", summary.read_text("utf-8"), count)
            share = round(count(text) / sheet.segment.tokens, 4)
            record_shares(folder, {f"model-{sheet.short}": share})
            print(write_reader(folder, sheet, "model", text), share)


def numbered(file: Path) -> dict[int, str]:
    """Read a file of parts that begin with `## NUMBER`."""
    parts = re.split(r"^## *(\d+)\b:?", file.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {int(n): text.strip() for n, text in zip(parts[::2], parts[1::2], strict=True)}


def answered(folder: Path, count: Count) -> Iterator[tuple[str, Sheet, dict[int, str]]]:
    for sheet in read_sheets("", count):
        for variant in VARIANTS:
            file = folder / f"{variant}-{sheet.short}.answers.md"
            if file.exists():
                yield variant, sheet, numbered(file)


def judge(folder: Path, count: Count) -> None:
    """Write one sheet for each variant and session, and one for a second judge."""
    second, place = list[str](), 0
    for variant, sheet, answers in answered(folder, count):
        blocks = []
        for i, (question, gold) in enumerate(zip(sheet.questions, sheet.golds, strict=True), 1):
            asked = f"Question: {question.ask}\n\nGold: {gold}\n\n"
            answer = f"Answer: {answers.get(i, 'not there')}"
            blocks.append(f"## {i}\n{asked}{answer}\n")
            if place % SECOND == SECOND // 2:
                second.append(f"## {len(second) + 1}\n({variant}-{sheet.short} {i})\n{answer}\n")
                second[-1] = second[-1].replace("\nAnswer", f"\n{asked}Answer", 1)
            place += 1
        grades = folder / f"{variant}-{sheet.short}.grades.md"
        file = folder / f"{variant}-{sheet.short}.judge.md"
        file.write_text(JUDGE.format(grades=grades) + "\n---\n\n" + "\n".join(blocks), "utf-8")
        print(f"judge: {file} -> {grades}")
    grades, file = folder / "second.grades.md", folder / "second.judge.md"
    file.write_text(JUDGE.format(grades=grades) + "\n---\n\n" + "\n".join(second), "utf-8")
    print(f"second judge: {file} -> {grades}")


def grade_of(text: str) -> float:
    found = re.search(r"\b(1(?:\.0)?|0\.5|0(?:\.0)?)\b", text)
    return float(found[0]) if found else 0.0


def score(folder: Path, count: Count) -> dict[str, object]:
    grades: dict[str, dict[str, list[float]]] = defaultdict(dict)
    kinds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    missed, apart, looks = list[str](), list[str](), dict[str, int]()
    shares = json.loads((folder / "shares.json").read_text("utf-8"))
    first = {}
    for variant, sheet, answers in answered(folder, count):
        file = folder / f"{variant}-{sheet.short}.grades.md"
        if not file.exists():
            continue
        given = numbered(file)
        marks = [grade_of(given.get(i, "0")) for i in range(1, len(sheet.questions) + 1)]
        grades[variant][sheet.short] = marks
        looks[variant] = looks.get(variant, 0) + sum("(looked)" in a for a in answers.values())
        for i, (mark, question) in enumerate(zip(marks, sheet.questions, strict=True), 1):
            kinds[variant][question.kind].append(mark)
            first[f"{variant}-{sheet.short} {i}"] = mark
            reason = re.sub(r"\s+", " ", given.get(i, ""))
            if mark < 1:
                missed.append(f"{variant} {sheet.short} {i} {mark}: {question.ask} ({reason})")
            by_patterns = is_there(question, answers.get(i, ""))
            if by_patterns != (mark == 1):
                apart.append(f"{variant} {sheet.short} {i}: judge {mark}, patterns {by_patterns}")
    second = compare_judges(folder, first)
    return {
        "scores": {v: mean([m for each in s.values() for m in each]) for v, s in grades.items()},
        "by_session": {v: {s: mean(m) for s, m in each.items()} for v, each in grades.items()},
        "by_kind": {v: {k: mean(m) for k, m in each.items()} for v, each in kinds.items()},
        "looks": looks,
        "shares": shares,
        "judges": second,
        "judge_against_patterns": apart,
        "missed": missed,
    }


def compare_judges(folder: Path, first: dict[str, float]) -> dict[str, object]:
    file = folder / "second.grades.md"
    if not file.exists():
        return {}
    asked, given = numbered(folder / "second.judge.md"), numbered(file)
    places = {n: found[1] for n, text in asked.items() if (found := re.match(r"\((.+)\)", text))}
    differ = {
        where: (first[where], grade_of(given[n]))
        for n, where in places.items()
        if n in given and where in first and first[where] != grade_of(given[n])
    }
    return {"graded_twice": len(places), "differ": differ}


def mean(marks: list[float]) -> float:
    return round(sum(marks) / len(marks), 3) if marks else 0.0


def look(name: str, query: str, count: Count) -> str:
    """Print what the History tool prints for one question or range, at its default settings."""
    segment = find_segment(name, RECORDED, count)
    tool = history_tool(History(lambda: segment.history))
    is_range = re.fullmatch(r"[#\d\s.–-]+|#?\d+ to #?\d+", query.strip())
    given: JsonObject = {"id": query} if is_range else {"query": query}
    content = asyncio.run(_run(tool, given)).content
    return content if isinstance(content, str) else "".join(getattr(b, "text", "") for b in content)


async def _run(tool: Tool, given: JsonObject) -> Outcome:
    return await tool.run(given, ToolContext(root=Path(), home=Path(), scratch=Path()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("write", "compose", "judge", "score", "look"))
    parser.add_argument("place", help="a folder of sheets, or SESSION:N")
    parser.add_argument("query", nargs="?", default="")
    parser.add_argument("--half", default="", choices=("", "development", "final"))
    parser.add_argument("--variants", default="digest,recorded")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    import bpe_openai

    encoding = bpe_openai.get_encoding(TOKENIZER)

    def count(text: str) -> int:
        return len(encoding.encode(text))

    folder = Path(given.place)
    match given.step:
        case "write":
            write(folder, given.half, given.variants.split(","), count)
        case "compose":
            compose(folder, count)
        case "judge":
            judge(folder, count)
        case "score":
            print(json.dumps(score(folder, count), indent=None if given.json else 1))
        case "look":
            print(look(given.place, given.query, count))


if __name__ == "__main__":
    main()
