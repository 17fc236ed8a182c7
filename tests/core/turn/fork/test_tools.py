"""Tools in a fork: short results, and tools that run elsewhere."""

from longhold.core.log.entries import Framed
from longhold.core.messages import Image, Text, ToolUse
from longhold.core.tools.protocol import LIMIT_CHARS, Outcome
from longhold.core.turn.fork.asking import OUT_OF_REACH, make_placeholders, shorten_result

USE = ToolUse(id="a", name="Read", input={})


async def test_a_result_that_fits_stays_as_it_is():
    outcome = Outcome(content="x" * LIMIT_CHARS)
    assert await shorten_result(USE, outcome, 0.0) is outcome


async def test_a_long_result_is_cut_and_says_so():
    cut = await shorten_result(USE, Outcome(content="x" * (LIMIT_CHARS + 5)), 0.0)
    assert cut.content.startswith("x" * LIMIT_CHARS + "\n[5 more characters were left out")


async def test_pictures_stay_beside_a_text_that_was_cut():
    picture = Image(source={"type": "base64"})
    content = (Text(text="x" * (LIMIT_CHARS + 5)), picture)
    head, kept = (await shorten_result(USE, Outcome(content=content), 0.0)).content
    assert len(head.text) < LIMIT_CHARS + 100
    assert kept is picture


async def test_a_tool_out_of_reach_says_so():
    definition = {"name": "Deploy", "description": "deploys", "input_schema": {"type": "object"}}
    tools = make_placeholders(Framed(tools=(definition,)))
    assert tools["Deploy"].definition() == definition
    assert (await tools["Deploy"].run({}, None)).content == OUT_OF_REACH
