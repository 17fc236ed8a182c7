"""The model's summary: write the request for it and parse the answer. Pure.

The model writes seven of nine sections; the engine adds files, commands and user messages. Parsing
rejects an apology or half an answer.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, TypeAlias

from longhold.core.messages.text import cut, one_line
from longhold.core.stages.compact.digest import SECTIONS
from longhold.core.stages.compact.digest.headings import parts
from longhold.core.stages.compact.directives import Directive
from longhold.core.stages.compact.owner import SummaryKind

SummaryFault: TypeAlias = Literal["empty", "tool_call", "cut_off", "sections", "refused"]

HEADINGS = {n: SECTIONS[n] for n in (1, 2, 4, 5, 7, 8, 9)}
NEEDED = frozenset({1, 8})
"""The request and the current work. Without them the work cannot continue."""
ENOUGH_SECTIONS = 5
"""One or two sections may be missing if there was nothing to say."""
PIVOT_CHARS = 120
LISTED_MESSAGES = 80
"""Only the latest messages, because earlier requests asked about older ones."""
LISTED_CHARS = 100

_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL | re.IGNORECASE)
_ANALYSIS = re.compile(r"<analysis>.*?(?:</analysis>|(?=<summary>)|\Z)", re.DOTALL | re.IGNORECASE)
_STATES = re.compile(r"<states>(.*?)(?:</states>|\Z)", re.DOTALL | re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n\s*\n(?:\s*\n)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    sections: dict[int, str]
    states: str = ""
    """Unchecked claims about the state of the user's requests."""

    def text(self) -> str:
        return "\n\n".join(
            f"## {number}. {HEADINGS[number]}\n{text}" for number, text in self.sections.items()
        )


_PROMPTS = {
    file.name.removesuffix(".md"): file.read_text("utf-8").strip()
    for file in (files("longhold.core.stages.compact") / "prompts").iterdir()
}
"""Read at import, because compaction must work even if no more files can be opened."""


def prompt(name: str) -> str:
    return _PROMPTS[name]


def ask_for_summary(
    kind: SummaryKind = "full",
    *,
    focus: Iterable[str] = (),
    directives: Iterable[Directive] = (),
    shortened: Iterable[Directive] = (),
    pivot: str = "",
) -> str:
    """Write the request. Messages in `shortened` will not be included word for word."""
    scope, work, next_step = prompt(kind).split("\n---\n")
    scope = scope.replace("{pivot}", cut(one_line(pivot), PIVOT_CHARS))
    asked = prompt("summary").replace("{scope}", scope)
    parts = [asked.replace("{work}", work).replace("{next}", next_step)]
    instructions = [text.strip() for text in focus if text.strip()]
    if instructions:
        parts.append(prompt("focus").replace("{focus}", "\n\n".join(instructions)))
    listed = [_cite_start(each) for each in directives if each.state == "open"]
    if listed:
        parts.append(prompt("states").replace("{messages}", "\n".join(listed[-LISTED_MESSAGES:])))
    cut_short = [_cite_start(each) for each in shortened if each.state == "open"]
    if cut_short:
        messages = "\n".join(cut_short[-LISTED_MESSAGES:])
        parts.append(prompt("shortened").replace("{messages}", messages))
    return "\n\n".join((*parts, prompt("no_tools")))


def _cite_start(directive: Directive) -> str:
    return f"#{directive.message}: {cut(one_line(directive.text), LISTED_CHARS)}"


def read_summary(text: str, stop_reason: str) -> Written | SummaryFault:
    match stop_reason:
        case "max_tokens" | "model_context_window_exceeded":
            return "cut_off"
        case "refusal":
            return "refused"
        case "tool_use":
            return "tool_call"
    if not text.strip():
        return "empty"
    found = _SUMMARY.search(text)
    body = found[1] if found else _STATES.sub("", _ANALYSIS.sub("", text))
    sections = dict(_sections(body))
    if not sections.keys() >= NEEDED or len(sections) < ENOUGH_SECTIONS:
        return "sections"
    states = _STATES.search(text)
    return Written(sections=sections, states=states[1].strip() if states else "")


def _sections(body: str) -> Iterable[tuple[int, str]]:
    for part in parts(body, _match_heading)[1]:
        if part.number in HEADINGS and part.text:
            yield part.number, _BLANK_LINES.sub("\n\n", part.text)


def _match_heading(number: int, title: str) -> str:
    """Match a heading by its first characters, because models word them differently."""
    wanted = HEADINGS.get(number, "")
    return wanted if wanted and title.lower().startswith(wanted[:8].lower()) else ""
