"""A deterministic coding brain that explores, edits and tests with the offered tools.

It understands two edits: `replace "old" with "new" in path` and `create path with "content"`. Its
summaries list requests, calls and edits. It stores memories only on request.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from longhold.core.messages.text import pluralize
from longhold.core.request.billing.api_request import JsonObject
from longhold.core.stages.compact.plain_summary import (
    FIELDS,
    LINE_CHARS,
    QUOTE_CHARS,
    REMINDER,
    StepsTaken,
    calls_in,
    field_of,
    last_line,
    said_by,
    subject_of,
    summarise,
)
from longhold.simulator.brains import BrainAnswer, BrainRequest, text, tool_use

TOOL = "memory"
REMEMBER = re.compile(r"^(?:please\s+)?(remember(?:\s+that|:)|always|never)\s+(.+)", re.I)
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
KEEPS, TIDIES = "You now keep the memory", "You now put the memory"
NAME_WORDS = 5


def wants_memories(task: str) -> bool:
    return task.startswith((KEEPS, TIDIES))


def memory_calls(said: Sequence[str], task: str, names: Sequence[str]) -> list[JsonObject]:
    if TOOL not in names or not task.startswith(KEEPS):
        return []
    facts = {
        found.group(2).strip().rstrip("."): found.group(1).lower()
        for words in said
        if words != task
        for sentence in SENTENCE.split(words)
        if (found := REMEMBER.match(sentence.strip()))
    }
    return [
        _memory_call(fact, word) for fact, word in facts.items() if fact.lower() not in task.lower()
    ]


def _memory_call(fact: str, word: str) -> JsonObject:
    is_rule = not word.startswith("remember")
    text = f"{word.capitalize()} {fact}" if is_rule else fact[0].upper() + fact[1:]
    name = "-".join(re.findall(r"[a-z0-9]+", fact.lower())[:NAME_WORDS])
    head = f"---\nname: {text}\ndescription: {text}\ntype: {'feedback' if is_rule else 'project'}\n---\n"
    return {"command": "create", "path": f"/memories/{name}.md", "file_text": f"{head}\n{text}.\n"}


KINDS: dict[str, str] = {
    "list": r"glob|list|^ls$|find",
    "search": r"grep|search|ripgrep",
    "edit": r"edit|replace|patch",
    "write": r"write|create",
    "read": r"read|view|^cat$|open",
    "shell": r"bash|shell|exec|terminal|command|^run",
}
"""Patterns for the purpose of a tool by its name. The first match wins."""
QUOTED = r"[\"'`]([^\"'`]+)[\"'`]"
PATH = r"[\w./-]*\w\.\w{1,5}"
REPLACE = re.compile(
    rf"(?:replace|change)\s+{QUOTED}\s+(?:with|by|to)\s+{QUOTED}\s+in\s+`?({PATH})", re.I
)
CREATE = re.compile(rf"create\s+`?({PATH})`?\s+with\s+(?:content\s+)?{QUOTED}", re.I)
CONTINUED = "This session goes on from an earlier part"
DIRECTIVE = re.compile(r"^T\d+ \[#\d+\][^:\n]*: (.+)$", re.M)
NUMBERED = re.compile(r"^## (\d)\. (.+)$", re.M)
RECENT_CALLS = 5  # number of calls that a summary lists as current work
TEST_COMMAND = "python -m pytest -q"


class BrainStep(NamedTuple):
    kind: str
    inputs: dict[str, str]


class DigestBrain:
    """Follows a fixed plan one call at a time. All its state is in the conversation."""

    def __init__(self, test_command: str = TEST_COMMAND) -> None:
        self._test_command = test_command

    def answer(self, request: BrainRequest) -> BrainAnswer:
        task, done = _task(request.messages)
        if request.purpose == "summary" or _asks_for_summary(task):
            asked = request.instructions or task
            summary = _summarise_headings(asked, request.messages) or summarise(request.messages)
            if "<summary>" in asked:
                summary = f"<summary>\n{summary}\n</summary>"
            return BrainAnswer(blocks=(text(summary),))
        if wants_memories(task):
            return _record_memories(request, task, done)
        steps = [
            use for step in plan(task, self._test_command) if (use := _call(step, request.tools))
        ]
        if len(done) < len(steps):
            return BrainAnswer(blocks=(steps[len(done)],))
        if request.forced_tool and not done:
            return BrainAnswer(blocks=(_call_forced_tool(request),))
        return BrainAnswer(blocks=(text(report(done)),))


def _record_memories(request: BrainRequest, task: str, done: Sequence[StepsTaken]) -> BrainAnswer:
    said = [words for message in request.messages if (words := said_by(message, "user"))]
    names = [str(tool.get("name")) for tool in request.tools]
    calls = [] if done else memory_calls(said, task, names)
    if not calls:
        return BrainAnswer(
            blocks=(text(f"{len(done)} written down." if done else "All is in order."),)
        )
    return BrainAnswer(blocks=tuple(tool_use(TOOL, call) for call in calls))


def plan(task: str, test_command: str = TEST_COMMAND) -> Iterator[BrainStep]:
    yield BrainStep("list", {"pattern": "**/*", "path": ".", "command": "ls"})
    replacement, creation = REPLACE.search(task), CREATE.search(task)
    if named := re.search(QUOTED, task):
        yield BrainStep("search", {"pattern": re.escape(named.group(1)), "path": "."})
    if creation:
        path, content = creation.groups()
        yield BrainStep("write", {"path": path, "content": content})
    elif path_match := re.search(PATH, task):
        path = replacement.group(3) if replacement else path_match.group()
        yield BrainStep("read", {"path": path, "command": f"cat {path}"})
    if replacement:
        old, new, path = replacement.groups()
        yield BrainStep("edit", {"path": path, "old": old, "new": new})
    if replacement or creation or re.search(r"\btests?\b", task, re.I):
        yield BrainStep("shell", {"command": test_command})


def report(done: Sequence[StepsTaken]) -> str:
    if not done:
        return "There was nothing to do with the tools at hand."
    lines = [f"Done in {pluralize(len(done), 'step')}."]
    for each in done:
        mark = "failed" if each.is_error else "ok"
        lines.append(f"- {each.name} {subject_of(each.input)}: {mark}: {last_line(each.result)}")
    return "\n".join(lines)


def _summarise_headings(asked: str, messages: Sequence[JsonObject]) -> str:
    """Summarise under the numbered headings of the prompt, or return "" if it has none."""
    calls = calls_in(messages)
    requests = [words[:QUOTE_CHARS] for m in messages[:-1] if (words := said_by(m, "user"))]
    answers = [words for m in messages if (words := said_by(m, "assistant"))]
    done = [f"{d.name} {subject_of(d.input)}: {last_line(d.result)}" for d in calls]
    known = {
        "request": requests,
        "concept": sorted({d.name for d in calls}),
        "error": [line for d, line in zip(calls, done, strict=True) if d.is_error],
        "problem": [subject_of(d.input) for d in calls if field_of(d.input, "old")],
        "work": done[-RECENT_CALLS:],
        "next": answers[-1:],
    }
    summary = []
    for number, title in NUMBERED.findall(asked):
        lines = next((found for word, found in known.items() if word in title.lower()), [])
        summary.append(f"## {number}. {title}")
        summary += [f"- {line}" for line in lines] or ["Nothing that was said."]
    return "\n".join(summary)


def _task(messages: Sequence[JsonObject]) -> tuple[str, list[StepsTaken]]:
    for index in range(len(messages) - 1, -1, -1):
        if words := said_by(messages[index], "user"):
            return _find_resumed_task(messages[index]) or words, calls_in(messages[index:])
    return "", calls_in(messages)


def _find_resumed_task(message: JsonObject) -> str:
    """Return the task after a summary, or the last request in the summary."""
    words = [REMINDER.sub("", str(b["text"])) for b in message["content"] if b["type"] == "text"]
    for place, said in enumerate(words):
        if said.startswith(CONTINUED):
            behind = [text for text in words[place + 1 :] if not text.startswith("[")]
            tasks = DIRECTIVE.findall(said.partition("\n## ")[0]) or DIRECTIVE.findall(said)
            return "\n".join(behind).strip() or (str(tasks[-1]) if tasks else "")
    return ""


def _call(step: BrainStep, tools: Sequence[JsonObject]) -> JsonObject | None:
    inputs = step.inputs
    for kind in (step.kind, "shell"):
        for tool in tools:
            if _kind(str(tool.get("name", ""))) != kind:
                continue
            properties = (tool.get("input_schema") or {}).get("properties") or {}
            chosen = {
                name: inputs[purpose]
                for purpose, names in FIELDS.items()
                if purpose in inputs
                for name in [n for n in names if n in properties][:1]
            }
            required = (tool.get("input_schema") or {}).get("required") or ()
            if chosen and all(name in chosen for name in required):
                return tool_use(str(tool["name"]), chosen)
    return None


def _kind(name: str) -> str | None:
    return next((kind for kind, shape in KINDS.items() if re.search(shape, name.lower())), None)


def _call_forced_tool(request: BrainRequest) -> JsonObject:
    named = [t for t in request.tools if request.forced_tool in ("any", t.get("name"))]
    tool = (named or request.tools)[0]
    schema = tool.get("input_schema") or {}
    names = schema.get("required") or list(schema.get("properties") or {})[:1]
    words = _task(request.messages)[0][:LINE_CHARS]
    return tool_use(str(tool["name"]), dict.fromkeys(names, words))


def _asks_for_summary(task: str) -> bool:
    lowered = task.lower()
    return "summar" in lowered and ("conversation" in lowered or "<summary>" in lowered)
