"""Extract the lines of a command's output that show how it ended.

The patterns cover compilers, test runners, linters and Git.
"""

import re
from dataclasses import dataclass
from itertools import islice

from longhold.core.messages.text import CUT, cut, one_line

TELLING_LINES = 2
LEAST_CHARS = 140
"""With less space, only the line that names the problem is shown."""
HEAD_CHARS = 80
"""Enough to recognise an error and to leave space for the line that names the problem."""
PLACES = 2
VERDICT_CHARS = 8
"""A shorter line reports a failure but does not describe it."""
LABEL_CHARS = 20
LINE_CHARS = 160
"""Longer lines are data."""

_WRAPPER = re.compile(r"</?(?:tool_use_error|error|output|stdout|stderr)>")
_FAILURE = re.compile(
    r"\b(?:FAIL(?:ED|URE)?|ERROR|[Ee]rror(?:\[|:|s\b)|panic:|[Ff]atal|Traceback|[Ee]xception"
    r"|AssertionError|\w+Error:|undefined|cannot|not found|No such file|denied|conflict)"
)
_PLACE = re.compile(
    r"\S+\.\w+(?::\d+(?::\d+)?:? ?(?=\S)|\(\d+(?:,\d+)?\):? )(?!.*\b(?:INFO|DEBUG)\b)"
)
"""Matches a file and line with a message, but not a log line, which names its origin."""
_TOTAL = re.compile(
    r"\bfound (?:\d+|no) \w|\b(?:\d+|no) (?:packages ok|passed|failed|tests?|files? changed|issues?|errors?|warnings?|problems?|failures?)\b"
    r"|\bok\s+\S+\s+[\d.(]|^(?:PASS|OK)\b|\ball tests passed\b|pull/\d+|-> [\w./-]+$",
    re.IGNORECASE | re.MULTILINE,
)
_PASSED = re.compile(r"(?:ok|\?)\s+\S+/\S+\s")
_FAILED = re.compile(
    r"^[^\w\n]{0,20}(?:FAIL(?:ED)?\b|ERROR\b|panic:|fatal:|error(?:\[\w+\])?:)", re.MULTILINE
)
_PACKAGE = re.compile(r"FAIL\s+\S+/\S+")
"""Matches output that names only the place of a failure."""
_COUNTED = re.compile(
    r"^\[[\w:-]+\] ERROR\b|\b[1-9]\d* (?:tests? )?(?:failures?|failed)\b", re.MULTILINE
)
"""Matches output that counts failures without naming them."""
_LOOKING = re.compile(
    r"\s*(?:cd [^&;]+&&\s*)?(?:ls|cat|head|tail|grep|rg|find|pwd|wc|jq|echo|sed -n"
    r"|git (?:status|log|diff|show|branch))\b"
)
_KIND = re.compile(r"(?:cd [^&;]+&&\s*)?(?:\w[\w.:-]*(?=\s|$)\s*){0,3}")
_PIPES = re.compile(r"(?: 2>(?:&1|/dev/null)| \| (?:tail|head)(?: -n?\s?\d+)?)+$")
_SHOWN_COMMIT = re.compile(
    r"^commit (?P<hash>[0-9a-f]{7,40})\b.*\n(?:Merge:.*\n)?Author: +(?P<author>[^<\n]+?) *<.*\n"
    r"(?:\w+: .*\n)*\s*\n? *(?P<subject>.*)$",
    re.MULTILINE,
)
_LISTED_COMMIT = re.compile(r"^\W{0,4}(?P<hash>[0-9a-f]{7,12}) (?P<subject>\S.*)$", re.MULTILINE)
_BRANCH = re.compile(
    r"^(?:On branch|HEAD is now at|Switched to (?:a new )?branch) '?([\w./-]+)", re.M
)
_CHANGED = re.compile(r"^\t(?:(\w[\w ]+): +)?(\S.*)$", re.MULTILINE)
_COMMIT = re.compile(r"^\[([\w./-]+)(?: \([\w-]+\))? ([0-9a-f]{7,40})\] (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLine:
    hash: str
    branch: str = ""
    subject: str
    author: str = ""


def unwrap(text: str) -> str:
    return _WRAPPER.sub("", text).strip()


def commits_in(output: str) -> list[CommitLine]:
    return [
        CommitLine(hash=hash, branch=branch, subject=subject.strip())
        for branch, hash, subject in _COMMIT.findall(output)
    ]


def find_listed_commits(output: str) -> list[CommitLine]:
    """Return the commits in the output of `git log` or `git show`, with authors if given."""
    found = (*_SHOWN_COMMIT.finditer(output), *_LISTED_COMMIT.finditer(output))
    listed = (each.groupdict() for each in found)
    return [CommitLine(**each | {"subject": each["subject"].strip()}) for each in listed]


def branch_in(output: str) -> str:
    found = _BRANCH.findall(output)
    return found[-1] if found else next((c.branch for c in commits_in(output)), "")


def tree_in(output: str) -> str:
    """Return the changed and untracked files in the output of `git status`, or ""."""
    if not _BRANCH.match(output):
        return ""
    files: dict[str, list[str]] = {}
    for state, path in _CHANGED.findall(output):
        files.setdefault(state or "untracked", []).append(path)
    return "; ".join(f"{state} {', '.join(paths)}" for state, paths in files.items())


def has_failed(output: str) -> bool:
    """Return whether an output reports a failure, regardless of the exit status."""
    return bool(_FAILED.search(output) or _COUNTED.search(output))


def without_pipes(command: str) -> str:
    """Strip the parts of a command that only limit its output."""
    return _PIPES.sub("", command)


def kind_of(command: str) -> str:
    """Return the leading words of a command, such as `go test` or `mise run lint`."""
    found = _KIND.match(command)
    return " ".join(found[0].split()) if found else ""


def only_looks(command: str) -> bool:
    """Return whether a command only shows something, so that its output proves no success."""
    return bool(_LOOKING.match(command))


def find_total(output: str) -> str:
    """Return the last line that counts something, such as the end of `git diff --stat`."""
    totals = [line.strip() for line in output.splitlines() if _TOTAL.search(line)]
    return cut(totals[-1], LINE_CHARS) if totals else ""


def telling_lines(output: str, chars: int) -> str:
    output = unwrap(output)
    if len(output) <= chars:
        return one_line(output)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    passed = [line for line in lines if _PASSED.match(line)]
    if len(passed) > TELLING_LINES:
        lines = [*(line for line in lines if line not in passed), f"{len(passed)} packages ok"]
    failures = (i for i, line in enumerate(lines) if _FAILURE.search(line))
    totals = (i for i, line in enumerate(lines) if _TOTAL.search(line) or _COMMIT.match(line))
    places = (i for i, line in enumerate(lines) if _PLACE.match(line))
    telling = (*islice(failures, TELLING_LINES), *islice(totals, TELLING_LINES), *islice(places, 1))
    chosen = set(telling) or {len(lines) - 1}
    shown = [cut(lines[i], LINE_CHARS) for i in sorted(chosen)]
    return cut(f" {CUT} ".join(shown), chars)


def _join_place(lines: list[str], start: int) -> str:
    """Join a place with its message and with the labelled values below it, such as `Type:`."""
    end = start + 1 + (" " not in lines[start])
    while end + 1 < len(lines) and lines[end].endswith(":") and len(lines[end]) <= LABEL_CHARS:
        end += 2
    return " ".join(lines[start:end])


def error_head(text: str, chars: int) -> str:
    """Return an error's beginning, and the lines that name the problem if they come later."""
    whole = one_line(text)
    if len(whole) <= chars:
        return whole
    head = f"{whole[:HEAD_CHARS].rstrip()} {CUT}"
    lines = [line for each in text.splitlines() if (line := one_line(each)) and line not in head]
    placed = [i for i, line in enumerate(lines) if _PLACE.match(line)]
    said = [_join_place(lines, i) for i in placed]
    named = [line for line in lines if _FAILED.match(line) and len(line) > VERDICT_CHARS]
    named = [line for line in named if not (said and _PACKAGE.match(line))]
    failing = [line for line in lines if _FAILURE.search(line)]
    problem = " ".join((*named[:1], *said)[:PLACES] or failing[:1])
    if chars < LEAST_CHARS and problem:
        return cut(problem, chars)
    room = chars - len(head)
    return f"{head} {cut(problem, room)}" if problem else f"{whole[:chars].rstrip()} {CUT}"
