"""Text files keep bytes that a model does not see, such as line ends."""

import codecs

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from longhold.agent.tools.source import NotEncodable, NotText, SourceText, decode

PIECES = st.lists(st.sampled_from(["a", "b", "ä", "\n", "\r\n", "\r", " ", "€"]), max_size=40)


@given(PIECES, st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]))
def test_what_is_read_comes_back_byte_for_byte(pieces, encoding):
    mark = {
        "utf-8": b"",
        "utf-16-le": codecs.BOM_UTF16_LE,
        "utf-16-be": codecs.BOM_UTF16_BE,
    }[encoding]
    content = mark + "".join(pieces).encode(encoding)
    assert decode(content).to_bytes() == content


@given(PIECES, PIECES, PIECES)
def test_a_change_touches_nothing_but_its_place(before, old, after):
    raw = ["".join(part) for part in (before, old, after)]
    plain = [part.replace("\r\n", "\n") for part in raw]
    # A line end that is cut in two is one line end, and no place within it has a name.
    assume("".join(plain) == "".join(raw).replace("\r\n", "\n"))
    source = SourceText("".join(raw))
    start, length = len(plain[0]), len(plain[1])
    changed = source.replace_spans([(start, start + length)], "NEW")
    assert changed.raw == raw[0] + "NEW" + raw[2]


def test_new_lines_end_as_most_lines_do():
    source = SourceText("one\r\ntwo\r\nthree\n")
    assert source.replace_spans([(4, 7)], "2a\n2b").raw == "one\r\n2a\r\n2b\r\nthree\n"


def test_a_rewrite_keeps_line_ends_mark_and_final_newline():
    source = decode(codecs.BOM_UTF8 + b"a\r\nb\r\n")
    assert source.rewrite("x\ny").to_bytes() == codecs.BOM_UTF8 + b"x\r\ny\r\n"


def test_bytes_that_are_no_utf8_survive_as_latin1():
    source = decode(b"caf\xe9\n")
    assert (source.text, source.to_bytes()) == ("café\n", b"caf\xe9\n")
    with pytest.raises(NotEncodable, match="latin-1"):
        source.replace_spans([(0, 4)], "€").to_bytes()


@pytest.mark.parametrize("content", [b"\x7fELF\x00\x01", b"a" * 8_000 + b"\0", b"\xff\xfea"])
def test_what_is_no_text_is_told_apart(content):
    with pytest.raises(NotText):
        decode(content)
