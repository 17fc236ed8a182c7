"""The store: commits, conflicts, undo, tombstones, manual edits, and refusals."""

import sqlite3
import stat
from dataclasses import replace

import pytest

from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory, MemoryConflict, MemoryRefused, NoSuchMemory
from longhold.core.memory.store import MemoryStore
from longhold.errors import StoreError

STAGING = Memory(file="staging.md", name="Staging", description="staging is db-7", body="db-7\n")
DEPLOY = Memory(file="deploy.md", name="Deploys", description="only at night", body="At 22:00.\n")


def test_a_commit_writes_the_files_and_the_index(store, write):
    commit = write(STAGING, DEPLOY, why="told by the user")
    assert (commit.by, commit.why) == ("agent", "told by the user")
    assert store.memory("staging.md").body == "db-7\n"
    assert (store.root / "staging.md").read_text() == STAGING.text
    assert (store.root / "MEMORY.md").read_text() == store.index()
    assert "- [Deploys](deploy.md): only at night" in store.index()


def test_everything_on_disk_is_private(store, write):
    write(STAGING, Memory(file="ops/db.md", name="n", description="d"))
    assert stat.S_IMODE(store.root.stat().st_mode) == 0o700
    assert stat.S_IMODE((store.root / "ops").stat().st_mode) == 0o700
    files = [path for path in store.root.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_the_later_of_two_writers_is_told(store, tmp_path):
    with MemoryStore(store.root) as other:
        first = MemoryChange(file="a.md", text="one\n", expected="")
        store.commit([first], by="agent", why="first")
        seen = other.version("a.md")
        store.commit([MemoryChange(file="a.md", text="two\n", expected=seen)], by="agent", why="x")
        with pytest.raises(MemoryConflict, match=r"by agent in commit 2 .* read it again"):
            other.commit(
                [MemoryChange(file="a.md", text="three\n", expected=seen)], by="dream", why="y"
            )
        assert other.read("a.md") == "two\n"


def test_a_conflict_leaves_the_whole_set_undone(store):
    store.commit([MemoryChange(file="a.md", text="one\n", expected="")], by="agent", why="x")
    good = MemoryChange(file="b.md", text="b\n", expected="")
    stale = MemoryChange(file="a.md", text="c\n", expected="")
    with pytest.raises(MemoryConflict):
        store.commit([good, stale], by="agent", why="x")
    assert store.versions().keys() == {"a.md"}
    assert not (store.root / "b.md").exists()


def test_writing_what_is_there_is_no_commit(store, write):
    write(STAGING)
    assert write(STAGING) is None
    assert store.history.head == 1


def test_undo_restores_the_bytes(store, write):
    write(STAGING)
    before = {path.name: path.read_bytes() for path in store.root.glob("*.md")}
    change = MemoryChange(file="staging.md", text="other\n", expected=store.version("staging.md"))
    new = MemoryChange(file="new.md", text="new\n", expected="")
    store.commit([change, new], by="extraction", why="x")
    undone = store.undo()
    assert undone.undoes == 2
    assert {path.name: path.read_bytes() for path in store.root.glob("*.md")} == before


def test_undo_of_an_undo_is_a_redo(store, write):
    write(STAGING)
    store.undo()
    assert store.versions() == {}
    store.undo()
    assert store.read("staging.md") == STAGING.text


def test_an_older_commit_can_be_undone_beside_newer_ones(store, write):
    write(STAGING)
    write(DEPLOY)
    store.undo(1)
    assert store.versions().keys() == {"deploy.md"}


def test_an_undo_never_takes_newer_work_with_it(store, write):
    write(STAGING)
    write(Memory(file="staging.md", name="n", description="newer"))
    with pytest.raises(MemoryConflict, match="in commit 2"):
        store.undo(1)


def test_nothing_is_removed_without_a_reason(store, write):
    write(STAGING)
    version = store.version("staging.md")
    gone = MemoryChange(file="staging.md", text=None, expected=version, reason=" ")
    with pytest.raises(MemoryRefused, match="without a reason"):
        store.commit([gone], by="dream", why="x")
    gone = MemoryChange(file="staging.md", text=None, expected=version, reason="same as other.md")
    store.commit([gone], by="dream", why="x")
    (stone,) = store.history.tombstones()
    assert (stone.file, stone.reason, stone.by) == ("staging.md", "same as other.md", "dream")


def test_what_is_gone_can_be_brought_back(store, write):
    write(STAGING)
    gone = MemoryChange(
        file="staging.md", text=None, expected=store.version("staging.md"), reason="old"
    )
    store.commit([gone], by="person", why="x")
    store.bring_back("staging.md")
    assert store.read("staging.md") == STAGING.text
    assert store.history.tombstones() == []
    with pytest.raises(NoSuchMemory):
        store.bring_back("never.md")


def test_what_people_change_by_hand_is_their_commit(store, write):
    write(STAGING, DEPLOY)
    (store.root / "staging.md").write_text("by hand\n")
    (store.root / "deploy.md").unlink()
    (store.root / "new.md").write_text("# New\n")
    write(Memory(file="other.md", name="o", description="o"))
    newest, adopted = store.history.log(2)
    assert (newest.by, adopted.by, adopted.why) == ("agent", "person", "changed by hand")
    assert store.versions().keys() == {"new.md", "other.md", "staging.md"}
    assert store.read("staging.md") == "by hand\n"
    assert store.history.tombstones()[0].reason == "removed by hand"


def test_a_hand_edit_makes_a_models_older_change_a_conflict(store, write):
    write(STAGING)
    seen = store.version("staging.md")
    (store.root / "staging.md").write_text("by hand\n")
    with pytest.raises(MemoryConflict, match="by person"):
        store.commit(
            [MemoryChange(file="staging.md", text="mine\n", expected=seen)], by="agent", why=""
        )
    assert (store.root / "staging.md").read_text() == "by hand\n"


def test_a_hand_edit_in_the_middle_of_a_commit_is_not_written_over(tmp_path):
    root = tmp_path / "memory"

    def save_by_hand(point):
        if point == "committed" and (root / "a.md").exists():
            (root / "a.md").write_text("by hand\n")

    with MemoryStore(root, step=save_by_hand) as store:
        store.commit([MemoryChange(file="a.md", text="one\n", expected="")], by="agent", why="x")
        seen = store.version("a.md")
        store.commit([MemoryChange(file="a.md", text="two\n", expected=seen)], by="agent", why="y")
        assert (root / "a.md").read_text() == "by hand\n"
        adopted = store.adopt()
        assert (adopted.by, store.read("a.md")) == ("person", "by hand\n")
        assert store.history.text(adopted.changes[0].before) == "two\n"


def test_an_index_changed_by_hand_is_generated_again(store, write):
    write(STAGING)
    (store.root / "MEMORY.md").write_text("- [x](nowhere.md): x\n")
    assert store.adopt() is None
    write(DEPLOY)
    assert (store.root / "MEMORY.md").read_text() == store.read("MEMORY.md") == store.index()
    assert "nowhere" not in store.index() and "staging.md" in store.index()


def test_a_hand_written_secret_stays_out(store):
    (store.root / "aws.md").write_text("key " + "AKIA" + "Z7QKX2VBMTN4RWLS\n")
    assert store.adopt() is None
    assert store.versions() == {}
    assert "aws-access-token" in store.problems["aws.md"]


def test_a_secret_is_refused_and_not_repeated(store):
    secret = "ghp_" + "q7Zk2XvB9mTn4RwL8sJd3FhG6pYc1UeA5oKi"
    with pytest.raises(MemoryRefused, match=r"line 2 \(github-pat\)") as caught:
        store.commit(
            [MemoryChange(file="a.md", text=f"x\n{secret}\n", expected="")], by="agent", why=""
        )
    assert secret not in str(caught.value)
    assert store.history.head == 0 and not (store.root / "a.md").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [("a\0b", "zero byte"), ("\ud800", "unpaired surrogate"), ("x" * 70_000, "at most 65,536")],
)
def test_a_text_that_is_no_memory_is_refused(store, text, told):
    with pytest.raises(MemoryRefused, match=told):
        store.commit([MemoryChange(file="a.md", text=text, expected="")], by="agent", why="")


def test_a_path_out_of_the_store_is_refused(store):
    with pytest.raises(MemoryRefused):
        store.commit([MemoryChange(file="../a.md", text="x", expected="")], by="agent", why="")


def test_a_link_in_a_files_place_is_not_followed(store, tmp_path):
    outside = tmp_path / "outside.md"
    (store.root / "a.md").symlink_to(outside)
    with pytest.raises(MemoryRefused, match="behind a link"):
        store.commit([MemoryChange(file="a.md", text="x", expected="")], by="agent", why="")
    assert not outside.exists()


def test_names_that_differ_in_case_only_are_refused(store, write):
    write(STAGING)
    with pytest.raises(MemoryRefused, match="only in case"):
        store.commit([MemoryChange(file="Staging.md", text="x", expected="")], by="agent", why="")


@pytest.mark.parametrize("name", ["st\u0430ging.md", "\u0441\u043e\u0441\u043e.md"])
def test_names_that_look_like_others_are_refused(store, write, name):
    write(STAGING, replace(STAGING, file="coco.md"), replace(STAGING, file="\u043c\u0438\u0440.md"))
    with pytest.raises(MemoryRefused, match="look alike"):
        store.commit([MemoryChange(file=name, text="x", expected="")], by="agent", why="")


def test_a_file_put_there_by_hand_under_such_a_name_is_left_alone(store, write):
    write(STAGING)
    (store.root / "st\u0430ging.md").write_text("other text\n")
    (store.root / "Staging.md").write_text("other text\n")
    (store.root / "plain.md").write_text("a third text\n")
    write(DEPLOY)
    assert set(store.versions()) == {STAGING.file, DEPLOY.file, "plain.md"}


def test_uses_are_counted_and_order_the_index(store, write):
    write(STAGING, DEPLOY)
    store.count_uses({"staging.md": 1})
    store.count_uses({"staging.md": 1})
    write(Memory(file="z.md", name="z", description="z"))
    assert [one.uses for one in store.list_lines() if one.file == "staging.md"] == [2]
    assert store.index().splitlines()[0].startswith("- [Staging]")


def test_search_finds_by_words_of_name_description_and_body(store, write):
    write(STAGING, DEPLOY)
    assert [hit.file for hit in store.search("when do we deploy?")] == ["deploy.md"]
    assert [hit.file for hit in store.search("the 22:00 window")] == ["deploy.md"]
    assert store.search("what is it") == []
    assert store.search('") OR NEAR(') == []


def test_a_removed_memory_is_not_found(store, write):
    write(STAGING)
    store.undo()
    assert store.search("staging") == []
    store.undo()
    assert [hit.file for hit in store.search("staging")] == ["staging.md"]


def test_a_damaged_history_says_what_to_do(tmp_path):
    root = tmp_path / "memory"
    root.mkdir()
    (root / ".history.db").write_bytes(b"not a database" * 1_000)
    with pytest.raises(StoreError, match="move it away"):
        MemoryStore(root)


def test_a_lost_history_begins_anew_with_the_files(store, write):
    write(STAGING)
    store.close()
    for path in store.root.glob(".history.db*"):
        path.unlink()
    with MemoryStore(store.root) as again:
        again.adopt()
        assert again.read("staging.md") == STAGING.text


def test_a_newer_history_is_left_alone(store):
    store.close()
    with sqlite3.connect(store.root / ".history.db") as sql:
        sql.execute("PRAGMA user_version = 99")
    sql.close()
    with pytest.raises(StoreError, match="newer version"):
        MemoryStore(store.root)


@pytest.mark.parametrize("place", ["reason", "why"])
def test_a_secret_in_a_reason_is_refused(store, place):
    store.commit([MemoryChange(file="a.md", text="# A\n", expected="")], by="person", why="x")
    words = {"reason": "old", "why": "old", place: "glpat-" + "q7Zk2XvB9mTn4RwL8sJd"}
    gone = MemoryChange(
        file="a.md", text=None, expected=store.version("a.md"), reason=words["reason"]
    )
    with pytest.raises(MemoryRefused, match="gitlab-pat"):
        store.commit([gone], by="agent", why=words["why"])
    assert list(store.versions()) == ["a.md"]
