"""Saving and loading: byte for byte, also for truncated files."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log import Header, Log, branch_log, load, write_log
from longhold.core.log.entries import Titled
from longhold.core.view import fold
from properties.strategies import any_contents, any_text, sequences

headers = st.builds(
    Header, session=any_text, created=st.floats(0, 2e9), directory=any_text, parent=any_text
)


@contextmanager
def saved(entries, header=None):
    """A log on disk with these entries, in a directory of its own."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "s.jsonl"
        write_log(path, header or Header(session="s"), entries)
        yield path


@given(sequences | any_contents, headers)
def test_a_log_loads_and_is_written_again_byte_for_byte(entries, header):
    with saved(entries, header) as path:
        loaded = load(path)
        assert (loaded.header, loaded.entries, loaded.damage) == (header, entries, [])
        write_log(path.with_name("again.jsonl"), loaded.header, loaded.entries)
        assert path.with_name("again.jsonl").read_bytes() == path.read_bytes()


@given(sequences)
def test_a_log_written_entry_by_entry_is_the_one_written_at_once(entries):
    with saved(entries) as path:
        with Log.create(path.with_name("live.jsonl"), Header(session="s")) as log:
            for entry in entries:
                log.append(entry)
        assert log.path.read_bytes() == path.read_bytes()


@given(sequences)
def test_the_view_survives_the_disk(entries):
    with saved(entries) as path:
        view, again = fold(entries), fold(load(path).entries)
        assert again.messages() == view.messages()
        assert again.render_seen() == view.render_seen()
        assert again.total == view.total


@given(sequences, st.data())
def test_a_file_cut_at_any_byte_loads_and_goes_on(entries, data):
    with saved(entries) as path:
        whole = path.read_bytes()
        first_line = whole.index(b"\n")
        cut = data.draw(st.integers(first_line, len(whole)), label="cut")
        path.write_bytes(whole[:cut])
        rest = whole[first_line + 1 : cut]
        complete = rest.count(b"\n") + (whole[cut : cut + 1] == b"\n" and cut > first_line)
        is_torn = bool(rest) and not rest.endswith(b"\n") and whole[cut : cut + 1] != b"\n"

        loaded = load(path)
        assert loaded.entries == entries[:complete]
        assert [damage.torn for damage in loaded.damage] == [True] * is_torn

        with Log.open(path) as log:
            added = log.append(Titled(title="on"))
        again = load(path)
        assert again.entries == [*entries[:complete], added]
        assert len(again.damage) == is_torn
        assert added.n == complete + 1


@given(sequences, st.data())
def test_a_damaged_byte_costs_at_most_its_line(entries, data):
    with saved(entries) as path:
        whole = bytearray(path.read_bytes())
        first_line = whole.index(b"\n")
        if first_line + 1 == len(whole):
            return
        at = data.draw(st.integers(first_line + 1, len(whole) - 1), label="at")
        whole[at] = data.draw(st.integers(0, 255), label="byte")
        path.write_bytes(whole)
        hit = path.read_bytes()[:at].count(b"\n") - 1
        survivors = load(path).entries
        for i, entry in enumerate(entries):
            assert entry in survivors or i in (hit, hit + 1)


@given(sequences, st.integers(0, 30))
def test_a_branch_shares_its_parents_beginning(entries, upto):
    with saved(entries) as path:
        branch_log(path, path.with_name("b.jsonl"), "b", upto=upto)
        shared = load(path.with_name("b.jsonl")).entries
        assert shared == [entry for entry in entries if entry.n <= upto]
