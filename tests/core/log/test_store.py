"""The store of sessions: finding by prefix, listing, branching, deleting."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from longhold.core.log import Header, Log
from longhold.core.log.entries import Said
from longhold.core.log.store import FileStore, list_expired, new_id
from longhold.core.messages import Text
from longhold.core.settings import home
from longhold.core.settings.project import SLUG_CHARS, project_root, slug
from longhold.errors import LogLocked, NewerFormat, SessionExists, SessionNotFound, StoreError

if TYPE_CHECKING:
    from longhold.core.log.store import Store

    def _conforms(store: FileStore) -> Store:
        return store


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path / "root")


@pytest.fixture
def project(tmp_path):
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


def begun(store, directory, session, *texts, age=0.0):
    """A session with these things said, last touched some seconds ago."""
    with store.create(directory=directory, session=session) as log:
        for text in texts:
            log.append(Said(content=(Text(text=text),)))
    stamp = log.path.stat().st_mtime - age
    os.utime(log.path, (stamp, stamp))
    return log.path


def said_in(store, session):
    return [entry.content[0].text for entry in store.load(session).entries]


def test_sessions_lie_in_the_home_directory(project):
    with FileStore().create(directory=project, session="a") as log:
        assert log.path == home() / "projects" / slug(project) / "a.jsonl"
        assert log.header.directory == str(project)


def test_directories_are_private(store, project):
    path = begun(store, project, "a")
    for directory in (path.parent, path.parent.parent, store.root):
        assert directory.stat().st_mode & 0o777 == 0o700


def test_ids_are_made_where_none_is_given(store, project):
    first, second = (store.create(directory=project) for _ in range(2))
    assert first.header.session != second.header.session
    first.close()
    second.close()
    assert len(new_id()) == len("20260105-101500-12345678")


def test_a_session_is_found_by_its_id_by_its_beginning_or_as_the_newest(
    store, project, monkeypatch
):
    begun(store, project, "abc", age=10)
    begun(store, project, "abcd", age=30)
    begun(store, project, "xyz", age=20)
    assert store.find("abc").id == "abc"
    assert store.find("x", by_prefix=True).id == "xyz"
    monkeypatch.chdir(project)
    assert store.find("newest", by_prefix=True).id == "abc"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("ab", "matches several sessions: abc, abd; give more of it"),
        ("q", "there is no session 'q'; `longhold sessions --all` lists them"),
        ("", "there is no session ''"),
    ],
)
def test_what_is_not_found_is_said_so(store, project, wanted, says):
    begun(store, project, "abc", age=1)
    begun(store, project, "abd", age=2)
    with pytest.raises(SessionNotFound) as caught:
        store.find(wanted, by_prefix=True)
    assert says in str(caught.value)


def test_an_empty_store_has_no_newest(store):
    assert store.sessions() == []
    with pytest.raises(SessionNotFound):
        store.find("newest", by_prefix=True)


def test_sessions_are_listed_newest_first(store, project, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    begun(store, project, "old", age=20)
    begun(store, project, "new", age=5)
    begun(store, other, "else", age=10)
    assert [found.id for found in store.sessions()] == ["new", "else", "old"]
    assert [found.id for found in store.sessions(project)] == ["new", "old"]
    assert store.sessions(tmp_path / "nowhere") == []


def test_files_that_are_no_logs_are_not_listed(store, project):
    path = begun(store, project, "a")
    for name, content in (("b.jsonl", "not a log"), ("c.txt", "x"), ("d.jsonl", "")):
        path.with_name(name).write_text(content)
    path.with_name("e.jsonl").mkdir()
    assert [found.id for found in store.sessions()] == ["a"]
    assert path.with_name("b.jsonl").exists()


def test_a_session_goes_on(store, project):
    begun(store, project, "abc", "one")
    with store.open("abc") as log:
        log.append(Said(content=(Text(text="two"),)))
    assert said_in(store, "abc") == ["one", "two"]


def test_a_branch_is_a_session_of_its_own(store, project):
    begun(store, project, "abc", "one", "two")
    with store.branch("abc", upto=1) as branch:
        branch.append(Said(content=(Text(text="else"),)))
    assert said_in(store, branch.header.session) == ["one", "else"]
    assert said_in(store, "abc") == ["one", "two"]
    assert branch.header.parent == "abc"
    assert branch.header.directory == str(project)


def test_a_session_that_is_being_written_can_be_branched(store, project):
    with store.create(directory=project, session="abc") as log:
        log.append(Said(content=(Text(text="one"),)))
        store.branch("abc").close()
    assert len(store.sessions()) == 2


def test_a_session_is_deleted_with_all_that_belongs_to_it(store, project):
    path = begun(store, project, "abc", "one")
    begun(store, project, "abcd", "other")
    spilled = store.find("abc").directory / "tool-results" / "a.txt"
    spilled.parent.mkdir(parents=True)
    spilled.write_text("long")
    store.delete("abc")
    assert sorted(p.name for p in path.parent.iterdir()) == ["abcd.jsonl", "abcd.lock"]


def test_a_session_that_is_being_written_is_not_deleted(store, project):
    with store.create(directory=project, session="abc"):
        with pytest.raises(LogLocked, match=f"process {os.getpid()}"):
            store.delete("abc")
        assert store.find("abc").path.exists()


def test_retention_names_what_is_too_old(store, project):
    day = 86_400
    begun(store, project, "old", age=31 * day)
    begun(store, project, "new", age=29 * day)
    assert [found.id for found in list_expired(store, 30)] == ["old"]
    assert list_expired(store, 0) == []
    later = store.find("new").modified + 30 * day + 1
    assert {found.id for found in list_expired(store, 30, now=later)} == {"old", "new"}


def test_an_import_lies_with_its_project(store, project):
    header = Header(session="imported", directory=str(project))
    assert store.add(header, [Said(n=1, content=(Text(text="one"),))]) == "imported"
    assert store.find("imported").path.parent == store.root / "projects" / slug(project)
    assert said_in(store, "imported") == ["one"]
    with pytest.raises(StoreError, match="never overwritten"):
        store.add(header, [])


@pytest.mark.parametrize("id", ["../escaped", "a/b", "/tmp/a", "..", ".", "a\0b", ""])
def test_an_id_cannot_lead_out_of_its_directory(store, project, id):
    if id:
        with pytest.raises(StoreError, match="is not a session id"):
            store.create(directory=project, session=id)
    with pytest.raises(StoreError, match="is not a session id"):
        store.add(Header(session=id, directory=str(project)), [])
    assert not list(store.root.rglob("*.jsonl"))


def git(directory, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
        cwd=directory,
        check=True,
        capture_output=True,
    )


def test_a_project_is_its_git_root(project):
    git(project, "init")
    inside = project / "src" / "deep"
    inside.mkdir(parents=True)
    assert project_root(inside) == project_root(project) == project.resolve()


def test_a_worktree_belongs_to_its_repository(project, tmp_path):
    git(project, "init")
    git(project, "commit", "--allow-empty", "-m", "first")
    git(project, "worktree", "add", str(tmp_path / "tree"))
    assert project_root(tmp_path / "tree") == project.resolve()


@pytest.mark.parametrize("content", [b"gitdir: elsewhere\n", b"\xff\xfe", b""])
def test_a_git_file_that_leads_nowhere_makes_a_project_of_its_own(project, content):
    (project / ".git").write_bytes(content)
    assert project_root(project) == project.resolve()


def test_without_git_a_directory_is_its_own_project(tmp_path):
    assert project_root(tmp_path) == tmp_path.resolve()


def test_a_slug_is_one_name():
    assert slug(Path("/home/me/my project")).startswith("home-me-my-project-")
    assert slug(Path("/tmp/a-b")) != slug(Path("/tmp/a/b"))
    assert slug(Path("/項目")) != slug(Path("/作業"))
    long = slug(Path("/" + "x" * 500))
    assert len(long) <= SLUG_CHARS + 9
    assert long != slug(Path("/" + "x" * 501))


def test_the_newest_is_the_newest_of_this_project_and_never_another_s(store, tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
        store.create(directory=place, session=place.name).close()
    monkeypatch.chdir(here)
    assert store.find("newest", by_prefix=True).id == "here"
    store.delete("here")
    with pytest.raises(SessionNotFound, match="sessions --all"):
        store.find("newest", by_prefix=True)


def test_one_log_has_one_lock_by_whatever_name(store, tmp_path):
    with store.create(directory=tmp_path, session="a") as log:
        link = tmp_path / "link.jsonl"
        link.symlink_to(log.path)
        with pytest.raises(LogLocked):
            Log.open(link)


def test_a_log_that_cannot_be_listed_says_why_when_asked_for(store, tmp_path):
    store.create(directory=tmp_path, session="a").close()
    path = store.find("a").path
    path.with_name("b.jsonl").write_text('{"longhold":99,"session":"b"}\n')
    with pytest.raises(NewerFormat):
        store.find("b")


def test_a_branch_takes_along_what_lies_beside_its_session(store, tmp_path):
    store.create(directory=tmp_path, session="a").close()
    beside = store.find("a").directory / "agents"
    beside.mkdir(parents=True)
    (beside / "x.jsonl").write_text("…")
    with store.branch("a") as log:
        assert (log.path.with_suffix("") / "agents" / "x.jsonl").exists()


def test_a_directory_that_may_not_be_read_is_skipped_and_named(store, project, tmp_path):
    begun(store, project, "readable", "hello")
    closed = store.root / "projects" / "closed"
    closed.mkdir(mode=0)
    for place in (tmp_path, *tmp_path.parents):
        if place.stat().st_uid == os.geteuid() and place != Path("/"):
            place.chmod(place.stat().st_mode | 0o055)
    for place in (store.root, *store.root.rglob("*")):
        if place != closed:
            place.chmod(0o755)
    child = os.fork()  # root may read everything, so nobody looks
    if not child:
        is_right = False
        try:
            if os.geteuid() == 0:
                os.setuid(65_534)
            listed = [found.id for found in store.sessions()]
            is_named = [str(closed) in line for line in store.unreadable()] == [True]
            is_right = (
                listed == ["readable"] and is_named and bool(store.find("read", by_prefix=True).id)
            )
        finally:
            os._exit(0 if is_right else 7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_swapped_files_keep_the_ids_of_their_names(store, project):
    begun(store, project, "one", "first")
    begun(store, project, "two", "second")
    a, b = store.find("one").path, store.find("two").path
    whole = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(whole)
    with store.open("one") as log:
        assert log.header.session == "one"
        assert ["session two" in found.reason for found in log.damage] == [True]
    assert store.load("two").header.session == "two"


def test_a_whole_id_is_found_without_a_look_at_other_sessions(store, project):
    begun(store, project, "user-1", "hello")
    other = store.find("user-1").path.with_name("user-12.jsonl")
    os.mkfifo(other)  # whoever looks into it waits for ever
    assert store.find("user-1").id == "user-1"


def test_only_the_session_of_exactly_this_id_is_removed(store, project):
    begun(store, project, "user-12", "hello")
    with pytest.raises(SessionNotFound, match="there is no session"):
        store.delete("user-1")
    assert store.find("user-12").id == "user-12"


def test_an_id_is_taken_in_every_directory(tmp_path):
    store = FileStore(tmp_path / "home")
    store.create(directory=tmp_path / "release-1", session="user-7").close()
    with pytest.raises(SessionExists, match="user-7 exists"):
        store.create(directory=tmp_path / "release-2", session="user-7")


def test_programs_name_a_session_by_its_whole_id(tmp_path):
    store = FileStore(tmp_path / "home")
    store.create(directory=tmp_path, session="user-12").close()
    for look in (store.find, store.open, store.load, store.branch, store.delete, store.beside):
        for name in ("user-1", "user", "newest", ""):
            with pytest.raises(SessionNotFound, match="there is no session"):
                look(name)
    assert store.find("user-1", by_prefix=True).id == "user-12"


def test_an_id_that_an_older_version_took_twice_is_found_and_deleted(tmp_path):
    store = FileStore(tmp_path / "home")
    first = store.create(directory=tmp_path / "a", session="user-7")
    other = store._path(tmp_path / "b", "user-7")
    first.close()
    other.parent.mkdir(parents=True)
    other.write_bytes(first.path.read_bytes())
    assert store.find("user-7").path == other
    store.delete("user-7")
    store.delete("user-7")
    with pytest.raises(SessionNotFound):
        store.find("user-7")


def test_processes_that_take_one_id_at_once(tmp_path):
    """Each in a directory of its own: one has it, the others resume it."""
    code = (
        "import sys; from longhold import Session; from pathlib import Path\n"
        "from longhold.errors import LogLocked\n"
        "try: Session.open_or_resume('shared', 'claude-sonnet-4-6', directory=Path(sys.argv[1]))\n"
        "except LogLocked: pass"
    )
    places = [tmp_path / f"release-{n}" for n in range(4)]
    for place in places:
        place.mkdir()
    started = [subprocess.Popen([sys.executable, "-c", code, str(place)]) for place in places]
    assert [one.wait() for one in started] == [0] * 4
    assert len(FileStore().sessions()) == 1
