"""Section 6: all user messages word for word, and the work done on each.

Pastes lose their middle, with a pointer to the rest, before the user's own words are cut.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from longhold.core.messages.text import (
    CUT,
    cut,
    head_and_tail,
    one_line,
    pluralize,
    remove_blank_lines,
)
from longhold.core.stages.compact.digest.context import DigestContext
from longhold.core.stages.compact.digest.pieces import DigestPiece, Worth, line_piece, lower_by_age
from longhold.core.stages.facts.facts import (
    AnswerFact,
    ChangeFact,
    CommandFact,
    Interruption,
    Look,
    PlanFact,
    Report,
    StepFact,
    TurnFacts,
    WordsFact,
    cite,
    times,
)
from longhold.core.stages.facts.gist import announces, gist, is_strong, remark
from longhold.core.stages.facts.names import last_name
from longhold.core.stages.facts.outcome import only_looks, telling_lines
from longhold.core.stages.facts.user_text import without_pastes

ABOUT_CHARS = 120
MOST_READ = 3
"""More files are only counted here; section 3 lists them."""
REPLY_CHARS = 60
"""A message this short is shown with the question it answers."""


def message_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Yield the user's messages. The oldest are left out if the budget cannot show them at all."""
    left_out = context.left_out
    if left_out:
        first, last = left_out[0], left_out[-1]
        line = f"{pluralize(len(left_out), 'older message')} from {cite(first[1].id)} to {cite(last[1].id)}"
        yield line_piece(6, (-1,), f"{line} left out; the log has them.", Worth.LAST_WORDS)
    for turn in context.facts.turns:
        if turn.number in context.hidden_turns:
            continue
        if turn.words is None:
            line = f"T{turn.number}, work that was going on when this begins:"
            yield line_piece(6, (turn.number, -1), line, Worth.WORK)
        else:
            yield _words(context, turn.number, turn.words, (turn.number, -1))
        for i, step in enumerate(turn.steps):
            if isinstance(step, WordsFact) and step.text:
                yield _words(context, turn.number, step, (turn.number, 1, i))


def turn_pieces(context: DigestContext, turn: TurnFacts) -> Iterator[DigestPiece]:
    yield from _work(context, turn)
    yield from _steps(context, turn)


def work_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Yield the work of each turn, for texts that have the user's words elsewhere."""
    for turn in context.facts.turns:
        for piece in _steps(context, turn):
            yield replace(piece, forms=tuple(f"T{turn.number} {form}" for form in piece.forms))


def _words(
    context: DigestContext, turn: int, words: WordsFact, place: tuple[float, ...]
) -> DigestPiece:
    limits, pointer = context.limits, cite(words.id)
    is_reply = words.via == "message" and len(words.text) <= REPLY_CHARS
    asked = context.questions.get(words.id, "") if is_reply else ""
    bare, lead = _lead(context, turn, words), _lead(context, turn, words, asked)
    is_last = turn == context.last_turn
    is_long = len(words.text) > limits.usual_message_chars and not is_last
    is_kept = words.id in context.whole
    is_old = context.is_tight and context.is_old(words.id) and not is_kept
    first = Worth.OLD_WORDS if is_old else Worth.WORDS
    then = Worth.WORDS if is_kept else Worth.PASTES if is_long else Worth.WHOLE_WORDS
    age = context.age(turn)
    once = lower_by_age(min(first, then), age)
    if len(words.text) <= limits.first_words_chars and "\n" not in words.text:
        gain = Worth.LAST_WORDS if is_last else lower_by_age(first, age)
        return line_piece(6, place, lead + words.text, gain)
    first_words = bare + cut(one_line(words.text), limits.first_words_chars)
    short = lead + head_and_tail(words.text, limits.short_message_chars, pointer)
    prose, whole = without_pastes(words.text, pointer), words.text.strip("\n")
    longer = [n for n in limits.long_message_chars if n < len(prose)]
    forms = [first_words, short, *(lead + head_and_tail(prose, n, pointer) for n in longer)]
    gains = [
        lower_by_age(Worth.OLD_FIRST_WORDS if is_old else Worth.FIRST_WORDS, age),
        Worth.LAST_WORDS if is_last else lower_by_age(first, age),
        *(once for _ in longer),
        once,
    ]
    forms.append(lead + prose)
    if prose != whole:
        forms.append(lead + whole)
        gains.append(once)
    return DigestPiece(6, place, tuple(forms), tuple(gains))


def _lead(context: DigestContext, turn: int, words: WordsFact, asked: str = "") -> str:
    mark = context.marks.get(words.id, "")
    state = f" ({mark})" if mark else ""
    images = f" [with {words.images} image{'s' * (words.images > 1)}]" if words.images else ""
    who = f"T{turn} {cite(words.id)} User"
    if words.via == "refusal":
        return f"{who}{state}, refusing `{_cut_about(context, words.about)}`: "
    if words.via == "answer":
        return f"{who}{state}, asked by the agent: "
    how = " ran in the shell" if words.via == "shell" else f', asked "{asked}"' if asked else ""
    return f"{who}{how}{state}{images}: "


def _work(context: DigestContext, turn: TurnFacts) -> Iterator[DigestPiece]:
    changed = Counter(s.path for s in turn.steps if isinstance(s, ChangeFact) and not s.error)
    read = {s.path for s in turn.steps if isinstance(s, Look) and s.kind == "read"}
    done = []
    if changed:
        names = (last_name(path) + times(n) for path, n in changed.items())
        done.append(f"changed {', '.join(names)}")
    if len(read) > MOST_READ:
        done.append(f"read {len(read)} files")
    elif read - changed.keys():
        names = (last_name(path) for path in sorted(read - changed.keys()))
        done.append(f"read {', '.join(names)}")
    if done:
        is_old = all(context.is_old(step.id) for step in turn.steps)
        gain = lower_by_age(Worth.OLD_TURNS if is_old else Worth.WORK, context.age(turn.number))
        yield line_piece(6, (turn.number, 0.5), f"- {'; '.join(done)}", gain)


def _steps(context: DigestContext, turn: TurnFacts) -> Iterator[DigestPiece]:
    answers = [i for i, step in enumerate(turn.steps) if isinstance(step, AnswerFact)]
    for i, step in enumerate(turn.steps):
        is_final = bool(answers) and i == answers[-1]
        for form in _forms(context, turn.number, step, is_final):
            most = Worth.OLD_TURNS if context.is_old(step.id) else Worth.LAST_WORDS
            gains = tuple(lower_by_age(min(worth, most), form.age) for worth in form.worths)
            yield DigestPiece(6, (turn.number, 1, i), form.texts, gains)


class _Form(NamedTuple):
    texts: tuple[str, ...]
    worths: tuple[Worth, ...]
    age: float = 0.0


def _forms(context: DigestContext, turn: int, step: StepFact, is_final: bool) -> Iterator[_Form]:
    match step:
        case AnswerFact() if is_final:
            yield _answer(context, turn, step)
        case AnswerFact(id=id, text=text):
            if found := remark(text, context.limits.remark_chars):
                line = f"- said {cite(id)}: {found}"
                yield _Form((line,), (_remark_worth(context, turn, found),), context.staleness(id))
        case CommandFact():
            yield _command(context, step)
        case Report(is_error=False) if step.text.strip():
            yield _report(context, turn, step)
        case ChangeFact(id=id, error="") if step.added.strip() and not context.is_current(id):
            shown = cut(step.added.strip("\n"), context.limits.old_snippet_chars)
            line = f"- changed {last_name(step.path)} {cite(id)}:\n```\n{shown}\n```"
            yield _Form((line,), (Worth.OLD_CODE,), context.staleness(id))
        case PlanFact(id=id, is_approved=is_approved):
            verdict = "approved" if is_approved else "not approved"
            yield _Form((f"- the plan was {verdict} by the user {cite(id)}",), (Worth.VERDICTS,))
        case WordsFact(id=id, text="", via="refusal", about=about):
            line = f"- the user refused `{_cut_about(context, about)}` {cite(id)}"
            yield _Form((line,), (Worth.VERDICTS,))
        case Interruption(id=id):
            yield _Form((f"- the user interrupted {cite(id)}",), (Worth.WORK,))


def _answer(context: DigestContext, turn: int, step: AnswerFact) -> _Form:
    limits, body, lead = context.limits, remove_blank_lines(step.text), f"- said {cite(step.id)}: "
    is_last = turn == context.last_turn  # a question is shown with the reply to it
    texts = (
        lead + gist(body, limits.brief_answer_chars, with_question=is_last),
        lead + gist(body, limits.short_answer_chars, with_question=is_last),
        lead + cut(body, limits.answer_chars),
        lead + cut(body, limits.long_answer_chars),
    )
    if is_last:
        worths = (Worth.LAST_ANSWER, Worth.LAST_ANSWER, Worth.LONG_LAST_ANSWER, Worth.LONG_ANSWERS)
        return _Form(texts, worths)
    worths = (Worth.BRIEF_ANSWERS, Worth.ANSWERS, Worth.LONG_ANSWERS, Worth.WHOLE_ANSWERS)
    return _Form(texts, worths, context.age(turn))


def _remark_worth(context: DigestContext, turn: int, found: str) -> Worth:
    if is_strong(found):
        return Worth.CONCLUSIONS
    is_unfinished = turn == context.last_turn and not announces(found)
    return Worth.ANSWERS if is_unfinished else Worth.REMARKS


def _cut_about(context: DigestContext, about: str) -> str:
    return cut(context.plain(one_line(about)), ABOUT_CHARS)


def _report(context: DigestContext, turn: int, step: Report) -> _Form:
    lead = f"- {step.tool} {cite(step.id)} {_cut_about(context, step.about)}"
    if step.task:  # it continues in the background and reports again
        return _Form((f"{lead} goes on as {step.task}",), (Worth.REPORTS,), context.age(turn))
    limits, body = context.limits, remove_blank_lines(step.text)
    texts = (
        lead,
        f"{lead} → {gist(body, limits.brief_report_chars, with_question=False)}",
        f"{lead} → {cut(body, limits.report_chars)}",
        f"{lead} → {cut(body, limits.long_report_chars)}",
    )
    worths = (Worth.REPORTS, Worth.BRIEF_REPORTS, Worth.TOLD_REPORTS, Worth.WHOLE_REPORTS)
    return _Form(texts, worths, context.age(turn))


def _command(context: DigestContext, step: CommandFact) -> _Form:
    limits, age = context.limits, context.staleness(step.id)
    line = cut(step.text, limits.command_chars)
    ended = f"runs in the background as {step.task}" if step.task else ""
    ended = ended or ("failed, see 4" if step.has_failed else "ok")
    brief = f"- `{_head(step.text, limits.brief_command_chars)}` {ended} {cite(step.id)}"
    short = f"- `{line}` {ended} {cite(step.id)}"
    is_recent = context.is_recent(step.id)
    worths = (
        Worth.RECENT_COMMANDS if is_recent else Worth.OLD_COMMANDS,
        Worth.WHOLE_COMMANDS,
        Worth.RECENT_OUTCOMES if is_recent else Worth.OLD_OUTCOMES,
    )
    shows_much = only_looks(step.text) and len(step.output) > limits.outcome_chars
    if step.has_failed or step.task or shows_much:
        return _Form((brief, short), worths[:2], age)
    outcome = telling_lines(step.output, limits.outcome_chars) or "ok"
    return _Form((brief, short, f"- `{line}` → {outcome} {cite(step.id)}"), worths, age)


def _head(text: str, chars: int) -> str:
    line = one_line(text)
    return line if len(line) <= chars else f"{line[:chars]} {CUT}"
