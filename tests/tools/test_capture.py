"""Output is kept within bounds, and nothing is lost below the file's limit."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.capture import Capture, CaptureLimits

LIMITS = CaptureLimits(head_bytes=10, tail_bytes=10, file_bytes=50)


def test_short_output_stays_in_memory_alone(tmp_path):
    """No file is made."""
    capture = Capture(tmp_path / "x" / "out", limits=LIMITS)
    capture.feed(b"hello ")
    capture.feed(b"world")
    capture.close()
    assert capture.text() == "hello world"
    assert not (tmp_path / "x").exists()


def test_of_long_output_head_and_tail_are_kept_and_the_file_named(tmp_path):
    """The middle is counted and lies in the file."""
    capture = Capture(tmp_path / "out", limits=LIMITS)
    for n in range(4):
        capture.feed(f"{n}23456789|".encode())
    capture.close()
    assert capture.text() == (
        f"023456789|\n[20 bytes left out here; everything is in {tmp_path / 'out'}]\n323456789|"
    )
    assert (tmp_path / "out").read_bytes() == b"023456789|123456789|223456789|323456789|"


def test_the_file_has_a_limit_and_the_text_says_so(tmp_path):
    """A flood costs neither memory nor disk."""
    capture = Capture(tmp_path / "out", limits=LIMITS)
    capture.feed(b"x" * 1_000)
    capture.close()
    assert "the first 50 bytes are in" in capture.text()
    assert (tmp_path / "out").stat().st_size == 50
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_however_it_arrives_head_tail_and_file_agree(tmp_path_factory, pieces):
    """The pieces in which output comes make no difference."""
    file = tmp_path_factory.mktemp("out") / "out"
    capture = Capture(file, limits=LIMITS)
    for piece in pieces:
        capture.feed(piece)
    capture.close()
    whole = b"".join(pieces)
    assert capture.total_bytes == len(whole)
    if len(whole) <= 20:
        assert capture.text() == whole.decode("utf-8", "replace")
        assert not file.exists()
    else:
        assert capture.text().startswith(whole[:10].decode("utf-8", "replace"))
        assert capture.text().endswith(whole[-10:].decode("utf-8", "replace"))
        assert file.read_bytes() == whole[:50]


def test_the_last_line_is_what_a_progress_bar_shows_now(tmp_path):
    """Not what it has overwritten."""
    capture = Capture(tmp_path / "out")
    capture.feed(b"building\n 10 %\r 20 %\n")
    assert capture.last_line() == " 20 %"
