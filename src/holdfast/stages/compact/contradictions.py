"""What a model wrote and the log contradicts, marked where it stands.

Two things can be told without judgement: a hash, a ticket or a file that is named nowhere in the
log, and tests that are said to pass although the last run of them failed.
"""

import re
from collections.abc import Iterator, Sequence

from holdfast.messages import text_of
from holdfast.stages.facts.facts import CommandFact, Facts, cite
from holdfast.stages.facts.names import named_in
from holdfast.view.items import Item

UNKNOWN = "[not found in the log]"
CHECKED = frozenset({"id", "path"})
"""Kinds of names that cannot be a way of putting it."""

_FILE = re.compile(r"[\w-]\.\w{1,6}$")
_PASS = re.compile(
    r"\b(?:all|the)? ?tests? (?:suite )?(?:now )?(?:all )?(?:pass(?:es|ed|ing)?|(?:is|are) green)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|no|never|until|once|if|should|must|before|make)\b", re.IGNORECASE)
_TESTS = re.compile(r"\b(?:test|pytest|tox|jest|vitest|rspec|ctest|check)\b", re.IGNORECASE)


def marked(written: str, facts: Facts, items: Sequence[Item]) -> str:
    """Mark what a summary says against the log."""
    for name in _unknown(written, facts, items):
        written = written.replace(name, f"{name} {UNKNOWN}", 1)
    failed = _failed_last(facts)
    if failed is None:
        return written
    mark = f" [the log says otherwise: `{failed.text}` failed {cite(failed.id)}]"
    return "\n".join(_contradicted(line, mark) for line in written.split("\n"))


def _contradicted(line: str, mark: str) -> str:
    claim = _PASS.search(line)
    if claim is None or _DENIED.search(line):
        return line
    return f"{line}{mark}"


def _unknown(written: str, facts: Facts, items: Sequence[Item]) -> Iterator[str]:
    names = [
        name
        for name, kind in named_in(written).items()
        if kind in CHECKED and (kind == "id" or _FILE.search(name))
    ]
    if not names:
        return
    told = "\n".join((*_texts(facts), *(text_of(item.content) for item in items)))
    for name in names:
        key = name.rpartition("/")[2] if "/" in name else name.lstrip("#")
        if key not in told:
            yield name


def _texts(facts: Facts) -> Iterator[str]:
    for _, words in facts.words():
        yield words.text
    for _, step in facts.steps():
        for field in ("text", "path", "about", "pattern", "added", "removed", "output", "error"):
            if held := getattr(step, field, ""):
                yield held
    yield from (summary.text for summary in facts.prior)
    yield from (todo.text for todo in facts.todos)


def _failed_last(facts: Facts) -> CommandFact | None:
    """Return the last run of tests, if it failed."""
    runs = [
        step
        for _, step in facts.steps()
        if isinstance(step, CommandFact) and _TESTS.search(step.text)
    ]
    return runs[-1] if runs and runs[-1].has_failed else None
