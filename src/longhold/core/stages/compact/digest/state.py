"""Sections 4, 5, 7, 8 and 9: errors, findings, pending tasks, last state, next step.

Conclusions are quoted from the model. This module adds no judgement.
"""

import re
from collections.abc import Iterator

from longhold.core.messages.text import (
    BAR,
    cut,
    one_line,
    remove_blank_lines,
    sentences,
)
from longhold.core.stages.compact.digest.context import FEWEST_CAUSES, DigestContext, Failure
from longhold.core.stages.compact.digest.pieces import (
    OUTCOMES,
    ROUTINE,
    DigestPiece,
    Worth,
    line_piece,
)
from longhold.core.stages.facts.facts import (
    AnswerFact,
    CommandFact,
    Thought,
    TurnFacts,
    cite,
)
from longhold.core.stages.facts.gist import (
    conclusions,
    gist,
    is_strong,
    only_announces,
    question,
)
from longhold.core.stages.facts.outcome import (
    branch_in,
    commits_in,
    error_head,
    find_listed_commits,
    only_looks,
    telling_lines,
    tree_in,
    without_pipes,
)

COMMAND_CHARS = 60
QUOTE_CHARS = 300
"""Limit for a short quote, because section 6 has the whole message."""
FINAL_CONCLUSIONS = 2
"""Number of conclusions per turn. Earlier conclusions were often abandoned."""
TOOL_ERROR = "<tool_use_error>"
"""The beginning of a client's refusal of a call, such as an edit of an unread file."""
HASH_CHARS = 7

_HASH = re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")


def pieces(context: DigestContext) -> Iterator[DigestPiece]:
    yield from error_pieces(context)
    yield from finding_pieces(context)
    yield from pending_pieces(context)
    yield from _next_pieces(context)


def finding_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 5: conclusions, and commits that were made or shown."""
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
    """Yield commits that were shown or compared, if the conversation mentions them."""
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
    thoughts = [step for step in turn.steps if isinstance(step, Thought)]
    latest = [t for t in thoughts if turn.number == context.open_turn and context.is_current(t.id)]
    for thought in latest[:-1]:  # section 8 has the last thought
        if only_announces(thought.text):
            continue
        forms = tuple(
            f"- T{turn.number} {cite(thought.id)} thought: {gist(thought.text, most)}"
            for most in (context.limits.remark_chars, chars)
        )
        yield DigestPiece(5, (0, thought.id), forms, (Worth.ANSWERS, Worth.REASONS))
    answers = (step for step in turn.steps if isinstance(step, AnswerFact))
    told = {t.id for t in latest} | {step.id for step in answers if is_strong(step.text)}
    told |= context.explained
    found = [
        (t.id, said)
        for t in thoughts
        if t.id not in told
        for said in zip(
            *(conclusions(t.text, chars, with_reason=whole) for whole in (False, True)), strict=True
        )
    ]
    strong = [each for each in found if is_strong(each[1][0])][-FINAL_CONCLUSIONS:]
    for i, (id, (brief, whole)) in enumerate(found):
        worth = Worth.CONCLUSIONS if (id, (brief, whole)) in strong else Worth.REASONS
        lead = f"- T{turn.number} {cite(id)} thought: "
        gains = (context.worth(worth, id), context.worth(Worth.REASONS, id))
        share = 1.0 if worth is Worth.CONCLUSIONS else OUTCOMES
        yield DigestPiece(5, (0, id, i), (lead + brief, lead + whole), gains, share)


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


def _next_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    answers = [answer for _, answer in context.facts.find(AnswerFact)]
    if answers:
        body = remove_blank_lines(answers[-1].text)
        last = cut(one_line(question(body) or " ".join(sentences(body)[-2:])), QUOTE_CHARS)
        line = f'The agent last said {cite(answers[-1].id)}: "{last}"'
        yield line_piece(9, (1,), line, Worth.NEXT_STEP)
    doing = [todo.text for todo in context.facts.todos if todo.state == "in_progress"]
    if doing:
        yield line_piece(9, (2,), f"In progress: {doing[0]}", Worth.NEXT_STEP)


def error_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 4: each distinct error once, with a reference to the fix."""
    last = max((command.id for _, command in context.facts.find(CommandFact)), default=0)
    for failure in context.failures:
        brief, *longer = context.limits.error_chars
        forms = [_describe_failure(context, failure, brief, is_explained=False)]
        gains = [context.worth(worth, failure.id) for worth in _worths(context, failure)]
        if failure.explanation:
            forms.append(_describe_failure(context, failure, brief))
            worth = Worth.EXPLAINED if is_strong(failure.explanation) else Worth.REMARKS
            gains.insert(1, context.worth(worth, failure.id))
        forms += [_describe_failure(context, failure, chars) for chars in longer]
        if failure.id == last:  # section 8 refers to it
            gains = [Worth.LAST_OUTCOME] * len(gains)
        share = ROUTINE if failure.is_refusal else 1.0
        yield DigestPiece(4, (failure.id,), tuple(forms), tuple(gains), share)


def _worths(context: DigestContext, failure: Failure) -> tuple[Worth, ...]:
    is_slip = bool(failure.mended) and failure.error.startswith(TOOL_ERROR)
    is_slip = is_slip or only_looks(failure.what)
    if is_slip or not context.is_recent(failure.id):
        return Worth.OLD_ERRORS, Worth.LONG_ERRORS, Worth.LONG_ERRORS
    if failure.is_refusal:
        return Worth.RECENT_COMMANDS, Worth.LONG_ERRORS, Worth.LONG_ERRORS
    first = Worth.RECENT_ERRORS if failure.mended else Worth.OPEN_ERRORS
    return first, Worth.CLEAR_ERRORS, Worth.LONG_ERRORS


def _describe_failure(
    context: DigestContext, failure: Failure, chars: int, *, is_explained: bool = True
) -> str:
    subject = cut(context.plain(one_line(failure.what)), COMMAND_CHARS)
    what = f"`{subject}`: " if failure.what else ""
    times = f" (×{failure.times})" if failure.times > 1 else ""
    mended = f" Worked later {cite(failure.mended)}." if failure.mended else ""
    error, why = error_head(failure.error, chars), ""
    if is_explained and failure.explanation:
        why = f" Said next {cite(failure.explained)}: {failure.explanation}"
    return f"- T{failure.turn} {cite(failure.id)} {what}{error}{times}{why}{mended}"


LAST = float("inf")


def last_state_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 8: the last command, the branch and the last thought."""
    commands = [command for _, command in context.facts.find(CommandFact)]
    if commands:
        line = f"- last command {cite(commands[-1].id)}: {_describe_end(context, commands[-1])}"
        yield line_piece(8, (LAST, 1), line, Worth.LAST_OUTCOME)
    if tree := _describe_tree(commands):
        yield line_piece(8, (LAST, 0.5), tree, Worth.LAST_OUTCOME)
    outputs = (command.output for command in reversed(commands) if "git " in command.text)
    if branch := next(filter(None, map(branch_in, outputs)), ""):
        yield line_piece(8, (LAST, 0), f"- on branch {branch}", Worth.LAST_OUTCOME)
    thoughts = [thought for _, thought in context.facts.find(Thought)]
    if thoughts and context.is_current(thoughts[-1].id):
        last = thoughts[-1]
        line = f"- last thought {cite(last.id)}: {gist(last.text, context.limits.thought_chars)}"
        yield line_piece(8, (LAST, 2), line, Worth.LAST_OUTCOME)


def _describe_tree(commands: list[CommandFact]) -> str:
    """Return the output of the last `git status`, unless a commit came after it."""
    for command in reversed(commands):
        if not command.has_failed and commits_in(command.output):
            return ""
        if tree := tree_in(command.output):
            return f"- not committed, by git status {cite(command.id)}: {tree}"
    return ""


def explanation_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 5: explanations in the order given, so that outdated ones can be recognised."""
    if len(context.causes) < FEWEST_CAUSES:
        return
    chars = context.limits.remark_chars
    brief, whole = (
        [
            f"{BAR} T{turn} {cite(id)} {cut(texts[form], chars)}"
            for turn, id, *texts in context.causes
        ]
        for form in (0, 1)
    )
    forms = tuple(
        "\n".join(("Explanations in the order they were given; the last one stands:", *shown))
        for shown in (brief[-FEWEST_CAUSES:], brief, whole)
    )
    worths = (Worth.EXPLANATIONS, Worth.EARLIER_EXPLANATIONS, Worth.CONCLUSIONS)
    yield DigestPiece(5, (-1,), forms, worths)


def _describe_end(context: DigestContext, command: CommandFact) -> str:
    limits = context.limits
    line = cut(without_pipes(one_line(command.text)), limits.outcome_chars)
    if command.task:
        return f"`{line}` runs in the background as {command.task}"
    if command.id in {failure.id for failure in context.failures}:
        return f"`{line}` failed, see section 4"
    if command.has_failed:
        return f"`{line}` failed: {error_head(command.output, limits.error_chars[-1])}"
    return f"`{line}` → {telling_lines(command.output, limits.outcome_chars) or 'ok'}"
