"""What a measure counts, and that measures add up."""

import string
import zlib
from base64 import b64encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import (
    Document,
    Image,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from longhold.core.messages.measure import (
    CHUNK_BYTES,
    IMAGE_TOKENS,
    NOTHING,
    PAGE_TOKENS,
    SIGNATURE_FRAME_CHARS,
    Measure,
    count_pages,
    measure_block,
    measure_call,
    measure_content,
    measure_result,
    measure_text,
    measure_thinking,
)

counts = st.integers(min_value=-(10**9), max_value=10**9)
measures = st.builds(Measure, **dict.fromkeys(Measure.__struct_fields__, counts))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", NOTHING),
        ("two words", Measure(spaced=1, joined=1, letters=8)),
        ("a/path", Measure(joined=2, letters=5, marks=1)),
        ("camelCase", Measure(joined=1, letters=9, humps=1)),
        ("HTTP", Measure(joined=1, letters=4)),
        ("12 345", Measure(digits=5, numbers=2, gaps=1)),
        ("    x", Measure(spaced=1, letters=1)),
        ("\n\n\r\n\t-- ", Measure(lines=1, gaps=2, marks=1)),
        ("漢字かな", Measure(wide=4)),
        ("ж é", Measure(foreign=2, gaps=1)),
        ("→→😀—", Measure(symbols=4)),
        ("a→b", Measure(joined=2, letters=2, symbols=1)),
    ],
)
def test_text_is_counted_by_what_tokenizers_cut_at(text, expected):
    assert measure_text(text) == expected


def _count_slowly(text: str) -> Measure:
    """Count character by character; the oracle of the fast way."""
    total, left = dict.fromkeys(Measure.__struct_fields__, 0), ""
    for char in text:
        kind, before = _kind(char), _kind(left) if left else ""
        if kind == "letter":
            total["letters"] += 1
            total["spaced" if before == "space" else "joined"] += before != "letter"
            total["humps"] += left in string.ascii_lowercase and char.isupper() and left != ""
        elif kind == "digit":
            total["digits"] += 1
            total["numbers"] += before != "digit"
        elif kind in ("wide", "foreign", "symbols"):
            total[kind] += 1
        elif kind != before:
            total[{"space": "gaps", "line": "lines", "mark": "marks"}[kind]] += 1
        total["gaps"] -= kind == "letter" and before == "space"
        left = char
    return Measure(**total)


def _kind(char: str) -> str:
    if char.isascii():
        named = {" ": "space", "\t": "space", "\n": "line", "\r": "line"}.get(char, "mark")
        return "letter" if char.isalpha() else "digit" if char.isdigit() else named
    point = ord(char)
    if 0x3000 <= point <= 0xDFFF:
        return "wide"
    return "foreign" if 0xC0 <= point <= 0x1FFF else "symbols"


@given(st.text(st.sampled_from("ab YZ019.,-\n\t\r漢かé日ж→😀·\ud800") | st.characters()))
def test_fast_counting_agrees_with_counting_by_character(text):
    assert measure_text(text) == _count_slowly(text)


@given(measures, measures)
def test_measures_add_up_and_come_apart(one, other):
    assert one + other - other == one
    assert one + other == other + one
    assert one + NOTHING == one


@given(measures)
def test_a_measure_is_a_small_array_on_disk(measure):
    line = msgspec.json.encode(measure)
    assert line.startswith(b"[")
    assert msgspec.json.decode(line, type=Measure) == measure


def test_an_older_line_with_fewer_classes_still_loads():
    assert msgspec.json.decode(b"[3, 1, 20]", type=Measure) == Measure(3, 1, 20)


def test_the_order_of_classes_is_pinned():
    assert Measure.__struct_fields__[:17] == (
        *("spaced", "joined", "letters", "humps", "digits", "numbers", "marks", "gaps", "lines"),
        *("wide", "foreign", "symbols", "unseen", "blocks", "calls", "results", "media_tokens"),
    )


def test_long_texts_are_counted_in_pieces_that_lose_nothing():
    text = "word 12, " * (CHUNK_BYTES // 3)
    whole, once = measure_text(text), measure_text("word 12, ")
    times = CHUNK_BYTES // 3
    assert whole.letters == once.letters * times
    assert whole.digits == once.digits * times
    assert abs(whole.marks - once.marks * times) <= 4


def test_a_signature_tells_how_much_thinking_is_not_shown():
    kept = measure_thinking("short", SIGNATURE_FRAME_CHARS + 4_000)
    assert kept == measure_text("short") + Measure(unseen=3_000 - 5, blocks=1)


def test_a_thought_without_signature_is_only_its_text():
    assert measure_thinking("short") == measure_text("short") + Measure(blocks=1)


def test_every_kind_of_block_is_counted():
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 100_000}
    opaque = Opaque(raw={"type": "new", "body": "some words"})
    assert measure_block(Text(text="hi")) == measure_text("hi") + Measure(blocks=1)
    assert measure_block(RedactedThinking(data="x" * 640)) == Measure(unseen=300, blocks=1)
    assert measure_block(Image(source=source)) == Measure(media_tokens=IMAGE_TOKENS)
    assert measure_block(Document(source=source)) == Measure(media_tokens=PAGE_TOKENS)
    assert measure_block(Document(source={"type": "text", "data": "hi"})).letters == 2
    assert measure_block(opaque).spaced == 1


def test_a_call_and_its_result_each_have_a_frame():
    use = ToolUse(id="toolu_1", name="read", input={"path": "a.py"})
    assert measure_block(use) == measure_call("read", '{"path":"a.py"}')
    assert measure_block(use).calls == 1
    assert measure_block(ToolResult(tool_use_id="t", content="done")) == measure_result("done")
    parts = ToolResult(tool_use_id="t", content=(Text(text="done"),))
    assert measure_block(parts).results == 1


def test_content_is_the_sum_of_its_blocks():
    blocks = (Thinking(thinking="hm", signature=""), Text(text="yes"))
    assert measure_content(blocks) == measure_block(blocks[0]) + measure_block(blocks[1])
    assert measure_content("done") == measure_result("done")


PAGES = b"".join(b"%d 0 obj <</Type /Page /Parent 1 0 R>> endobj\n" % n for n in range(2, 32))
TREE = b"1 0 obj <</Type /Pages /Count 30>> endobj\n"


@pytest.mark.parametrize(
    ("body", "pages"),
    [
        (TREE + PAGES, 30),
        (b"9 0 obj <</Type/ObjStm/N 31>>\nstream\r\n" + zlib.compress(TREE + PAGES), 30),
        (b"9 0 obj <</Type/ObjStm>>\nstream\nnot compressed", 1),
        (b"", 1),
    ],
)
def test_a_pdf_weighs_as_much_as_its_pages(body, pages):
    data = b64encode(b"%PDF-1.7\n" + body).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    assert measure_block(Document(source=source)).media_tokens == pages * PAGE_TOKENS


@pytest.mark.parametrize("data", ["not base64!", 7, None, "ä"])
def test_a_broken_pdf_counts_as_one_page(data):
    assert count_pages({"type": "base64", "data": data}) == 1
