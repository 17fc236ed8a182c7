"""Pastes lose their middle; the user's own words do not."""

import pytest

from longhold.core.stages.facts.user_text import without_pastes

LOG = "\n".join(f"2026-01-05 10:00:{n:02} INFO request {n} served" for n in range(40))
CODE = "```python\n" + "\n".join(f"x{n} = compute(n)" for n in range(40)) + "\n```"
TRACE = "Traceback (most recent call last):\n" + "\n".join(
    f'  File "app{n}.py", line {n}, in run' for n in range(30)
)
DATA = '{"rows":[' + ",".join(f'{{"id":{n}}}' for n in range(400)) + "]}"
VERBS = ("check", "move", "rename", "log", "test", "paint", "guard", "split")
NOUNS = ("column", "button", "row", "index", "header", "cache", "worker", "page", "flag", "queue")


@pytest.mark.parametrize("paste", [LOG, CODE, TRACE, DATA], ids=["log", "code", "trace", "data"])
def test_a_paste_loses_its_middle_and_says_where_it_is(paste):
    text = f"Why does this fail?\n{paste}\nPlease fix it and add a test."
    short = without_pastes(text, "[#7]")
    assert short.startswith("Why does this fail?\n")
    assert short.endswith("\nPlease fix it and add a test.")
    assert "left out, all in [#7] …]" in short
    assert len(short) < len(text) / 2


@pytest.mark.parametrize(
    "prose",
    [
        "\n".join(f"- R{n}: the importer must check column {n} first." for n in range(60)),
        "\n".join(f"{n}. Add a button for case {n}, and say why." for n in range(60)),
        "\n\n".join(f"Paragraph {n} says what is wanted here, at some length." for n in range(60)),
        "Please do this:\n```\nmake test\n```\nand tell me.",
        " ".join(
            f"{verb.capitalize()} the {noun} of part {n}, and say what {noun} it {verb}s."
            for n, (verb, noun) in enumerate(zip(VERBS * 9, NOUNS * 7, strict=False))
        ),
    ],
    ids=["bullets", "numbers", "paragraphs", "a short example", "one line"],
)
def test_what_the_user_wrote_stays_as_it_is(prose):
    assert without_pastes(prose, "[#7]") == prose
