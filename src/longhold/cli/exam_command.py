"""`longhold exam`: how much of a session a compaction keeps."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import report, rewrite_line, say
from longhold.cli.target import NEWEST, open_target
from longhold.core.messages import Usage
from longhold.core.messages.text import clean_line, dollars, percent, tokens
from longhold.core.models import open_model
from longhold.core.models.prices import usage_cost
from longhold.core.view.tokens import estimate_tokens
from longhold.errors import TranscriptError
from longhold.insight.exam import (
    ANSWER_TOKENS,
    JUDGE,
    READER,
    ExamQuestion,
    ask_model,
    compact_again,
    make_questions,
)

GOLD_CHARS = 70
_GRADE = re.compile(r"(?:1|0?\.5|0)\b")


@click.command(epilog="Example: longhold exam newest --model claude-sonnet-4-6")
@click.argument("name", metavar="[TARGET]", default=NEWEST)
@click.option(
    "--text",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also examine this text, for example your own summary.",
)
@click.option(
    "--model", default="", help="Let this model answer and grade. This costs two calls per text."
)
@options.base_url
@options.as_json
def command(name: str, file: Path | None, model: str, base_url: str, as_json: bool) -> None:
    """Show how much of a session a compaction keeps.

    TARGET is a session's id, `newest`, or a file. The command makes questions about requests,
    files, results, decisions and the state of the work from the log. It checks whether the last
    recorded summary, and Longhold's digest of the same messages, answer them. If nothing was
    compacted, it uses the whole session.
    """
    target = open_target(name)
    facts, size, recorded, digest = compact_again(target.history)
    questions = make_questions(facts)
    if not questions:
        raise TranscriptError(target.name, "has nothing to ask about; name a longer session")
    own = {file.name: file.read_text("utf-8", "replace")} if file else {}
    every = {"recorded": recorded, "digest": digest} | own
    texts = {title: text for title, text in every.items() if text}
    grades = {t: [float(q.is_answered(text)) for q in questions] for t, text in texts.items()}
    usage = Usage()
    if model:
        grades, usage = asyncio.run(_grade(texts, questions, model, base_url))
    fields = {
        "target": target.name,
        "reader": model or "terms in the text",
        "tokens": size,
        "questions": [asdict(question) for question in questions],
        "scores": {title: sum(given) / len(given) for title, given in grades.items()},
        "shares": {title: estimate_tokens(text) / size for title, text in texts.items()},
        "grades": grades,
        "spent": _describe_spent(model, usage),
        "usage": usage,
    }
    report(as_json, fields, _lines(fields, questions, grades))


def _lines(
    fields: dict[str, object], questions: Sequence[ExamQuestion], grades: dict[str, list[float]]
) -> Iterator[str]:
    scores, shares = fields["scores"], fields["shares"]
    assert isinstance(scores, dict) and isinstance(shares, dict)
    yield f"{len(questions)} questions; reader: {fields['reader']}; {fields['spent']}"
    for title, given in grades.items():
        share = percent(shares[title], 1)
        yield f"{clean_line(title, GOLD_CHARS)}: {scores[title]:.2f} with {share} of the tokens; it misses"
        for question, grade in zip(questions, given, strict=True):
            if grade < 1:
                yield f"  {question.kind}: {question.ask}"
                yield f"    {clean_line(question.gold, GOLD_CHARS)}"


async def _grade(
    texts: dict[str, str], questions: Sequence[ExamQuestion], name: str, base_url: str
) -> tuple[dict[str, list[float]], Usage]:
    count, calls = len(questions), 2 * len(texts)
    output = len(texts) * count * ANSWER_TOKENS
    prompt = sum(map(estimate_tokens, texts.values())) + 2 * output
    expected = Usage(input_tokens=prompt, output_tokens=output)
    say(f"{calls} calls, at most about {_describe_spent(name, expected)}", err=True)
    model, grades, usage = open_model(name, base_url=base_url or None, is_typed=True), {}, Usage()
    try:
        for i, (title, text) in enumerate(texts.items()):
            asked = "\n".join(f"## {n}\n{one.ask}" for n, one in enumerate(questions, 1))
            answers, used = await ask_model(model, f"{text}\n\n---\n{READER}\n\n{asked}", count)
            rewrite_line(f"{2 * i + 1} of {calls} calls answered")
            pairs = "\n".join(
                f"## {n}\n{one.ask}\nGold: {one.gold}\nAnswer: {answers.get(n, 'not there')}\n"
                for n, one in enumerate(questions, 1)
            )
            graded, judged = await ask_model(model, f"{pairs}\n---\n{JUDGE}", count)
            rewrite_line(f"{2 * i + 2} of {calls} calls answered")
            found = (_GRADE.match(graded.get(n, "")) for n in range(1, count + 1))
            grades[title] = [float(grade[0]) if grade else 0.0 for grade in found]
            usage = usage + used + judged
        return grades, usage
    finally:
        await model.close()


def _describe_spent(model: str, usage: Usage) -> str:
    cost = usage_cost(model, usage) if model else None
    price = dollars(cost.total) if cost else "no price is published for the model"
    return f"{tokens(usage.total_tokens)} tokens, {price}" if model else "nothing spent"
