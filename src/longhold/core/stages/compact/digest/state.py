"""Sections 1, 2, 4, 5, 7, 8 and 9: request, tools, errors, findings, pending, current, next step.

Nothing is judged here: requests are quoted and conclusions are the model's own sentences.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from longhold.core.messages.text import (
    cut,
    head_and_tail,
    one_line,
    remove_blank_lines,
    sentences,
    without_code,
)
from longhold.core.stages.compact.digest.context import DigestContext
from longhold.core.stages.compact.digest.pieces import DigestPiece, Worth, line_piece, lower_by_age
from longhold.core.stages.facts.facts import (
    AnswerFact,
    ChangeFact,
    CommandFact,
    Facts,
    Look,
    Thought,
    TurnFacts,
    WordsFact,
    cite,
    error_of,
    subject_of,
)
from longhold.core.stages.facts.gist import conclusions, gist, is_strong, question
from longhold.core.stages.facts.names import last_name, list_removed, suffix_of
from longhold.core.stages.facts.outcome import (
    branch_in,
    commits_in,
    error_head,
    find_listed_commits,
    telling_lines,
)

COMMAND_CHARS = 100
SHORT_ERROR_CHARS = 220
QUOTE_CHARS = 300
"""Short, because section 6 has the whole message."""
PARTS = 3
"""Programs named per command line. Later ones are usually filters."""
FINAL_CONCLUSIONS = 2
"""Per turn. Earlier conclusions were often abandoned."""
GONE = 8
HASH_CHARS = 7
SUFFIXES = 5
PROGRAMS = 8

_HASH = re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")


def pieces(context: DigestContext) -> Iterator[DigestPiece]:
    yield from _request(context)
    yield from _concepts(context)
    yield from error_pieces(context)
    yield from finding_pieces(context)
    yield from pending_pieces(context)
    yield from current_pieces(context)
    yield from _next_pieces(context)


def _request(context: DigestContext) -> Iterator[DigestPiece]:
    said = [(turn, words) for turn, words in context.facts.words() if words.via != "shell"]
    for place, (name, chosen) in enumerate((("Began", said[:1]), ("Latest", said[1:][-1:]))):
        for turn, words in chosen:
            quote = cut(one_line(words.text), QUOTE_CHARS)
            line = f"{name} with T{turn} {cite(words.id)}: {quote}"
            yield line_piece(1, (place,), line, Worth.REQUEST)


def _concepts(context: DigestContext) -> Iterator[DigestPiece]:
    suffixes = Counter(
        suffix
        for _, step in context.facts.steps()
        if isinstance(step, ChangeFact | Look) and (suffix := suffix_of(step.path))
    )
    commands = context.facts.find(CommandFact)
    programs = Counter(program for _, command in commands for program in _programs(command))
    means = [
        f"{what} {', '.join(f'{name} ×{n}' for name, n in most)}"
        for what, most in (
            ("files", suffixes.most_common(SUFFIXES)),
            ("commands", programs.most_common(PROGRAMS)),
        )
        if most
    ]
    if means:
        yield line_piece(2, (0,), f"Worked with {'; '.join(means)}.", Worth.REQUEST)


def _programs(command: CommandFact) -> Iterator[str]:
    for part in re.split(r"&&|\|\||[;|\n]", _QUOTED.sub("''", command.text))[:PARTS]:
        words = [word for word in part.split() if "=" not in word]
        if words and re.fullmatch(r"[\w./-]+", words[0]) and words[0] not in ("cd", "echo"):
            verb = words[1] if len(words) > 1 and words[1].isalpha() else ""
            yield f"{last_name(words[0])} {verb}".strip()


def finding_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 5: conclusions, commits made and commits looked at."""
    for turn in context.facts.turns:
        yield from _thoughts(context, turn)
    for number, step in context.facts.find(CommandFact):
        for i, commit in enumerate(commits_in(step.output)):
            made = f"commit {commit.hash} on {commit.branch}: {commit.subject}"
            line, gain = (
                f"- T{number} {cite(step.id)} {made}",
                context.worth(Worth.COMMITS, step.id),
            )
            yield line_piece(5, (1, step.id, i), line, gain)
    yield from _commit_pieces(context)


def _commit_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """List commits that were displayed or compared, if the conversation mentions them."""
    spoken = _find_spoken_hashes(context)
    known: dict[str, DigestPiece] = {}
    for number, step in context.facts.find(CommandFact):
        for commit in find_listed_commits(step.output) if "git " in step.text else ():
            short = commit.hash[:HASH_CHARS]
            is_better = short not in known or bool(commit.author)
            if short in spoken and is_better:
                by = f" by {commit.author}" if commit.author else ""
                subject = cut(commit.subject, COMMAND_CHARS)
                line = f"- T{number} {cite(step.id)} looked at {short}{by}: {subject}"
                gain = context.worth(Worth.SEEN, step.id)
                known[short] = line_piece(5, (2, step.id, len(known)), line, gain)
    yield from known.values()


def _find_spoken_hashes(context: DigestContext) -> set[str]:
    texts = [words.text for _, words in context.facts.words()]
    texts += [
        step.text
        for _, step in context.facts.steps()
        if isinstance(step, AnswerFact | Thought | CommandFact)
    ]
    return {hash[:HASH_CHARS] for text in texts for hash in _HASH.findall(text)}


def _thoughts(context: DigestContext, turn: TurnFacts) -> Iterator[DigestPiece]:
    chars = context.limits.thought_chars
    thought = [
        (step.id, text)
        for step in turn.steps
        if isinstance(step, Thought)
        for text in conclusions(step.text, chars)
    ]
    strong = [each for each in thought if is_strong(each[1])][-FINAL_CONCLUSIONS:]
    for i, (id, text) in enumerate(thought):
        worth = Worth.CONCLUSIONS if (id, text) in strong else Worth.REASONS
        line = f"- T{turn.number} {cite(id)} thought: {text}"
        yield line_piece(5, (0, id, i), line, context.worth(worth, id))


def pending_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 7: open todos and running background tasks."""
    order = {"in_progress": 0, "pending": 1, "completed": 2}
    for i, todo in enumerate(context.facts.todos):
        state = order.get(todo.state, 1)
        rank = Worth.OPEN_TODOS if state < order["completed"] else Worth.DONE_TODOS
        line = f"- [{todo.state.replace('_', ' ')}] {one_line(todo.text)}"
        yield line_piece(7, (state, i), line, rank)
    for i, task in enumerate(context.facts.tasks):
        if task.state == "running":
            about = cut(one_line(task.about), QUOTE_CHARS)
            line = (
                f"- in the background, not heard to have ended: {task.name} {cite(task.id)} {about}"
            )
            yield line_piece(7, (3, i), line, Worth.RUNNING)


def current_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 8: the last rounds in detail."""
    current = [(turn, s) for turn, s in context.facts.steps() if context.is_current(s.id)]
    for i, (_, step) in enumerate(current):
        age = context.staleness(step.id)
        match step:
            case ChangeFact(id=id, path=path, action=action, error=""):
                lead = f"- {action} {context.short(path)} {cite(id)}"
                forms = (lead, lead + _snippet(step, context.limits.snippet_chars))
                worths = (Worth.CURRENT_WORK, Worth.CURRENT_CODE)
                gains = tuple(lower_by_age(worth, age) for worth in worths)
                yield DigestPiece(8, (i,), forms, gains)
            case Look(id=id, path=path, kind=kind, pattern=pattern, span=span, error=""):
                sought = f" for `{pattern}`" if pattern else ""
                verb = "read" if kind == "read" else "searched"
                line = f"- {verb} {context.short(path)}{sought} {span} {cite(id)}"
                gain = lower_by_age(Worth.REMARKS, age)
                yield line_piece(8, (i,), line.replace("  ", " "), gain)


def _snippet(change: ChangeFact, chars: int) -> str:
    body = change.added.strip("\n")
    if body.strip():
        return f":\n```\n{cut(body, chars)}\n```"
    gone = list_removed([change])
    return f": took out {', '.join(gone[:GONE])}" if gone else ""


def _next_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    words = [w for _, w in context.facts.words() if w.via in ("message", "command")]
    if words:
        line = f"The user last said {cite(words[-1].id)}: "
        short = cut(one_line(words[-1].text), context.limits.first_words_chars)
        quote = one_line(head_and_tail(words[-1].text, QUOTE_CHARS, cite(words[-1].id)))
        forms = (f'{line}"{short}"', f'{line}"{quote}"')
        yield DigestPiece(9, (0,), forms, (Worth.NEXT_STEP, Worth.REQUEST))
    answers = [answer for _, answer in context.facts.find(AnswerFact)]
    if answers:
        body = remove_blank_lines(answers[-1].text)
        last = question(body) or " ".join(sentences(body)[-2:])
        line = f'The agent last said {cite(answers[-1].id)}: "{cut(one_line(last), QUOTE_CHARS)}"'
        yield line_piece(9, (1,), line, Worth.NEXT_STEP)
    doing = [todo.text for todo in context.facts.todos if todo.state == "in_progress"]
    if doing:
        yield line_piece(9, (2,), f"In progress: {doing[0]}", Worth.NEXT_STEP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One error. It counts as fixed if the same command or change succeeded later."""

    turn: int
    id: int
    what: str
    error: str
    times: int = 1
    mended: int = 0
    is_refusal: bool = False
    """The user refused the call. Section 6 has their words."""


def failures(facts: Facts) -> list[Failure]:
    found: dict[tuple[str, str], Failure] = {}
    passed = {subject_of(step): step.id for _, step in facts.steps() if not error_of(step)}
    for turn, step in facts.steps():
        error, what = error_of(step), subject_of(step)
        if not error:
            continue
        before = found.pop((what, error[:SHORT_ERROR_CHARS]), None)
        mended = passed.get(what, 0) if what else 0
        found[what, error[:SHORT_ERROR_CHARS]] = Failure(
            turn=turn,
            id=step.id,
            what=what,
            error=error,
            times=before.times + 1 if before else 1,
            mended=mended if mended > step.id else 0,
            is_refusal=isinstance(step, WordsFact),
        )
    return list(found.values())


def error_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 4: each distinct error once, with the message that shows it works now."""
    for failure in failures(context.facts):
        chars = context.limits.error_chars
        forms = tuple(_describe_failure(context, failure, most) for most in chars)
        gains = tuple(context.worth(w, failure.id) for w in _worths(context, failure))
        yield DigestPiece(4, (failure.id,), forms, gains)


def _worths(context: DigestContext, failure: Failure) -> tuple[Worth, ...]:
    if not context.is_recent(failure.id):
        return Worth.OLD_ERRORS, Worth.LONG_ERRORS, Worth.LONG_ERRORS
    if failure.is_refusal:
        return Worth.RECENT_COMMANDS, Worth.LONG_ERRORS, Worth.LONG_ERRORS
    first = Worth.RECENT_ERRORS if failure.mended else Worth.OPEN_ERRORS
    return first, Worth.LONG_ERRORS if failure.mended else Worth.CLEAR_ERRORS, Worth.LONG_ERRORS


def _describe_failure(context: DigestContext, failure: Failure, chars: int) -> str:
    subject = cut(context.plain(one_line(failure.what)), COMMAND_CHARS)
    what = f"`{subject}`: " if failure.what else ""
    times = f" (×{failure.times})" if failure.times > 1 else ""
    mended = f" Worked later {cite(failure.mended)}." if failure.mended else ""
    said = error_head(failure.error, chars)
    return f"- T{failure.turn} {cite(failure.id)} {what}{said}{times}{mended}"


LAST = float("inf")
EXPLANATIONS = 6
"""The latest; older ones were abandoned or are known."""
FEWEST_EXPLANATIONS = 2
"""A single explanation needs no order."""

_CAUSE = re.compile(
    r"root cause|turns out|\bactual(?:ly)? (?:cause|issue|problem|bug|reason)"
    r"|\b(?:bug|issue|problem|cause|reason|culprit)(?:\*\*)? (?:is|was)\b"
    r"|\b(?:bug|issue|problem|cause|reason)(?: is)?:(?:\*\*)?\s",
    re.IGNORECASE,
)


def last_state_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 8: the last command, the branch and the last thought."""
    commands = [command for _, command in context.facts.find(CommandFact)]
    if commands:
        line = f"- last command {cite(commands[-1].id)}: {_describe_end(context, commands[-1])}"
        yield line_piece(8, (LAST, 1), line, Worth.LAST_OUTCOME)
    outputs = (command.output for command in reversed(commands) if "git " in command.text)
    if branch := next(filter(None, map(branch_in, outputs)), ""):
        yield line_piece(8, (LAST, 0), f"- on branch {branch}", Worth.LAST_OUTCOME)
    thoughts = [thought for _, thought in context.facts.find(Thought)]
    if thoughts and context.is_current(thoughts[-1].id):
        last = thoughts[-1]
        line = f"- last thought {cite(last.id)}: {gist(last.text, context.limits.thought_chars)}"
        yield line_piece(8, (LAST, 2), line, Worth.LAST_OUTCOME)


def explanation_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 5: causes in the order they were given, so that an outdated one is recognised."""
    given = [
        f"- T{turn} {cite(step.id)} {cut(cause, context.limits.remark_chars)}"
        for turn, step in context.facts.find(AnswerFact)
        if (cause := _cause(step.text))
    ]
    if len(given) < FEWEST_EXPLANATIONS:
        return
    forms = tuple(
        "\n".join(("Explanations in the order they were given; the last one stands:", *shown))
        for shown in (given[-FEWEST_EXPLANATIONS:], given[-EXPLANATIONS:])
    )
    yield DigestPiece(5, (-1,), forms, (Worth.EXPLANATIONS, Worth.EARLIER_EXPLANATIONS))


def _cause(text: str) -> str:
    causes = [s for s in sentences(without_code(text)) if _CAUSE.search(s) and not s.endswith("?")]
    return one_line(causes[-1]) if causes else ""


def _describe_end(context: DigestContext, command: CommandFact) -> str:
    limits = context.limits
    line = cut(one_line(command.text), limits.command_chars)
    if command.task:
        return f"`{line}` runs in the background as {command.task}"
    if command.has_failed:
        return f"`{line}` failed: {error_head(command.output, limits.error_chars[-1])}"
    return f"`{line}` → {telling_lines(command.output, limits.outcome_chars) or 'ok'}"
