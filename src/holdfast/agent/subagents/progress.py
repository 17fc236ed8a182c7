"""What an agent is doing, in three to five words, from its last tool call or from a model."""

import re
from pathlib import PurePath

from holdfast.messages import ToolUse

THINKING = "Thinking about the task"
WORD_CHARS = 40
"""Longer words are cut."""
ASK = (
    "Say in two to five words, in the present tense, what you are doing just now, naming the file "
    "or function: for example 'Reading the parser in loop.py'. Answer with these words only."
)
WORDS = (2, 5)
"""A verb and a thing at least; more take too long to read."""
_VAGUE = frozenset(
    [
        "a",
        "about",
        "again",
        "all",
        "an",
        "and",
        "around",
        "at",
        "by",
        "code",
        "codebase",
        "changes",
        "details",
        "everything",
        "file",
        "files",
        "for",
        "from",
        "how",
        "in",
        "into",
        "issue",
        "it",
        "its",
        "more",
        "my",
        "new",
        "next",
        "now",
        "of",
        "on",
        "one",
        "our",
        "problem",
        "project",
        "repository",
        "request",
        "result",
        "results",
        "situation",
        "some",
        "something",
        "step",
        "task",
        "that",
        "the",
        "their",
        "them",
        "these",
        "thing",
        "things",
        "this",
        "those",
        "through",
        "to",
        "up",
        "user",
        "various",
        "what",
        "with",
        "work",
        "working",
        "you",
        "your",
    ]
)
"""Words that name nothing: a line whose verb is followed by these only says nothing."""

_FILES = {
    "Read": "Reading the file",
    "Edit": "Editing the file",
    "Write": "Writing the file",
    "NotebookEdit": "Editing the notebook",
}


def progress_line(use: ToolUse | None) -> str:
    if use is None:
        return THINKING
    given = use.input
    match use.name:
        case "Read" | "Edit" | "Write" | "NotebookEdit" as tool:
            path = str(given.get("file_path") or given.get("path") or given.get("notebook_path"))
            return f"{_FILES[tool]} {_word(PurePath(path).name)}"
        case "Bash":
            return f"Running the command {_program(str(given.get('command', '')))}"
        case "Grep" | "Glob":
            return f"Searching for matches of {_word(str(given.get('pattern', '')))}"
        case "WebFetch":
            host = re.sub(r"^\w+://([^/]*).*", r"\1", str(given.get("url", "")))
            return f"Fetching a page from {_word(host)}"
        case "Agent":
            return "Waiting for another agent"
        case name:
            return f"Using the tool {_word(name)}"


def taken(said: str) -> str:
    """Return a model's line if it has the right form, else ''."""
    line = " ".join(said.split()).strip(" .'\"`")
    words = line.split()
    fits = WORDS[0] <= len(words) <= WORDS[1] and line.isprintable()
    is_short = len(line) <= WORDS[1] * WORD_CHARS
    return line if fits and is_short and _is_going_on(words[0]) and _names(words[1:]) else ""


def _is_going_on(verb: str) -> bool:
    return verb.casefold().endswith("ing") and verb.isalpha()


def _names(words: list[str]) -> bool:
    return any(word.casefold().strip(".,:;") not in _VAGUE for word in words)


def _program(command: str) -> str:
    """Return the program of a command, without variables set before it."""
    words = [word for word in command.split() if not re.match(r"\w+=", word)]
    return _word(PurePath(words[0]).name if words else "")


def _word(text: str) -> str:
    shown = "".join(char for char in "_".join(text.split()) if char.isprintable())
    return (shown if len(shown) <= WORD_CHARS else f"{shown[: WORD_CHARS - 1]}…") or "unnamed"
