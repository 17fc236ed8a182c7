"""An exam for compactions. The questions come from the log, and a summary must answer them.

Without a model, a question counts as answered if the terms of its answer are close to each other in
the text. This favours the digest, which quotes the log that the questions come from.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longhold.core.log.entries import AnyEntry, Compacted
from longhold.core.messages import Text, Usage, text_of
from longhold.core.messages.text import cut, one_line, sentences, without_code
from longhold.core.models.protocol import Model, Request, collect
from longhold.core.stages.compact.compose import Manner, compose, gather_material
from longhold.core.stages.compact.digest.context import find_failures
from longhold.core.stages.compact.digest.files import group_edits
from longhold.core.stages.compact.segment import Segment
from longhold.core.stages.facts import names, outcome
from longhold.core.stages.facts.facts import AnswerFact, CommandFact, Facts
from longhold.core.stages.facts.gist import is_strong
from longhold.core.stages.facts.user_text import tell_pastes
from longhold.core.view import fold
from longhold.core.view.tokens import O200K, weigh

MOST_OF_A_KIND = 4
GOLD_CHARS, ASKED_CHARS, NEAR_CHARS, TERMS = 300, 60, 500, 3
ANSWER_TOKENS = 120
_WORD = re.compile(r"[A-Za-z_]{6,}")
_PART = re.compile(r"^## *(\d+)\b:?", re.MULTILINE)
READER = """\
Above is all that is left of a working session between a user and a coding agent. Answer each question
from it alone, in one or two sentences with exact names and numbers, or write "not there". Begin each
answer with a line `## NUMBER`."""
JUDGE = """\
Grade each answer by its gold. 1: it says what is needed to be useful, in any words, and nothing that
contradicts the gold. 0.5: it says the more important half. 0: it misses the point, is wrong, or says
that it is not there. Be strict. For each number write one line `## NUMBER: GRADE`."""


@dataclass(frozen=True, slots=True)
class ExamQuestion:
    kind: str
    ask: str
    gold: str

    @property
    def terms(self) -> list[str]:
        """Return names and long words of the expected answer that the question does not contain."""
        words = sorted(_WORD.findall(self.gold), key=lambda word: (-len(word), word))
        found = dict.fromkeys((*names.find_names(self.gold), *words))
        return [term for term in found if term not in self.ask][:TERMS]

    def is_answered(self, text: str) -> bool:
        first, *others = (re.compile(re.escape(term), re.IGNORECASE) for term in self.terms)
        spans = ((m.start() - NEAR_CHARS, m.end() + NEAR_CHARS) for m in first.finditer(text))
        near = (text[max(0, start) : end] for start, end in spans)
        return any(all(other.search(part) for other in others) for part in near)


def compact_again(history: Sequence[AnyEntry]) -> tuple[Facts, int, str, str]:
    """Return facts, tokens, the recorded summary and a digest of the part that the last compaction
    covered, or of the whole history.
    """
    made = [i for i, entry in enumerate(history) if isinstance(entry, Compacted)]
    past = history[: made[-1]] if made else history
    items, recorded = tuple(fold(past).items), ""
    if made and isinstance(entry := history[made[-1]], Compacted):
        start, end = entry.kept or (entry.n, entry.n)
        covered = (item for item in items if entry.first <= item.order <= entry.last)
        items = tuple(item for item in covered if not start <= item.order <= end)
        recorded = text_of(entry.summary)
    tokens = round(sum(weigh(item.measure, O200K) for item in items))
    material = gather_material(past, Segment(items=items), tokens)
    digest = compose(material, None, Manner(is_auto=False)).text
    return material.parts.facts, tokens, recorded, digest


def make_questions(facts: Facts) -> list[ExamQuestion]:
    """Make questions about the latest facts of each kind. Expected answers quote the log."""
    found, asked = list[ExamQuestion](), Counter[str]()
    for kind, ask, gold in (*_ask_words(facts), *_ask_work(facts)):
        question = ExamQuestion(kind, ask, cut(one_line(gold), GOLD_CHARS))
        if question.terms and asked[kind] < MOST_OF_A_KIND:
            asked[kind] += 1
            found.append(question)
    return found


def _ask_words(facts: Facts) -> Iterator[tuple[str, str, str]]:
    for _, words in reversed([*facts.words()]):
        text = one_line(tell_pastes(words.text))
        begins = text[: min(ASKED_CHARS, len(text) // 3)]
        yield "directive", f'What did the user want in "{begins} …"?', text
    for _, answer in reversed([*facts.find(AnswerFact)]):
        said = next(filter(is_strong, sentences(without_code(answer.text))), "")
        known = (name for name, kind in names.find_names(said).items() if kind != "number")
        yield "decision", f"What was found or decided about {next(known, 'it')}?", said


def _ask_work(facts: Facts) -> Iterator[tuple[str, str, str]]:
    runs = {step.text: step for _, step in facts.find(CommandFact) if step.id >= facts.since}
    for step in sorted(runs.values(), key=lambda step: -step.id):
        for commit in outcome.commits_in(step.output):
            yield "artifact", f'Which commit has the subject "{commit.subject}"?', commit.hash
        total = "" if outcome.only_looks(step.text) else outcome.find_total(step.output)
        if not step.has_failed and "number" in names.find_names(total).values():
            yield "fact", f"What did the last run of `{_name(step.text)}` report?", total
    for i, edits in enumerate(sorted(group_edits(facts), key=lambda edits: -edits.last.id)):
        file = names.last_name(edits.path)
        if not i:
            change = f"{file}{names.describe_change(edits.last)}"
            yield "state", "What was changed last, and in which file?", change
        touched = names.list_touched([change for _, change in edits.changes][::-1])[:TERMS]
        yield "artifact", f"Which definitions were touched in {file}?", ", ".join(touched)
    for failure in find_failures(facts)[::-1]:
        if failure.turn == facts.turns[-1].number and not (failure.mended or failure.is_refusal):
            error = outcome.error_head(failure.error, GOLD_CHARS)
            yield "state", f"How does `{_name(failure.what)}` fail?", error


def _name(command: str) -> str:
    return cut(outcome.without_pipes(one_line(command)), ASKED_CHARS)


async def ask_model(model: Model, text: str, count: int) -> tuple[dict[int, str], Usage]:
    """Ask for `count` parts, each after a line `## NUMBER`."""
    most = min(ANSWER_TOKENS * count, model.capabilities.max_output_tokens)
    messages = [{"role": "user", "content": text}]
    request = Request(kwargs={"model": model.name, "max_tokens": most, "messages": messages})
    reply = await collect(model.stream(request))
    said = "\n".join(block.text for block in reply.content if isinstance(block, Text))
    parts = _PART.split(said)[1:]
    numbered = {int(n): part.strip() for n, part in zip(parts[::2], parts[1::2], strict=True)}
    return numbered, reply.usage or Usage()
