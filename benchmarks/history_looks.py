"""How many looks into the history a question takes, asked in plain words.

The questions of `data/history_questions.txt` are put to the History tool over the recorded sessions
that they are about (beside the project, or in `--sessions`). A look is one call. The first asks the question as it is
written; the second and the third open the first and the second record that it listed. A question
is answered by the first look whose text matches its pattern.

- `sessions`, `questions`: how many there were; with none, the other figures are left out;
- `first_look`, `in_three`: shares answered by the first look, and by at most three;
- `median_looks`: over all questions, where one that is not answered counts as four;
- `by_chance`: the share of patterns that the first look at the *next* question of the session
  matches, which is what loose patterns and long answers give away;
- `first_look_chars`: the median length of what the first look shows;
- `p50_ms`, `p99_ms`: of a first look, the index being built; `build_ms`: the longest build.

    python benchmarks/history_looks.py [--sessions DIRECTORY] [--json] [--missed]
"""

import argparse
import asyncio
import json
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from longhold.core.messages import ResultContent, text_of
from longhold.core.tools.context import ToolContext
from longhold.core.tools.history.history import History
from longhold.core.tools.history.tool import history_tool
from longhold.core.tools.protocol import Tool
from longhold.insight.transcripts.formats import open_transcript

HERE = Path(__file__).parent
RECORDED = HERE.parents[1] / "shared" / "data" / "transcripts"
QUESTIONS = HERE / "data" / "history_questions.txt"
LOOKS = 3
_NUMBER = re.compile(r"^#(\d+) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Asked:
    session: str
    question: str
    pattern: str

    def is_answered_by(self, text: str) -> bool:
        return re.search(self.pattern, text) is not None


@dataclass(frozen=True, slots=True)
class Looked:
    asked: Asked
    looks: int
    is_chance: bool
    chars: int
    ms: float


def questions() -> Iterator[Asked]:
    session = ""
    for line in QUESTIONS.read_text().splitlines():
        question, _, pattern = line.partition("\t")
        if pattern:
            yield Asked(session, question, pattern)
        elif line and not line.startswith("#"):
            session = line


async def look(tool: Tool, place: ToolContext, **given: str) -> str:
    content: ResultContent = (await tool.run(given, place)).content
    return content if isinstance(content, str) else text_of(content)


async def examine(file: Path, asked: list[Asked], place: ToolContext) -> tuple[list[Looked], float]:
    """Put the questions about one session; say also how long the index took."""
    with open_transcript(file) as transcript:
        entries = list(transcript.entries)
    history = History(lambda: entries)
    tool = history_tool(history)
    began = time.perf_counter()
    await look(tool, place, query="first")
    build_ms = (time.perf_counter() - began) * 1_000
    looked = []
    for each, after in zip(asked, [*asked[1:], asked[0]], strict=True):
        began = time.perf_counter()
        first = await look(tool, place, query=each.question)
        ms = (time.perf_counter() - began) * 1_000
        found = [first]
        for number in dict.fromkeys(_NUMBER.findall(first)):
            if len(found) == LOOKS or each.is_answered_by(found[-1]):
                break
            found.append(await look(tool, place, id=f"#{number}"))
        answered = [i for i, text in enumerate(found, 1) if each.is_answered_by(text)]
        looks = answered[0] if answered else LOOKS + 1
        looked.append(Looked(each, looks, after.is_answered_by(first), len(first), ms))
    history.close()
    return looked, build_ms


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=Path, default=RECORDED)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--missed", action="store_true", help="list what took more than a look")
    options = parser.parse_args()
    by_session: dict[str, list[Asked]] = {}
    for each in questions():
        by_session.setdefault(each.session, []).append(each)
    there = {
        name: asked for name, asked in by_session.items() if (options.sessions / name).is_file()
    }
    looked: list[Looked] = []
    builds: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        place = ToolContext(root=Path(name), home=Path(name), scratch=Path(name))
        for session, asked in there.items():
            found, build_ms = await examine(options.sessions / session, asked, place)
            looked += found
            builds.append(build_ms)
    figures: dict[str, float] = {"sessions": len(there), "questions": len(looked)}
    if looked:
        figures |= summed_up(looked) | {"build_ms": round(max(builds), 1)}
    if options.missed:
        for one in looked:
            if one.looks > 1:
                print(f"{one.looks}  {one.asked.question}  /{one.asked.pattern}/")
    if options.json:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:18} {value:g}" for name, value in figures.items()))


def summed_up(looked: list[Looked]) -> dict[str, float]:
    times = sorted(one.ms for one in looked)
    share = 1 / len(looked)
    return {
        "first_look": round(share * sum(one.looks == 1 for one in looked), 3),
        "in_three": round(share * sum(one.looks <= LOOKS for one in looked), 3),
        "median_looks": statistics.median(one.looks for one in looked),
        "by_chance": round(share * sum(one.is_chance for one in looked), 3),
        "first_look_chars": statistics.median(one.chars for one in looked),
        "p50_ms": round(statistics.median(times), 1),
        "p99_ms": round(times[min(len(times) - 1, int(len(times) * 0.99))], 1),
    }


if __name__ == "__main__":
    asyncio.run(main())
