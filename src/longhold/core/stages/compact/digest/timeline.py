"""Section 6: all user messages word for word, and the work done for each.

Pasted text is shortened first, with a pointer to the rest. The user's own words come last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from longhold.core.messages.text import (
    CUT,
    cut,
    head_and_tail,
    one_line,
    remove_blank_lines,
)
from longhold.core.stages.compact.digest.context import REPLY_CHARS, DigestContext
from longhold.core.stages.compact.digest.pieces import (
    OUTCOMES,
    REPEATED,
    ROUTINE,
    DigestPiece,
    Worth,
    line_piece,
    lower_by_age,
)
from longhold.core.stages.facts.facts import (
    AnswerFact,
    Call,
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
)
from longhold.core.stages.facts.gist import gist, is_strong, remark
from longhold.core.stages.facts.names import (
    PUT_IN,
    describe_change,
    find_quoted,
    is_routine,
    last_name,
    new_lines,
)
from longhold.core.stages.facts.outcome import find_total, kind_of, only_looks, telling_lines
from longhold.core.stages.facts.user_text import find_standing, tell_pastes, without_pastes

ABOUT_CHARS = 120
PROSE_SPACES, MOST_STRINGS = 3, 2
"""Limits for strings in new code that are texts for people. Readers need the exact words."""


def message_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Yield the user's messages, without the oldest if the budget cannot show all."""
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


def work_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Yield the work of each turn, for summaries that list the user's words elsewhere."""
    for turn in context.facts.turns:
        for piece in turn_pieces(context, turn):
            yield _number(piece, turn.number)


def _number(piece: DigestPiece, turn: int) -> DigestPiece:
    return replace(piece, forms=tuple(f"T{turn} {form}" for form in piece.forms))


def _words(
    context: DigestContext, turn: int, words: WordsFact, place: tuple[float, ...]
) -> DigestPiece:
    limits, pointer = context.limits, context.pointer(words.id)
    is_reply = words.via == "message" and len(words.text) <= REPLY_CHARS
    asked = context.questions.get(words.id, "") if is_reply else ""
    bare, lead = _lead(context, turn, words), _lead(context, turn, words, asked)
    is_last = turn == context.last_turn
    is_long = len(words.text) > limits.usual_message_chars and not is_last
    is_kept = words.id in context.whole
    is_old = context.is_tight and context.is_old(words.id) and not is_kept
    is_small = context.is_small and not is_last
    first = Worth.OLD_WORDS if is_old else Worth.SMALL_WORDS if is_small else Worth.WORDS
    then = Worth.WORDS if is_kept else Worth.PASTES if is_long or is_small else Worth.WHOLE_WORDS
    age = context.age(turn)
    once = lower_by_age(min(first, then), age)
    if len(words.text) <= limits.first_words_chars and "\n" not in words.text:
        gain = Worth.OLD_WORDS if is_old else Worth.LAST_WORDS if is_last else Worth.WORDS
        return line_piece(6, place, lead + words.text, lower_by_age(gain, age))
    first_words = bare + cut(one_line(words.text), limits.first_words_chars)
    if words.id in context.repeated:
        return line_piece(6, place, first_words, lower_by_age(Worth.FIRST_WORDS, age))
    prose, whole = without_pastes(words.text, pointer), words.text.strip("\n")
    if is_small:
        prose = tell_pastes(words.text).strip("\n")
    shortened = prose if is_small else words.text
    short = lead + head_and_tail(shortened, limits.short_message_chars, pointer)
    longer = [n for n in limits.long_message_chars if n < len(prose)]
    forms = [first_words, short, *(lead + head_and_tail(prose, n, pointer) for n in longer)]
    gains = [
        lower_by_age(Worth.OLD_FIRST_WORDS if is_old else Worth.FIRST_WORDS, age),
        Worth.LAST_WORDS if is_last else lower_by_age(first, age),
        *(once for _ in longer),
        once,
    ]
    if is_old and (standing := find_standing(words.text)):
        forms[0] = bare + cut(one_line(standing), limits.standing_chars)
        gains[0] = lower_by_age(Worth.STANDING, age)
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


def turn_pieces(context: DigestContext, turn: TurnFacts) -> Iterator[DigestPiece]:
    answers = [i for i, step in enumerate(turn.steps) if isinstance(step, AnswerFact)]
    is_open = turn.number == context.open_turn and context.keeps_open
    runs = _group_runs(turn)
    for i, step in enumerate(turn.steps):
        is_final = bool(answers) and i == answers[-1]
        if is_open and isinstance(step, Call):
            yield _open_call(context, turn.number, i, step)
            continue
        if isinstance(step, CommandFact) and step is not runs[step.text][-1]:
            continue  # the last run shows the result
        forms = _forms(context, turn.number, step, is_final)
        if isinstance(step, CommandFact):
            forms = iter([_command(context, step, runs[step.text][:-1])])
        for form in forms:
            most = Worth.OLD_TURNS if context.is_old(step.id) else Worth.LAST_WORDS
            gains = tuple(lower_by_age(min(worth, most), form.age) for worth in form.worths)
            yield DigestPiece(6, (turn.number, 1, i), form.texts, gains, form.tight_share)


def _group_runs(turn: TurnFacts) -> dict[str, list[CommandFact]]:
    runs: dict[str, list[CommandFact]] = {}
    for step in turn.steps:
        if isinstance(step, CommandFact):
            runs.setdefault(step.text, []).append(step)
    return runs


def open_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Yield the open turn's calls, each with at least a line with its arguments and outcome."""
    for turn in context.facts.turns[-1:]:
        if turn.number == context.open_turn:
            for i, step in enumerate(turn.steps):
                if isinstance(step, Call):
                    yield _number(_open_call(context, turn.number, i, step), turn.number)


def _open_call(context: DigestContext, turn: int, i: int, step: Call) -> DigestPiece:
    longer = [*_forms(context, turn, step, is_final=False)]
    texts = longer[0].texts[1:] if longer else ()
    gains = longer[0].worths[1:] if longer else ()
    age = context.staleness(step.id)
    first = lower_by_age(Worth.OPEN_CALLS, age)
    rest = (lower_by_age(worth, age) for worth in gains)
    return DigestPiece(6, (turn, 1, i), (_call_line(context, step), *texts), (first, *rest))


def _call_line(context: DigestContext, step: Call) -> str:
    match step:
        case CommandFact():
            return _command(context, step).texts[0]
        case Report(tool=tool, about=about, text=text):
            did, outcome = f"{tool} {_cut_about(context, about)}", cut(one_line(text), REPLY_CHARS)
        case ChangeFact(error=""):
            return _change(context, step).texts[0]
        case ChangeFact(action=action, path=path, error=outcome):
            did = f"{action} {context.short(path)}"
        case Look(kind=kind, path=path, pattern=pattern, span=span, error=outcome):
            sought = f" for `{cut(pattern, REPLY_CHARS)}`" if pattern else ""
            did = f"{'read' if kind == 'read' else 'searched'} {context.short(path)}{sought} {span}"
    is_failed = step.is_error if isinstance(step, Report) else bool(outcome)
    if is_failed:
        outcome = f"failed: {cut(one_line(outcome), REPLY_CHARS)}"
    elif not isinstance(step, Look):
        outcome = outcome or "ok"
    return f"- {one_line(did)}{f' → {outcome}' if outcome else ''} {cite(step.id)}"


class _Form(NamedTuple):
    texts: tuple[str, ...]
    worths: tuple[Worth, ...]
    age: float = 0.0
    tight_share: float = 1.0


def _forms(context: DigestContext, turn: int, step: StepFact, is_final: bool) -> Iterator[_Form]:
    match step:
        case AnswerFact() if is_final:
            yield _answer(context, turn, step)
        case AnswerFact():
            yield from _remark(context, turn, step)
        case CommandFact():
            yield _command(context, step)
        case Report(is_error=False) if step.text.strip():
            yield _report(context, turn, step)
        case ChangeFact(error=""):
            yield _change(context, step)
        case Look(error="") if context.is_current(step.id):
            line, age = _call_line(context, step), context.staleness(step.id)
            yield _Form((line,), (Worth.SEEN_FILES,), age, ROUTINE)
        case PlanFact(id=id, is_approved=is_approved):
            verdict = "approved" if is_approved else "not approved"
            yield _Form((f"- the plan was {verdict} by the user {cite(id)}",), (Worth.VERDICTS,))
        case WordsFact(id=id, text="", via="refusal", about=about):
            line = f"- the user refused `{_cut_about(context, about)}` {cite(id)}"
            yield _Form((line,), (Worth.VERDICTS,))
        case Interruption(id=id):
            yield _Form((f"- the user interrupted {cite(id)}",), (Worth.OLD_TURNS,))


def _answer(context: DigestContext, turn: int, step: AnswerFact) -> _Form:
    limits, body, lead = context.limits, remove_blank_lines(step.text), f"- said {cite(step.id)}: "
    is_last = turn == context.last_turn
    asks = is_last or turn in context.unanswered  # a reply shows the other questions
    known = context.known_causes
    texts = (
        lead + gist(body, limits.brief_answer_chars, with_question=asks, known=known),
        lead + gist(body, limits.short_answer_chars, with_question=asks, known=known),
        lead + cut(body, limits.answer_chars),
        lead + cut(body, limits.long_answer_chars),
    )
    if is_last:
        worths = (Worth.LAST_ANSWER, Worth.LAST_ANSWER, Worth.LONG_LAST_ANSWER, Worth.LONG_ANSWERS)
        return _Form(texts, worths)
    if one_line(texts[2]) == texts[1]:  # the line breaks add nothing
        texts = (*texts[:2], texts[1], texts[1])
    worths = (Worth.BRIEF_ANSWERS, Worth.ANSWERS, Worth.LONG_ANSWERS, Worth.WHOLE_ANSWERS)
    return _Form(texts, worths, context.age(turn))


def _remark(context: DigestContext, turn: int, step: AnswerFact) -> Iterator[_Form]:
    if step.id in context.explained:
        return
    limits, lead, age = context.limits, f"- said {cite(step.id)}: ", context.staleness(step.id)
    found = remark(step.text, limits.remark_chars)
    if turn == context.open_turn and context.is_current(step.id):  # it may announce the next step
        whole = cut(one_line(step.text), limits.report_chars)
        if not found and len(whole) < limits.brief_answer_chars and age:
            return  # the next call shows the announced step
        found = found or cut(whole, limits.remark_chars)
        yield _Form((lead + found, lead + whole), (Worth.ANSWERS, Worth.ANSWERS), age)
    elif found and not any(id == step.id and text in found for _, id, text, _ in context.causes):
        worth = Worth.CONCLUSIONS if is_strong(found) else Worth.REMARKS
        share = 1.0 if is_strong(found) or len(found) > limits.short_remark_chars else ROUTINE
        yield _Form((lead + found,), (worth,), age, share)


def _cut_about(context: DigestContext, about: str) -> str:
    return cut(context.plain(one_line(about)), ABOUT_CHARS)


def _report(context: DigestContext, turn: int, step: Report) -> _Form:
    lead = f"- {step.tool} {cite(step.id)} {_cut_about(context, step.about)}"
    if step.task:  # the task continues in the background and reports again
        return _Form((f"{lead} goes on as {step.task}",), (Worth.REPORTS,), context.age(turn))
    limits, body = context.limits, remove_blank_lines(step.text)
    texts = (
        lead,
        f"{lead} → {gist(body, limits.brief_report_chars, with_question=False)}",
        f"{lead} → {gist(body, limits.report_chars, with_question=False)}",
        f"{lead} → {cut(body, limits.long_report_chars)}",
    )
    worths = (Worth.REPORTS, Worth.BRIEF_REPORTS, Worth.TOLD_REPORTS, Worth.WHOLE_REPORTS)
    if step.about.startswith("http"):  # the page can be read again
        return _Form(texts[:2], worths[:2], context.age(turn), OUTCOMES)
    return _Form(texts, worths, context.age(turn))


def _command(
    context: DigestContext, step: CommandFact, earlier: Sequence[CommandFact] = ()
) -> _Form:
    limits, age, cited = context.limits, context.staleness(step.id), cite(step.id)
    if earlier:
        failed = [run.id for run in earlier if run.has_failed]
        cited += f", run ×{len(earlier)} before" + (f", failed {cite(*failed)}" if failed else "")
    line = cut(step.text, limits.command_chars)
    ended = f"runs in the background as {step.task}" if step.task else ""
    ended = ended or ("failed" if step.has_failed else "ok")
    head = f"- `{_head(step.text, limits.brief_command_chars)}`"
    brief, short = f"{head} {ended} {cited}", f"- `{line}` {ended} {cited}"
    is_recent = context.is_recent(step.id)
    ran = Worth.RECENT_COMMANDS if is_recent else Worth.OLD_COMMANDS
    told = Worth.RECENT_OUTCOMES if is_recent else Worth.OLD_OUTCOMES
    shows_much = only_looks(step.text) and len(step.output) > limits.outcome_chars
    shows_much = shows_much or step.id in context.quoted
    total = find_total(step.output) if shows_much else ""
    if step.has_failed or step.task or (shows_much and not total):
        # Section 4 has the failure, and shown text is rarely needed.
        share = 1.0 if step.task else ROUTINE
        return _Form((brief, short), (ran, Worth.WHOLE_COMMANDS), age, share)
    brief_outcome, outcome = (
        total or telling_lines(step.output, chars) or "ok"
        for chars in (limits.brief_outcome_chars, limits.outcome_chars)
    )
    texts = (
        f"{head} → {brief_outcome} {cited}",
        f"{head} → {outcome} {cited}",
        f"- `{line}` → {outcome} {cited}",
    )
    is_last = context.last_runs.get(kind_of(step.text), step.id) == step.id
    share = ROUTINE if outcome == "ok" else OUTCOMES if is_last else REPEATED
    return _Form(texts, (ran, told, Worth.WHOLE_COMMANDS), age, share)


def _change(context: DigestContext, step: ChangeFact) -> _Form:
    told, chars = describe_change(step), context.limits.old_snippet_chars
    worths = (Worth.REPLACED if "`" in told else Worth.OLD_CODE, Worth.OLD_CODE)
    if context.is_current(step.id):
        chars, worths = context.limits.snippet_chars, (Worth.CURRENT_WORK, Worth.CURRENT_CODE)
    if step.id == context.last_change:
        worths = (Worth.LAST_OUTCOME, Worth.CURRENT_CODE)
    head = f"- {step.action} {last_name(step.path)} {cite(step.id)}"
    brief = head + told
    code = cut("\n".join(new_lines(step)), chars)
    is_told = told.startswith(PUT_IN) and not told.endswith("…`")
    if is_told or one_line(code) in told or "\n" not in code:
        texts: tuple[str, ...] = (brief,)
    else:
        strings = _find_prose(step) if context.is_current(step.id) and "`" not in told else []
        rest = (text for text in strings if text not in code)
        longer = head if told.startswith(PUT_IN) else brief
        texts = (", ".join((brief, *strings)), f"{', '.join((longer, *rest))}\n{code}")
    # Section 3 lists the names.
    is_minor = not context.is_current(step.id) and ("`" not in told or is_routine(step))
    return _Form(texts, worths, context.staleness(step.id), ROUTINE if is_minor else 1.0)


def _find_prose(step: ChangeFact) -> list[str]:
    quoted = find_quoted("\n".join(new_lines(step)))
    return [text for text in quoted if text.count(" ") >= PROSE_SPACES][:MOST_STRINGS]


def _head(text: str, chars: int) -> str:
    line = one_line(text)
    return line if len(line) <= chars else f"{line[:chars]} {CUT}"
