"""Texts built to be slow: how many of them take a reader too long.

Every reader of text from outside gets every shape at one size and at four times that size. An
input is slow if the larger takes longer than `LIMIT_SECONDS` and more than `MOST_TIMES` as long as
the smaller: a reader whose time grows with the text takes four times as long, one that searches
from every place sixteen times or more.

    python benchmarks/slow_inputs.py [--json] [--chars N]
"""

import argparse
import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from longhold.agent.agent import budget_in
from longhold.agent.instructions.gathering import find_imports, without_comments
from longhold.agent.permissions import is_read_only_command
from longhold.agent.tools.globs import glob_expression, parse_rule
from longhold.agent.tools.web import extract_text
from longhold.core.memory.memory import Memory
from longhold.core.memory.provenance import sources_of
from longhold.core.messages import Text, ToolResult
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import (
    cut,
    one_line,
    outline,
    remove_blank_lines,
    sentences,
    without_code,
)
from longhold.core.settings import front_matter
from longhold.core.settings.reading import parse_toml
from longhold.core.stages.compact.digest.files import strip_line_numbers
from longhold.core.stages.compact.digest.headings import shorten_sections
from longhold.core.stages.compact.directives import cancellings, clauses, read_claims
from longhold.core.stages.facts.gist import conclusions, gist, question
from longhold.core.stages.facts.names import find_defined, find_names, find_quoted
from longhold.core.stages.facts.outcome import (
    commits_in,
    error_head,
    has_failed,
    telling_lines,
    tree_in,
    unwrap,
)
from longhold.core.stages.facts.user_text import (
    is_interruption,
    is_summary,
    notices,
    read_typed,
    reply,
)
from longhold.insight.transcripts.claude_code.read import refusal

CHARS = 50_000
"""Of the smaller text: a long message, a short file."""
TIMES_LARGER = 4
LIMIT_SECONDS = 1.0
"""For the larger text; below it nobody waits, whatever the growth."""
MOST_TIMES = 8.0
"""Between four, which is in proportion, and sixteen, which is its square."""
STOP_SECONDS = 10.0

Reader = Callable[[str], object]


def _glob(text: str) -> object:
    """Match a short name against a long pattern, and a long path against a nasty one."""
    re.fullmatch(glob_expression(text[:120]), text[:120] + "b", re.DOTALL)
    for pattern in ("*a" * 30 + "c", "**/a/" * 20 + "c", "*" * 50 + "?" * 50 + "c"):
        re.fullmatch(glob_expression(pattern), text[:4_000], re.DOTALL)
    return None


def _toml(text: str) -> object:
    with suppress(ValueError):
        parse_toml(f"# {text}\n")
    return None


READERS: dict[str, Reader] = {
    "typed": lambda text: read_typed((Text(text=text),)),
    "is_interruption": lambda text: is_interruption((Text(text=text),)),
    "is_summary": lambda text: is_summary((Text(text=text),)),
    "notices": lambda text: list(notices((Text(text=text),))),
    "refusal": lambda text: refusal(
        ToolResult(tool_use_id="t", content=(Text(text=text),), is_error=True),
        {"toolUseResult": text},
        "Bash",
    ),
    "reply": lambda text: reply(f"User has answered your questions: {text}x"),
    "masked": mask_secrets,
    "readable_text": extract_text,
    "front_matter": lambda text: front_matter.parse(f"---\n{text}\n---\n"),
    "toml": _toml,
    "without_numbers": strip_line_numbers,
    "ignore_rule": lambda text: parse_rule(f"# {text}x"),
    "shorten_sections": lambda text: shorten_sections(text, 1_000),
    "memory": lambda text: front_matter.parse_memory(f"---\nname: {text}\n---\n"),
    "imports_in": find_imports,
    "without_comments": without_comments,
    "glob": _glob,
    "budget_in": budget_in,
    "shell": is_read_only_command,
    "one_line": one_line,
    "tight": remove_blank_lines,
    "without_code": without_code,
    "cut": lambda text: cut(text, len(text) // 2),
    "outline": lambda text: outline(text, 1_000),
    "sentences": sentences,
    "named_in": find_names,
    "quoted_in": find_quoted,
    "defined_in": find_defined,
    "commits_in": commits_in,
    "has_failed": has_failed,
    "tree_in": tree_in,
    "telling_lines": lambda text: telling_lines(text, 1_000),
    "error_head": lambda text: error_head(text, 1_000),
    "unwrapped": unwrap,
    "conclusions": lambda text: conclusions(text, 1_000),
    "gist": lambda text: gist(text, 1_000),
    "question": question,
    "cancellings": lambda text: list(cancellings(text)),
    "clauses": clauses,
    "read_claims": lambda text: list(read_claims(text)),
    "sources_of": lambda text: sources_of(
        Memory(file="m.md", name="m", description="", body=text), Path("/nowhere")
    ),
}

UNITS = (
    " ", "\n", "\t", "a", "a ", "a.", "A", "9", "-", "_", "/", "\\", "'", '"', "`", "```\n", "*a", "**/",
    "a/", "[", "]", "(", ")", "{", "}", "<", ">", "&", "&#", "@", "@a ", "#", "=", "a=", "a: ", ": ", ";",
    "$(", "${", "\n ", " \n", "\r", ". ", "? ", "- ", "\n- ", "\n\n", "0x", "https://", "://a:", "a@",
    "key=", "sk-", "eyJ", "-----BEGIN PRIVATE KEY-----\n", "+9", "+a", "use 9", "not ", "no longer ",
    "<!--", "-->", "<a href=", "<a href=>", "</", "<![CDATA[", "<script>", "<title>", "<a x='",
    "<svg>", "<pre>", "<b>", "<task-notification>", "<status>", "<task-notification><status>",
    "<system-reminder>", "</system-reminder>", "<command-name>", "<command-name> ", "<bash-input>",
    "async\n", "func (", "pub(a) ", "1. ", "# ", " |", "<summary>", "Error: ", "Traceback\n", "[main abc] ", "rejected by user ", "|", "| |\n", "%", "\u00df",
)  # fmt: skip


def shapes(chars: int) -> Iterator[tuple[str, str]]:
    for unit in UNITS:
        yield repr(unit), unit * (chars // len(unit))
    for lead in ("<command-name>", "`", '"', "key = ", "[Request interrupted by user", "+", "<!--"):
        yield f"{lead!r} and spaces", lead + " " * chars
        yield f"{lead!r} and digits", lead + "9" * chars
    for unit, end in (
        ("<a href=", ">"), ("<a x='", "'>"), ("<!--", "-->"), ("(", ")"), ("{", "}"),
        ("<svg>", "</form>"), ("<svg>", "<form></form>"),
    ):  # fmt: skip
        yield f"{unit!r}, one end", unit * (chars // len(unit)) + end
        yield f"{unit!r}, all ends", (unit * (chars // 10) + end * (chars // 10))


class TookTooLong(Exception):
    pass


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    def stop(signal_number: int, frame: object) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def seconds_for(reader: Reader, text: str) -> float:
    """Return the CPU time a reader takes: other processes do not lengthen it."""
    began = time.process_time()
    try:
        with _stopped_after(STOP_SECONDS):
            reader(text)
    except TookTooLong:
        pass
    return time.process_time() - began


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowInput:
    reader: str
    shape: str
    seconds: float
    times: float


def slow_inputs(chars: int, readers: dict[str, Reader] = READERS) -> tuple[int, list[SlowInput]]:
    """Return how many inputs were tried, and those that were slow."""
    tried, slow = 0, []
    large = dict(shapes(chars * TIMES_LARGER))
    for shape, text in shapes(chars):
        for name, reader in readers.items():
            tried += 1
            seconds = seconds_for(reader, large[shape])
            if seconds > LIMIT_SECONDS:
                times = seconds / max(seconds_for(reader, text), 1e-6)
                if times > MOST_TIMES or seconds > STOP_SECONDS:
                    slow.append(
                        SlowInput(
                            reader=name,
                            shape=shape,
                            seconds=round(seconds, 2),
                            times=round(times, 1),
                        )
                    )
    return tried, slow


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--chars", type=int, default=CHARS, help="of the smaller text")
    given = parser.parse_args()
    tried, slow = slow_inputs(given.chars)
    found = {
        "inputs": tried,
        "slow_inputs": len(slow),
        "limit_seconds": LIMIT_SECONDS,
        "most_times": MOST_TIMES,
        "chars": given.chars * TIMES_LARGER,
        "slow": [asdict(one) for one in slow],
    }
    if given.json:
        print(json.dumps(found, indent=2))
        return
    print(f"{tried} inputs, {len(slow)} slow (over {LIMIT_SECONDS:g} s and {MOST_TIMES:g} times)")
    for one in slow:
        print(f"  {one.reader}: {one.shape}: {one.seconds} s, {one.times} times")


if __name__ == "__main__":
    main()
