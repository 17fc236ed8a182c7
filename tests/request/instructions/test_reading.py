"""One file read, whatever it is: text, huge, binary, a pipe, a link, nothing."""

import os
from pathlib import Path

import pytest

from holdfast.request.instructions.reading import Unusable, read_text


def test_text_comes_without_mark_and_with_plain_line_ends(tmp_path):
    """Bytes that only editors differ in do not change the prefix."""
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    assert read_text(tmp_path / "a.md", 100) == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x" * 101, "it is larger than 100 bytes"),
        (b"a\0b", "it is not text"),
        (b"\xff\xfe", "it is not UTF-8 text"),
    ],
)
def test_what_is_no_short_text_is_not_used(tmp_path, content, reason):
    """The reason is one a person can act on."""
    (tmp_path / "a.md").write_bytes(content)
    with pytest.raises(Unusable, match=reason):
        read_text(tmp_path / "a.md", 100)


def test_a_pipe_is_not_waited_for(tmp_path):
    """Nobody writes into it, and nobody hangs."""
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(Unusable, match="not a regular file"):
        read_text(tmp_path / "a.md", 100)


def test_devices_are_not_read():
    """An endless file would be read for ever."""
    with pytest.raises(Unusable, match="not a regular file"):
        read_text(Path("/dev/zero"), 100)


def test_a_link_put_there_since_the_look_is_not_followed(tmp_path):
    """The caller followed the links it trusts; a fresh one is somebody else's."""
    (tmp_path / "secret").write_text("key")
    (tmp_path / "a.md").symlink_to(tmp_path / "secret")
    with pytest.raises(Unusable):
        read_text(tmp_path / "a.md", 100)


def test_a_missing_file_is_told(tmp_path):
    """It may have gone since it was seen."""
    with pytest.raises(Unusable, match="no such file"):
        read_text(tmp_path / "a.md", 100)
