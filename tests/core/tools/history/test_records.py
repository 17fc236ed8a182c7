"""Bodies on disk are read only from the session's own directory."""

import hashlib
import os

import pytest

from longhold.core.log.results import Results
from longhold.core.messages import Image, Text
from longhold.core.tools.history.log_index import NAME, Index
from longhold.core.tools.history.question import parse_question
from longhold.core.tools.history.records import Missing, read_body


@pytest.fixture
def session(tmp_path):
    """A session's directory with one body, and a secret outside of it."""
    (tmp_path / "s" / "tool-results").mkdir(parents=True)
    (tmp_path / "s" / "tool-results" / "a.txt").write_text("körper\n", encoding="utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("secret")
    return tmp_path / "s"


def test_a_body_is_read_by_its_name_wherever_it_was_recorded(session):
    for file in ("a.txt", str(session / "tool-results" / "a.txt"), "/elsewhere/a.txt"):
        assert read_body(Results(session), file) == "körper\n"


@pytest.mark.parametrize("file", ["../../outside/a", "..", "", ".", "/etc/passwd", "x\0y", "b.txt"])
def test_no_name_leads_out_of_the_directory(session, file):
    with pytest.raises(Missing):
        read_body(Results(session), file)


def test_links_are_not_followed(session, tmp_path):
    outside = tmp_path / "outside"
    (session / "tool-results" / "link.txt").symlink_to(outside / "a.txt")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "tool-results").symlink_to(outside)
    (tmp_path / "u").symlink_to(session)
    for directory, name in (
        (session, "link.txt"),
        (tmp_path / "t", "a.txt"),
        (tmp_path / "u", "a.txt"),
    ):
        with pytest.raises(Missing, match=r"Not a directory|symbolic links"):
            read_body(Results(directory), name)


def test_what_is_no_plain_file_is_refused_at_once(session):
    os.mkfifo(session / "tool-results" / "pipe")
    (session / "tool-results" / "sub").mkdir()
    for name in ("pipe", "sub"):
        with pytest.raises(Missing, match="is not a regular file"):
            read_body(Results(session), name)


def test_blocks_come_back_as_blocks(session):
    content = (Text(text="a"), Image(source={"type": "base64", "data": "iVBO"}))
    results = Results(session)
    body = results.body("b", content, cap_bytes=9_999)
    results.keep(body, is_only_copy=True)
    assert read_body(Results(session), str(body.file), body.sha256) == content


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_an_unreadable_body_says_so(session):
    (session / "tool-results" / "a.txt").chmod(0)
    with pytest.raises(Missing, match="ermission"):
        read_body(Results(session), "a.txt")


def test_a_body_that_was_altered_is_not_passed_off_as_the_original(session):
    sha256 = hashlib.sha256("körper\n".encode()).hexdigest()
    assert read_body(Results(session), "a.txt", sha256) == "körper\n"
    for body in (b"other", b"\xff\xfe", b""):
        (session / "tool-results" / "a.txt").write_bytes(body)
        with pytest.raises(Missing, match="does not have the content that was written"):
            read_body(Results(session), "a.txt", sha256)


def test_a_transcript_without_a_directory_has_no_bodies():
    with pytest.raises(Missing, match="does not belong"):
        read_body(None, "/etc/passwd")


def test_an_index_never_writes_through_a_link(session, tmp_path):
    victim = tmp_path / "outside" / "victim"
    victim.write_bytes(b"precious")
    (session / NAME).symlink_to(victim)
    index = Index(session, "s")
    index.add([(1, "alpha", "")], 1)
    found, _ = index.search(parse_question("alpha"))
    assert [len(term.rows) for term in found] == [1]
    index.close()
    assert victim.read_bytes() == b"precious"
    assert not (session / NAME).is_symlink()
    linked = tmp_path / "linked"
    linked.symlink_to(tmp_path / "outside")
    (tmp_path / "outside" / NAME).write_bytes(b"not ours")
    index = Index(linked, "s")
    index.add([(1, "alpha", "")], 1)
    index.renew()
    index.close()
    assert (tmp_path / "outside" / NAME).read_bytes() == b"not ours"
