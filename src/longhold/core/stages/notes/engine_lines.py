"""The engine's lines for each section of the notes, from an account of the session. Pure.

Each section has a budget. Lines are taken in order of value and shown in reading order; `[#n]` is
message n of the log.
"""

from collections.abc import Callable, Iterable, Iterator

from longhold.core.messages.text import (
    cut,
    head_and_tail,
    one_line,
    outline,
    remove_blank_lines,
    sentences,
)
from longhold.core.stages.facts.facts import cite, times
from longhold.core.stages.facts.names import PROSE, last_name, suffix_of
from longhold.core.stages.notes.account import File, SessionAccount, TurnRecord
from longhold.core.view.tokens import estimate_tokens

TITLE_CHARS = 72
MESSAGE_CHARS = 1_200
"""A longer message is a paste."""
QUOTE_CHARS = 300
ANSWER_CHARS = 600
ANSWERS = 5
WORDS_CHARS = 90
SAID_CHARS = 110
NAMES = 8
RECENT = 5
OUTLINE_CHARS = 800
MISSES = 20
"""Lines in a row that find no room: a session of a thousand turns has as many more."""


def engine_sections(account: SessionAccount, section_tokens: int) -> dict[str, str]:
    """Write every section for which the log has something, within a budget each."""
    writers: dict[str, Callable[[SessionAccount], Iterable[str]]] = {
        "Title": _title,
        "Current state": _state,
        "Task": _task,
        "Files and functions": _files,
        "Workflow": _workflow,
        "Errors and corrections": _errors,
        "System documentation": _documents,
        "Learnings": lambda account: (
            f"- {text} {cite(id)}" for text, id in reversed(account.learnt.items())
        ),
        "Key results": _results,
        "Worklog": lambda account: map(_line, reversed(account.turns)),
    }
    return {
        heading: text
        for heading, writer in writers.items()
        if (text := _fit(writer(account), section_tokens, heading in NEWEST_LAST))
    }


NEWEST_LAST = frozenset({"Task", "Errors and corrections", "Learnings", "Key results", "Worklog"})
"""Sections in order of time; the oldest lines are dropped first."""


def _fit(lines: Iterable[str], budget_tokens: int, newest_last: bool) -> str:
    """Take lines while there is room, the most valuable first."""
    taken: list[str] = []
    left, missed = budget_tokens, 0
    for line in lines:
        price = estimate_tokens(line)
        if price <= left:
            taken.append(line)
            left, missed = left - price, 0
        elif (missed := missed + 1) == MISSES:
            break  # the room is spent, however many lines there are
    return "\n".join(reversed(taken) if newest_last else taken)


def _title(account: SessionAccount) -> Iterator[str]:
    for turn in account.turns:
        if turn.words is not None and turn.words.via != "shell":
            yield cut(
                one_line(sentences(turn.words.text)[0] if turn.words.text.strip() else ""),
                TITLE_CHARS,
            )
            return


def _state(account: SessionAccount) -> Iterator[str]:
    for todo in account.todos:
        if todo.state != "completed":
            yield f"- [{todo.state.replace('_', ' ')}] {one_line(todo.text)}"
    for task in account.tasks.values():
        if task.state == "running":
            about = cut(one_line(task.about), QUOTE_CHARS)
            yield f"- still running: {task.name} {cite(task.id)} {about}"
    spoken = [turn for turn in account.turns if turn.words is not None]
    if spoken and (words := spoken[-1].words) is not None:
        yield f"- the user last said {cite(words.id)}: {cut(one_line(words.text), QUOTE_CHARS)}"
    answers = [turn.answer for turn in account.turns if turn.answer is not None]
    if answers:
        last = " ".join(sentences(remove_blank_lines(answers[-1].text))[-2:])
        yield f"- the agent last said {cite(answers[-1].id)}: {cut(one_line(last), QUOTE_CHARS)}"
    for change in reversed(account.recent[-RECENT:]):
        yield f"- {change.action} {change.path} {cite(change.id)}"


def _task(account: SessionAccount) -> Iterator[str]:
    said = [turn for turn in account.turns if turn.words and turn.words.text.strip()]
    first = said[:1] if len(said) > 1 else []
    for turn in (*reversed(said[1:] if first else said), *first):
        assert turn.words is not None
        text = head_and_tail(turn.words.text, MESSAGE_CHARS, cite(turn.words.id))
        yield f"- T{turn.number} {cite(turn.words.id)}: {_indent(text)}"


def _files(account: SessionAccount) -> Iterator[str]:
    changed = [file for file in account.files.values() if file.changes]
    for file in sorted(changed, key=lambda file: (-file.changes, -file.last)):
        yield _file(file)
    read = [file for file in account.files.values() if not file.changes]
    for file in sorted(read, key=lambda file: (-file.reads, -file.last)):
        yield f"- {file.path}: read{times(file.reads)}"


def _file(file: File) -> str:
    read = f", read{times(file.reads)}" if file.reads else ""
    names = ", ".join(name for name, _ in file.names.most_common(NAMES))
    about = f"; {names}" if names else ""
    return f"- {file.path}: changed{times(file.changes)}{read} {cite(file.last)}{about}"


def _workflow(account: SessionAccount) -> Iterator[str]:
    for ran in sorted(account.commands.values(), key=lambda ran: (-ran.times, -ran.last)):
        failed = f", failed{times(ran.failed)}" if ran.failed else ""
        ended = "failed" if ran.is_failing else (ran.outcome or "ok")
        yield f"- `{ran.text}`{times(ran.times)}{failed}, last {cite(ran.last)}: {ended}"


def _errors(account: SessionAccount) -> Iterator[str]:
    for (subject, error), id in reversed(account.mistakes.items()):
        ran = account.commands.get(subject)
        mended = f" Works since {cite(ran.last)}." if ran and not ran.is_failing else ""
        what = f"`{subject}`: " if subject else ""
        yield f"- {cite(id)} {what}{cut(error, QUOTE_CHARS)}{mended}"


def _documents(account: SessionAccount) -> Iterator[str]:
    for plan in reversed(account.plans):
        yield f"- approved plan {cite(plan.id)}:\n  {_indent(outline(plan.text, OUTLINE_CHARS))}"
    for file in account.files.values():
        if file.reads and suffix_of(file.path).lower() in PROSE:
            yield f"- {file.path} was read {cite(file.last)}"


def _results(account: SessionAccount) -> Iterator[str]:
    answered = [turn for turn in account.turns if turn.answer is not None]
    for turn in reversed(answered[-ANSWERS:]):
        assert turn.answer is not None
        text = cut(remove_blank_lines(turn.answer.text), ANSWER_CHARS)
        yield f"- T{turn.number} {cite(turn.answer.id)}: {_indent(text)}"
    for commit, id in reversed(account.commits.items()):
        yield f"- commit {commit} {cite(id)}"


def _line(turn: TurnRecord) -> str:
    words = turn.words
    asked = f'{cite(words.id)} "{cut(one_line(words.text), WORDS_CHARS)}"' if words else ""
    done = []
    if turn.changed:
        names = (f"{last_name(p)}{times(n)}" for p, n in turn.changed.items())
        done.append(f"changed {', '.join(names)}")
    if turn.read:
        done.append(f"read {turn.read}")
    if turn.commands:
        done.append(f"ran {turn.commands}")
    if turn.is_interrupted:
        done.append("interrupted")
    if turn.answer is not None:
        said = sentences(remove_blank_lines(turn.answer.text))[:1]
        done.append(f"said: {cut(one_line(' '.join(said)), SAID_CHARS)}")
    return f"- T{turn.number} {asked}: {'; '.join(done)}".rstrip(": ").replace("  ", " ")


def _indent(text: str) -> str:
    return text.strip().replace("\n", "\n  ")
