"""The files that an agent has read."""

import os

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.tools.context import Files, SeenFile, Stamp


def _seen(path, text="x", lines=(), modified_ns=1):
    stamp = Stamp(size=len(text), modified_ns=modified_ns, inode=1, sha256=f"hash of {text}")
    return SeenFile(path=path, stamp=stamp, ranges=tuple(lines))


def test_ranges_of_the_same_content_add_up(tmp_path):
    files = Files()
    files.record(_seen(tmp_path / "a", lines=[range(1, 11)]))
    files.record(_seen(tmp_path / "a", lines=[range(20, 31)]))
    known = files.of(tmp_path / "a")
    assert known.shows(range(2, 5)) and known.shows(range(20, 31))
    assert not known.shows(range(5, 25))


def test_other_content_drops_the_ranges_of_the_old(tmp_path):
    files = Files()
    files.record(_seen(tmp_path / "a", lines=[range(1, 11)]))
    files.record(_seen(tmp_path / "a", text="y"))
    assert not files.of(tmp_path / "a").shows(range(1, 2))


def test_disarming_keeps_the_file_known_but_not_shown(tmp_path):
    files = Files()
    files.record(_seen(tmp_path / "a", lines=[range(1, 11)]))
    files.record(_seen(tmp_path / "b", lines=[range(1, 11)]))
    files.disarm(tmp_path / "a")
    assert not files.of(tmp_path / "a").shows(range(1, 2))
    assert files.of(tmp_path / "b").shows(range(1, 2))


def test_a_copy_goes_its_own_way(tmp_path):
    files = Files()
    files.record(_seen(tmp_path / "a"))
    twin = files.copy()
    twin.record(_seen(tmp_path / "b"))
    assert (len(files), len(twin)) == (1, 2)


def test_a_link_names_the_file_it_leads_to(tmp_path):
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    files = Files()
    files.record(_seen(tmp_path / "link"))
    assert files.of(tmp_path / "real") is not None


@given(st.lists(st.integers(0, 8), max_size=40))
def test_the_limits_hold_and_the_least_recently_used_go_first(steps):
    files = Files(max_files=5)
    order: list[str] = []
    for name in steps:
        path = f"/nowhere/{name}"
        files.record(_seen(os.path.realpath(path)))
        order = [p for p in order if p != path] + [path]
        assert len(files) <= 5
    kept = [str(seen.path) for seen in reversed(files.list_newest())]
    assert kept == order[len(order) - len(kept) :]
