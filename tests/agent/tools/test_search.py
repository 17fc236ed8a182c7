"""The way from a search program's output to lines."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.tools import grep as search
from longhold.agent.tools.grep import RECORD_BYTES, Gap, MatchedLine, find_lines, find_names
from longhold.agent.tools.scan import Query

TEXTS = st.lists(st.binary(max_size=12).map(lambda text: text.replace(b"\n", b"")), max_size=10)


async def _cut(pieces):
    stream = asyncio.StreamReader()
    for piece in pieces:
        stream.feed_data(piece)
    stream.feed_eof()
    return [record async for record in search._split(stream, b"\n")]


@given(TEXTS)
def test_records_are_cut_at_line_ends(texts):
    whole = b"".join(text + b"\n" for text in texts)
    assert asyncio.run(_cut([whole] if whole else [])) == texts


async def test_a_record_that_is_too_long_is_cut_once():
    long = b"x" * (3 * RECORD_BYTES)
    records = await _cut([b"a\n" + long, b"tail\n", b"b\n", b"rest"])
    assert records == [b"a", b"x" * RECORD_BYTES, b"b", b"rest"]


async def test_lines_and_gaps_come_one_by_one(tool_context):
    (tool_context.root / "a").write_text("x\n1\n2\n3\nx\n")
    query = Query(path=str(tool_context.root), pattern="x", after=1)
    assert [row async for row in find_lines(query, tool_context)] == [
        MatchedLine("a", 1, "x", True),
        MatchedLine("a", 2, "1", False),
        Gap(),
        MatchedLine("a", 5, "x", True),
    ]


async def test_names_with_odd_characters_survive(tool_context):
    names = ["a b", "a\nb", "ä", "-dash", "x\udcff"]
    for name in names:
        (tool_context.root / name).write_text("x")
    for pattern in ("", "x"):
        query = Query(path=str(tool_context.root), pattern=pattern, only_names=True)
        assert sorted(await find_names(query, tool_context)) == sorted(names)
