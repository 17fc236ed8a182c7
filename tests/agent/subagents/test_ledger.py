"""Files to which several processes append."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from longhold.agent.subagents.ledger import SharedLedger, read_cursor
from longhold.core.settings.private_files import private_directory
from longhold.errors import StoreError


class Word(Struct, frozen=True):
    """What these ledgers hold."""

    text: str


def _put(ledger, *texts):
    with ledger.lock() as append:
        append([Word(text) for text in texts])


def _texts(found):
    return [line.value.text for line in found if line.value is not None]


def test_what_is_appended_is_read_once_by_each_reader(tmp_path):
    one, other = SharedLedger(tmp_path / "l", Word), SharedLedger(tmp_path / "l", Word)
    assert one.news() == []
    _put(one, "a", "b")
    assert _texts(one.news()) == ["a", "b"]
    _put(other, "c")
    assert _texts(one.news()) == ["c"]
    assert _texts(other.news()) == ["a", "b", "c"]
    assert one.id == other.id != ""


def test_the_file_is_private(tmp_path):
    directory = private_directory(tmp_path / "x" / "y")
    _put(SharedLedger(directory / "l", Word), "a")
    assert stat.S_IMODE((directory / "l").stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700


@given(cut=st.integers(0, 400))
def test_a_line_cut_anywhere_was_never_written(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "l"
    _put(SharedLedger(path, Word), "first", "second " * 20, "third")
    whole = path.read_bytes()
    cut = min(cut, len(whole))
    path.write_bytes(whole[:cut])
    kept = whole[:cut].count(b"\n") - 1
    expected = ["first", "second " * 20, "third"][: max(0, kept)]
    assert _texts(SharedLedger(path, Word).news()) == expected
    _put(SharedLedger(path, Word), "next")
    assert _texts(SharedLedger(path, Word).news()) == [*expected, "next"]


def test_a_line_that_is_no_value_is_told_and_passed(tmp_path):
    ledger = SharedLedger(tmp_path / "l", Word)
    _put(ledger, "a")
    with (tmp_path / "l").open("ab") as file:
        file.write(b'{"text": 7}\nnonsense\n\xff\n' + b"[" * 5_000 + b"\n")
    _put(ledger, "b")
    found = ledger.news()
    assert _texts(found) == ["a", "b"]
    assert [bool(line.reason) for line in found] == [
        False,
        True,
        True,
        True,
        True,
        False,
    ]


@given(st.text(max_size=30))
def test_a_cursor_is_read_or_it_is_none(text):
    found = read_cursor(text)
    assert found is None or (found[0] and found[1] >= 0)


def test_a_file_that_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "l").write_text("hello\n")
    with pytest.raises(StoreError, match="has no valid first line"):
        SharedLedger(tmp_path / "l", Word).news()


def test_a_link_in_its_place_is_refused(tmp_path):
    (tmp_path / "target").write_text("precious")
    (tmp_path / "l").symlink_to(tmp_path / "target")
    with pytest.raises(StoreError, match="plain file"):
        _put(SharedLedger(tmp_path / "l", Word), "a")
    assert (tmp_path / "target").read_text() == "precious"


def test_another_file_in_its_place_is_noticed(tmp_path):
    ledger = SharedLedger(tmp_path / "l", Word)
    _put(ledger, "a")
    ledger.news()
    (tmp_path / "l").rename(tmp_path / "old")
    _put(SharedLedger(tmp_path / "l", Word), "b")
    with pytest.raises(StoreError, match="replaced"):
        ledger.news()


def test_a_directory_that_is_gone_is_an_error_and_not_made_anew(tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        _put(SharedLedger(tmp_path / "gone" / "l", Word), "a")
    assert not (tmp_path / "gone").exists()


def test_a_full_ledger_takes_nothing_more(tmp_path):
    ledger = SharedLedger(tmp_path / "l", Word, limit_bytes=200)
    _put(ledger, "a")
    with pytest.raises(StoreError, match="is full"):
        _put(ledger, "b" * 200)
    assert _texts(ledger.news()) == ["a"]


def test_a_disk_that_ends_midway_leaves_whole_lines(tmp_path):
    code = (
        "import resource, sys, pathlib\n"
        "from msgspec import Struct\n"
        "from longhold.agent.subagents.ledger import SharedLedger\n"
        "from longhold.errors import StoreError\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "class Word(Struct): text: str\n"
        "l = SharedLedger(pathlib.Path(sys.argv[1]), Word)\n"
        "def put(t):\n"
        "    with l.lock() as append: append([Word(t)])\n"
        "put('a')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "try: put('b' * 300)\n"
        "except StoreError as e: print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "l")], capture_output=True, text=True
    )
    assert done.stdout == "refused\n", done.stderr
    assert _texts(SharedLedger(tmp_path / "l", Word).news()) == ["a"]
    assert (tmp_path / "l").read_bytes().endswith(b"\n")


def test_who_dies_with_the_lock_lets_go_by_dying(tmp_path):
    code = (
        "import sys, pathlib, time\n"
        "from msgspec import Struct\n"
        "from longhold.agent.subagents.ledger import SharedLedger\n"
        "class Word(Struct): text: str\n"
        "with SharedLedger(pathlib.Path(sys.argv[1]), Word).lock():\n"
        "    print('held', flush=True); time.sleep(60)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "l")], stdout=subprocess.PIPE
    )
    assert child.stdout.readline() == b"held\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    began = time.monotonic()
    _put(SharedLedger(tmp_path / "l", Word), "a")
    assert time.monotonic() - began < 2
