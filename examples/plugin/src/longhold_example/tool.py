"""A tool of the agent: the schema comes from the type of its input."""

from typing import Annotated

from msgspec import Meta, Struct

from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome, make_tool


class CountInput(Struct, forbid_unknown_fields=True):
    text: Annotated[str, Meta(description="The text whose words are counted.")]


async def count_words(given: CountInput, context: ToolContext) -> Outcome:
    return Outcome(content=f"{len(given.text.split()):,} words")


WORD_COUNT = make_tool(
    "WordCount",
    CountInput,
    count_words,
    kind="other",
    is_read_only=True,
    description="Counts the words of a text.",
)
