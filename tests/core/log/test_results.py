"""Bodies of results on disk: exact, private, in one directory, and written whole or not at all."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.entries import Ran, Spilled
from longhold.core.log.results import Results, file_name
from longhold.core.messages import Image, Opaque, Text
from longhold.core.settings import LogSettings, Settings
from longhold.errors import StoreError

MIB = 1 << 20
SMALL = Settings(log=LogSettings(body_limit_bytes=1_024))
PICTURE = Image(source={"type": "base64", "media_type": "image/png", "data": "AA=="})


@pytest.fixture
def results(tmp_path):
    """A session's results, none there yet."""
    return Results(tmp_path / "s")


def keep(results, content, id="toolu_1", cap_bytes=64 * MIB):
    body = results.body(id, content, cap_bytes=cap_bytes)
    results.keep(body, is_only_copy=False)
    return body


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.rglob("*"))


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_every_text_comes_back_exactly(tmp_path_factory, text):
    results = Results(tmp_path_factory.mktemp("any") / "s")
    body = keep(results, text)
    assert body.file.read_bytes() == text.encode()
    assert results.read(body.file.name) == text


def test_blocks_come_back_exactly(results):
    content = (
        Text(text="a\nb", extra={"citations": [1]}),
        PICTURE,
        Opaque(raw={"type": "text", "text": "looks like text"}),
    )
    body = keep(results, content)
    assert body.file.name == "toolu_1.json"
    assert results.read(body.file.name) == content


def test_half_a_character_is_replaced_as_the_log_replaces_it(results):
    assert keep(results, "a\ud800b").file.read_text() == "a\ufffdb"


def test_files_and_directories_are_private(results):
    body = keep(results, "x")
    assert body.file.stat().st_mode & 0o777 == 0o600
    assert {path.stat().st_mode & 0o777 for path in (results.place, results.directory)} == {0o700}


@pytest.mark.parametrize(
    "id", ["../../etc/passwd", "/abs", "..", ".", "", "a/b", "a\0b", "ü", "x" * 999, "con:1"]
)
def test_an_id_is_no_path(tmp_path, results, id):
    body = keep(results, "x", id=id)
    assert body.file.parent == results.place
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [body.file]


def test_ids_that_had_to_be_changed_stay_apart(results):
    assert len({file_name(id) for id in ("../x", ".._x", "___x", "a b", "a_b")}) == 5


def test_the_same_body_twice_is_one_file(results):
    assert keep(results, "x" * 99) == keep(results, "x" * 99)
    assert names(results.place) == ["toolu_1.txt"]


def test_what_a_crash_cut_short_is_written_whole(results):
    keep(results, "first half")
    assert keep(results, "first half, second half").file.read_text() == "first half, second half"


def test_another_content_is_never_overwritten(results):
    first = keep(results, "mine")
    with pytest.raises(StoreError, match="already exists with other content"):
        keep(results, "yours")
    assert first.file.read_text() == "mine"


def test_a_linked_results_directory_is_refused(tmp_path, results):
    (tmp_path / "elsewhere").mkdir()
    results.directory.mkdir()
    results.place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="Not a directory"):
        keep(results, "x")
    assert names(tmp_path / "elsewhere") == []
    assert results.list_stored() == []


def test_a_linked_session_directory_is_refused(tmp_path, results):
    (tmp_path / "elsewhere").mkdir()
    results.directory.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="Not a directory"):
        keep(results, "x")
    assert names(tmp_path / "elsewhere") == []


def test_a_linked_file_is_not_followed(tmp_path, results):
    outside = tmp_path / "outside.txt"
    outside.write_text("x")
    keep(results, "other", id="other")
    (results.place / "toolu_1.txt").symlink_to(outside)
    with pytest.raises(StoreError, match="symbolic links"):
        keep(results, "xy")
    with pytest.raises(StoreError, match="symbolic links"):
        results.read("toolu_1.txt")
    assert outside.read_text() == "x"


def test_a_pipe_in_the_place_of_a_file_does_not_block(results):
    keep(results, "other", id="other")
    os.mkfifo(results.place / "toolu_1.txt")
    with pytest.raises(StoreError, match="this is not a regular file"):
        keep(results, "x")


@pytest.mark.parametrize("part", ["directory", "place"])
def test_a_file_in_the_place_of_a_directory_is_named(results, part):
    culprit = getattr(results, part)
    culprit.parent.mkdir(parents=True, exist_ok=True)
    culprit.write_text("in the way")
    with pytest.raises(StoreError, match=rf"^{culprit}.*: (File exists|Not a directory)"):
        keep(results, "x")


@pytest.mark.parametrize("name", ["../../secret.txt", "/etc/hostname", "..", "", "a/b"])
def test_only_names_are_read(tmp_path, results, name):
    (tmp_path / "secret.txt").write_text("x")
    keep(results, "x")
    with pytest.raises(StoreError, match="this is not a file name"):
        results.read(name)


@pytest.mark.parametrize(("name", "body"), [("a.json", b"[{"), ("a.txt", b"\xff\xfe")])
def test_a_damaged_file_is_said_to_be_damaged(results, name, body):
    keep(results, "other", id="other")
    (results.place / name).write_bytes(body)
    with pytest.raises(StoreError, match="does not have the content that was written"):
        results.read(name)


def test_a_vanished_file_is_said_to_be_gone(results):
    body = keep(results, "x")
    body.file.unlink()
    with pytest.raises(StoreError, match=r"toolu_1\.txt: No such file"):
        results.read(body.file.name)


LIMITED = """
import resource, sys
from pathlib import Path
from longhold.core.settings import LogSettings, Settings
from longhold.errors import StoreError
from longhold.core.log.results import Results
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
results = Results(Path(sys.argv[1]))
try:
    results.keep(results.body("t", "x" * 9000, cap_bytes=1 << 20), is_only_copy=True)
except StoreError as error:
    print(error)
"""


def test_a_disk_that_is_full_midway_leaves_nothing_behind(tmp_path, results):
    run = [sys.executable, "-c", LIMITED, str(results.directory)]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert os.strerror(errno.EFBIG) in said
    assert names(results.place) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_body_over_the_cap_is_cut_in_whole_characters_and_says_so(results):
    body = keep(results, "ü" * 1_000, cap_bytes=1_001)
    assert (body.is_whole, body.bytes) == (False, 2_000)
    assert body.file.read_text() == "ü" * 500


def test_blocks_over_the_cap_lie_there_as_text(results):
    body = keep(results, (Text(text="z" * 2_000), PICTURE), cap_bytes=1_000)
    assert (body.file.name, body.is_whole) == ("toolu_1.txt", False)


@pytest.mark.parametrize(("text", "is_too_large"), [("x" * 1_024, False), ("ü" * 513, True)])
def test_what_is_too_large_for_the_log_is_counted_in_bytes(results, text, is_too_large):
    body, _ = results.shorten(Ran(tool_use_id="toolu_1", content=text), SMALL)
    assert (body is not None) is is_too_large


def test_the_head_of_a_body_says_where_the_whole_is(results):
    ran = Ran(tool_use_id="toolu_1", content=(Text(text="z" * 5_000), PICTURE))
    body, head = results.shorten(ran, SMALL)
    assert body == results.body("toolu_1", ran.content, cap_bytes=MIB)
    assert head.content == (
        Text(text="z" * 1_024 + f"\n[{body.bytes:,} bytes in all; the whole is in {body.file}]"),
        PICTURE,
    )
    assert (head.file, head.sha256) == (str(body.file), body.sha256)


def test_only_sessions_beside_this_one_may_be_read(tmp_path):
    own = Results(tmp_path / "s")
    files = ["parent/tool-results/a.txt", "parent/notes/a.txt", "x/y/tool-results/a.txt"]
    history = [Spilled(tool_use_id="a", text="", file=str(tmp_path / file)) for file in files]
    history.append(Ran(tool_use_id="b", file="/etc/tool-results/passwd"))
    assert own.readable(history) == (own.place, tmp_path / "parent" / "tool-results")
