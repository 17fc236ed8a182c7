"""The log under faults: torn lines, two writers, kills, full disks, files that are not logs."""

import errno
import gzip
import itertools
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from filelock import lock_descriptor

from casting import until
from longhold.core.log import VERSION, Header, Log, branch_log, load, load_header, write_log
from longhold.core.log.entries import AnyEntry, Failed, Said, Titled
from longhold.core.messages import Text, text_of
from longhold.core.view import fold
from longhold.errors import LogLocked, NewerFormat, SessionExists, StoreError, TranscriptError

HEADER = Header(session="s", created=1.5, directory="/somewhere")
IS_ROOT = os.geteuid() == 0


def said(text):
    return Said(content=(Text(text=text),))


def written(path, *texts):
    """A log with these things said, closed again."""
    with Log.create(path, HEADER) as log:
        for text in texts:
            log.append(said(text))
    return path


def texts_in(path):
    return [entry.content[0].text for entry in load(path).entries if isinstance(entry, Said)]


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def child(code, *arguments):
    """Run Python in a real second process."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_what_is_appended_is_there(tmp_path):
    path = tmp_path / "s.jsonl"
    before = time.time()
    with Log.create(path, HEADER) as log:
        first = log.append(said("one"))
        second = log.append(Titled(title="two", at=7.0))
        log.sync()
    assert (first.n, second.n, second.at) == (1, 2, 7.0)
    assert before <= first.at <= time.time()
    loaded = load(path)
    assert (loaded.header, loaded.entries, loaded.damage) == (HEADER, [first, second], [])


def test_a_log_goes_on_where_it_ended(tmp_path):
    path = written(tmp_path / "s.jsonl", "one", "two")
    with Log.open(path) as log:
        assert log.append(said("three")).n == 3
    assert texts_in(path) == ["one", "two", "three"]


def test_the_first_line_names_the_version(tmp_path):
    path = written(tmp_path / "s.jsonl")
    assert msgspec.json.decode(path.read_bytes().split(b"\n")[0])["longhold"] == VERSION
    assert load_header(path) == HEADER


def test_logs_are_private(tmp_path):
    path = written(tmp_path / "deep" / "s.jsonl", "one")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.with_suffix(".lock").stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_an_existing_log_is_never_overwritten(tmp_path):
    path = written(tmp_path / "s.jsonl", "one")
    with pytest.raises(SessionExists, match="never overwritten; choose another id"):
        Log.create(path, HEADER)
    assert texts_in(path) == ["one"]
    Log.open(path).close()


def test_a_torn_last_line_is_reported_and_closed(tmp_path):
    path = written(tmp_path / "s.jsonl", "one", "two")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    [damage] = load(path).damage
    assert (damage.line, damage.torn) == (3, True)
    with Log.open(path) as log:
        assert [found.torn for found in log.damage] == [True]
        assert log.append(said("instead")).n == 2
    assert texts_in(path) == ["one", "instead"]
    assert path.read_bytes().startswith(whole[:-20] + b"\n")
    assert [(found.line, found.torn) for found in load(path).damage] == [(3, False)]


def test_a_last_line_that_lacks_only_its_end_is_whole(tmp_path):
    path = written(tmp_path / "s.jsonl", "one", "two")
    path.write_bytes(path.read_bytes()[:-1])
    assert load(path).damage == []
    with Log.open(path) as log:
        log.append(said("three"))
    assert texts_in(path) == ["one", "two", "three"]


def test_a_header_that_lacks_only_its_end_is_whole(tmp_path):
    path = written(tmp_path / "s.jsonl")
    path.write_bytes(path.read_bytes()[:-1])
    with Log.open(path) as log:
        log.append(said("one"))
    assert texts_in(path) == ["one"]


@pytest.mark.parametrize(
    "line",
    [b"not json", b"\xff\xfe\x00", b"[1, 2]", b'{"entry":"tomorrow","n":2}', b'{"n":2}', b"{"],
)
def test_a_damaged_line_in_the_middle_costs_only_itself(tmp_path, line):
    path = written(tmp_path / "s.jsonl", "one")
    with path.open("ab") as file:
        file.write(line + b"\n")
    with Log.open(path) as log:
        log.append(said("three"))
    assert texts_in(path) == ["one", "three"]
    assert [(damage.line, damage.torn) for damage in load(path).damage] == [(3, False)]


def test_line_numbers_hold_over_many_pieces(tmp_path, monkeypatch):
    path = written(tmp_path / "s.jsonl", *(str(i) for i in range(40)))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[20] = b"broken\n"
    path.write_bytes(b"".join(lines)[:-5])
    whole = load(path)
    monkeypatch.setattr("longhold.core.log.reading._CHUNK_BYTES", 97)
    pieces = load(path)
    assert (pieces.entries, pieces.damage) == (whole.entries, whole.damage)
    assert [(damage.line, damage.torn) for damage in pieces.damage] == [(21, False), (41, True)]


def test_a_newer_format_is_refused_with_a_sentence(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"longhold":99,"session":"s","what":"ever"}\n')
    for open_it in (load, load_header, Log.open):
        with pytest.raises(
            NewerFormat, match=r"written in format 99 by a newer version .* upgrade to open it"
        ):
            open_it(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty; a log begins with a header line"),
        (
            b"hello there\n",
            "is not a Longhold log; use `longhold sessions import` for other formats",
        ),
        (b'{"type":"user","message":{}}\n', "is not a Longhold log"),
        (b'{"longhold":"one"}\n', "is not a Longhold log"),
        (b'{"longhold":1}\n', "is not a Longhold log"),
        (b'["longhold"]\n', "is not a Longhold log"),
        (bytes(range(256)) * 300, "is not a Longhold log"),
        (b"x" * 200_000, "is not a Longhold log"),
        (gzip.compress(b'{"longhold":1,"session":"s"}\n'), "is not a Longhold log"),
    ],
    ids=itertools.count(),
)
def test_a_file_that_is_no_log_gets_one_clear_line(tmp_path, content, says):
    path = tmp_path / "s.jsonl"
    path.write_bytes(content)
    for open_it in (load, load_header, Log.open):
        with pytest.raises(TranscriptError) as caught:
            open_it(path)
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_a_directory_is_no_log(tmp_path):
    path = tmp_path / "s.jsonl"
    path.mkdir()
    for open_it in (load, load_header, Log.open):
        with pytest.raises(TranscriptError, match="is a directory; name a log inside it"):
            open_it(path)
    assert names(tmp_path) == ["s.jsonl"]


def test_a_log_that_is_not_there(tmp_path):
    for open_it in (load, load_header, Log.open):
        with pytest.raises(TranscriptError, match=r"no\.jsonl does not exist; check the path"):
            open_it(tmp_path / "no.jsonl")
    assert names(tmp_path) == []


@pytest.mark.skipif(IS_ROOT, reason="root may read everything")
def test_a_log_one_may_not_read(tmp_path):
    path = written(tmp_path / "s.jsonl", "one")
    path.chmod(0)
    for open_it in (load, load_header, Log.open):
        with pytest.raises(TranscriptError, match="cannot be read; check its permissions"):
            open_it(path)


@pytest.mark.skipif(IS_ROOT, reason="root may write everywhere")
def test_a_directory_one_may_not_write_to(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="check the permissions"):
        Log.create(tmp_path / "s.jsonl", HEADER)


def test_a_place_that_is_a_file_is_no_directory(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        Log.create(tmp_path / "file" / "s.jsonl", HEADER)


HOLD = """
import sys
from pathlib import Path
from typing import get_args
from longhold.core.log import Log
log = Log.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
"""


def test_a_second_writer_is_told_who_the_first_is(tmp_path):
    path = written(tmp_path / "s.jsonl", "one")
    with child(HOLD, path) as holder:
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(LogLocked) as caught:
            Log.open(path)
        assert f"process {holder.pid} on " in caught.value.holder
        assert "close that session or branch this one" in str(caught.value)
        assert texts_in(path) == ["one"]
        holder.communicate("\n")
    with Log.open(path) as log:
        assert log.append(said("two")).n == 2


def test_one_process_cannot_open_a_log_twice(tmp_path):
    path = written(tmp_path / "s.jsonl")
    with Log.open(path), pytest.raises(LogLocked, match=f"process {os.getpid()}"):
        Log.open(path)
    Log.open(path).close()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are not listed here")
def test_an_open_log_takes_one_descriptor(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with Log.create(tmp_path / "s.jsonl", HEADER):
        assert len(list(Path("/proc/self/fd").iterdir())) == before + 1
    with Log.open(tmp_path / "s.jsonl"):
        assert len(list(Path("/proc/self/fd").iterdir())) == before + 1
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_writer_that_holds_the_file_beside_the_log_is_noticed(tmp_path):
    path = written(tmp_path / "s.jsonl", "one")
    held = os.open(path.with_suffix(".lock"), os.O_RDWR)
    assert lock_descriptor(held, blocking=False)
    os.pwrite(held, b"process 1 on elsewhere", 0)
    with pytest.raises(LogLocked, match="process 1 on elsewhere"):
        Log.open(path)
    os.close(held)
    Log.open(path).close()


def test_closing_twice_is_closing_once(tmp_path):
    log = Log.create(tmp_path / "s.jsonl", HEADER)
    log.close()
    log.close()
    with pytest.raises(StoreError):
        log.append(said("too late"))


APPEND_FOR_EVER = """
import sys
from pathlib import Path
from typing import get_args
from longhold.core.log.entries import Said
from longhold.core.log import Header, Log
from longhold.core.messages import Text, text_of
from longhold.core.view import fold
log = Log.create(Path(sys.argv[1]), Header(session="s"))
for i in range(10**9):
    entry = log.append(Said(content=(Text(text="x" * 5_000),)))
    print(entry.n, flush=True)
"""


def test_a_killed_writer_leaves_at_most_a_torn_line(tmp_path):
    path = tmp_path / "s.jsonl"
    with child(APPEND_FOR_EVER, path) as writer:
        for line in writer.stdout:
            if int(line) >= 50:
                break
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged = max(map(int, [*writer.stdout.read().split(), line]))
    loaded = load(path)
    assert [entry.n for entry in loaded.entries[:acknowledged]] == list(range(1, acknowledged + 1))
    assert [damage.torn for damage in loaded.damage] in ([], [True])
    with Log.open(path) as log:
        assert log.append(said("on")).n == len(loaded.entries) + 1


FILL = """
import resource, sys
from pathlib import Path
from typing import get_args
from longhold.core.log.entries import Said
from longhold.errors import StoreError
from longhold.core.log import Header, Log
from longhold.core.messages import Text, text_of
from longhold.core.view import fold
log = Log.create(Path(sys.argv[1]), Header(session="s"))
limit, hard = int(sys.argv[2]), resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
count, errors = 0, []
while len(errors) < 3:
    try:
        log.append(Said(content=(Text(text="x" * 700),)))
        count += 1
    except StoreError as error:
        errors.append(str(error))
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
entry = log.append(Said(content=(Text(text="room again"),)))
print(count, entry.n)
print(errors[0])
"""


@pytest.mark.parametrize("limit", [8_000, 8_001, 8_191, 8_192])
def test_a_full_disk_costs_nothing_that_was_written(tmp_path, limit):
    path = tmp_path / "s.jsonl"
    done = child(FILL, path, limit)
    out, err = done.communicate()
    assert err == ""
    counts, message = out.splitlines()
    count, last = map(int, counts.split())
    assert count > 5 and last == count + 1
    assert "nothing written before is lost" in message
    loaded = load(path)
    assert [entry.n for entry in loaded.entries] == list(range(1, last + 1))
    assert loaded.damage == []


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 64 KiB, where we may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if not IS_ROOT or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a file system here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_really_full_disk(tiny_disk):
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(b"\0" * (40 << 10))
    with Log.create(tiny_disk / "s.jsonl", HEADER) as log:
        with pytest.raises(StoreError, match="No space left on device; free some space"):
            for _ in range(1_000):
                log.append(said("x" * 900))
        count = len(load(log.path).entries)
        ballast.unlink()
        assert log.append(said("room again")).n == count + 1
    loaded = load(tiny_disk / "s.jsonl")
    assert len(loaded.entries) == count + 1
    assert loaded.damage == []


def test_a_log_that_cannot_begin_leaves_nothing(tiny_disk):
    ballast = tiny_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="space"):
        while True:
            file.write(b"\0" * 4_096)
    path = tiny_disk / "s.jsonl"
    with pytest.raises(StoreError, match="free some space"):
        Log.create(path, HEADER)
    assert not path.exists()
    ballast.unlink()
    with Log.create(path, HEADER) as log:
        log.append(said("one"))
    assert texts_in(path) == ["one"]


def test_a_torn_log_on_a_full_disk_is_not_held_by_whoever_failed_to_open_it(tiny_disk):
    path = written(tiny_disk / "s.jsonl", "x" * 4_000)
    with path.open("r+b") as file:
        file.truncate(4_096)
    ballast = tiny_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="space"):
        while True:
            file.write(b"\0" * 4_096)
    assert path.stat().st_size == 4_096
    with pytest.raises(StoreError, match="free some space"):
        Log.open(path)
    ballast.unlink()
    Log.open(path).close()


def test_a_whole_log_appears_at_once(tmp_path):
    path = tmp_path / "s.jsonl"

    def entries():
        yield Said(n=1, content=())
        assert not path.exists()
        yield Said(n=2, content=())

    assert write_log(path, HEADER, entries()) == 2
    assert [entry.n for entry in load(path).entries] == [1, 2]
    assert names(tmp_path) == ["s.jsonl"]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), TranscriptError("x", "broken"), OSError(5, "gone"), ValueError()]
)
def test_an_interrupted_import_leaves_nothing(tmp_path, error):
    def entries():
        yield Said(n=1, content=())
        raise error

    with pytest.raises((type(error), StoreError)):
        write_log(tmp_path / "s.jsonl", HEADER, entries())
    assert names(tmp_path) == []


def test_a_whole_log_replaces_none(tmp_path):
    path = written(tmp_path / "s.jsonl", "one")
    with pytest.raises(StoreError, match="never overwritten"):
        write_log(path, HEADER, [Said(n=1, content=())])
    assert texts_in(path) == ["one"]
    assert names(tmp_path) == ["s.jsonl", "s.lock"]


def test_a_branch_is_a_copy_up_to_an_entry(tmp_path):
    source = written(tmp_path / "s.jsonl", "one", "two", "three")
    path = tmp_path / "t.jsonl"
    assert branch_log(source, path, "t", upto=2) == 2
    header = load_header(path)
    assert (header.session, header.parent, header.parent_entry) == ("t", "s", 2)
    assert header.directory == "/somewhere"
    with Log.open(path) as log:
        assert log.append(said("else")).n == 3
    assert texts_in(path) == ["one", "two", "else"]
    assert texts_in(source) == ["one", "two", "three"]


def test_a_branch_can_be_made_while_the_log_is_being_written(tmp_path):
    with Log.create(tmp_path / "s.jsonl", HEADER) as log:
        log.append(said("one"))
        assert branch_log(log.path, tmp_path / "t.jsonl", "t") == 1


def test_a_branch_before_the_first_entry_is_empty(tmp_path):
    source = written(tmp_path / "s.jsonl", "one")
    assert branch_log(source, tmp_path / "t.jsonl", "t", upto=0) == 0
    assert load_header(tmp_path / "t.jsonl").parent_entry == 0


def test_what_no_unicode_can_hold_is_mended_before_it_is_written(tmp_path):
    with Log.create(tmp_path / "s.jsonl", HEADER) as log:
        written = log.append(said("a \ud800 b"))
        assert written.content == (Text(text="a \ufffd b"),)
    assert load(log.path).entries == [written]


def test_the_limit_on_files_is_as_it_was():
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


FORMATS = Path(__file__).parents[2] / "fixtures" / "formats"


def test_a_log_of_every_format_is_kept():
    assert names(FORMATS) == [f"{version}.jsonl" for version in range(1, VERSION + 1)]


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_older_formats_load_undamaged(version):
    loaded = load(FORMATS / f"{version}.jsonl")
    assert loaded.header.longhold == version
    assert loaded.damage == []
    assert {type(entry) for entry in loaded.entries} == set(get_args(AnyEntry))


def test_the_view_of_format_1():
    loaded = load(FORMATS / "1.jsonl")
    view = fold(loaded.entries)
    shown = [(message.role, text_of(message.content)) for message in view.render_seen()]
    assert shown == [
        ("user", "Fix the login bug\nThey fix the login bug."),
        ("assistant", ""),
        ("user", "login.py as it is now\nAnd the tests?"),
    ]
    assert (view.title, view.model) == ("The login bug", "claude-opus-5-5")
    assert (view.reported.n, view.reported.usage.total_tokens) == (6, 1_003)
    picture = loaded.entries[3].measure
    assert (picture.spaced, picture.letters, picture.blocks) == (3, 14, 1)
    assert (picture.results, picture.media_tokens) == (0, 1_600)


async def test_syncing_goes_on_beside_the_work_and_tells_its_failure_next_time(tmp_path):
    with Log.create(tmp_path / "s.jsonl", HEADER) as log:
        log.append(said("a"))
        log.sync_soon()
        await until(lambda: not log._sync.is_due)
        reading, writing = os.pipe()  # what cannot be synced
        os.dup2(writing, log._descriptor)
        log.sync_soon()
        await until(lambda: log._sync.is_due)
        with pytest.raises(StoreError):
            log.sync_soon()
        os.close(reading)
        os.close(writing)


def test_closing_makes_everything_durable(tmp_path):
    log = Log.create(tmp_path / "s.jsonl", HEADER)
    for words in ("one", "two", "three"):
        log.append(said(words))
        log.sync_soon()
    log.append(said("four"))
    log.close()
    assert not log._sync.is_due


def test_a_close_that_fails_releases_the_lock(tmp_path, monkeypatch):
    def fails(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    log = Log.create(tmp_path / "s.jsonl", HEADER)
    log.append(said("one"))
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(StoreError, match="Input/output"):
        log.close()
    monkeypatch.undo()
    assert not log.is_open
    Log.open(log.path).close()


def test_a_removed_log_is_noticed_at_the_next_write(tmp_path):
    with Log.create(tmp_path / "s.jsonl", HEADER) as log:
        log.append(said("one"))
        log.path.unlink()
        with pytest.raises(StoreError, match="removed or replaced"):
            log.append(said("two"))
        with pytest.raises(StoreError, match="removed or replaced"):
            log.sync_soon()


def test_a_line_that_cannot_be_taken_back_spoils_only_itself(tmp_path, monkeypatch):
    with Log.create(tmp_path / "s.jsonl", HEADER) as log:
        log.append(said("one"))
        write = os.write

        def fails(*_):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:9]))
        monkeypatch.setattr(os, "ftruncate", fails)
        with pytest.raises(StoreError):
            log.append(said("two"))
        monkeypatch.undo()
        log.append(said("three"))
    assert texts_in(log.path) == ["one", "three"]


def test_a_fork_of_the_process_does_not_write(tmp_path):
    with Log.create(tmp_path / "s.jsonl", HEADER) as log:
        child = os.fork()
        if not child:
            code = 0
            try:
                log.append(said("twice"))
            except StoreError:
                code = 7
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert log.append(said("once")).n == 1
    assert texts_in(log.path) == ["once"]


def test_what_no_line_can_hold_is_refused(tmp_path):
    with Log.create(tmp_path / "s.jsonl", HEADER) as log:
        written = log.append(said("one"))
        deep = []
        for _ in range(200_000):  # how deep is too deep depends on the version of Python
            deep = [deep]
        with pytest.raises(StoreError, match="cannot be written"):
            log.append(Failed(what="x", error="y", detail=deep))
    assert load(log.path).entries == [written]
