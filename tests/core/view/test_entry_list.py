"""A view's entries: old entries are compressed, and read like the others."""

from threading import Thread

import pytest

from longhold.core.log.entries import Compacted, Ran, Replied, Said
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.view import fold
from longhold.core.view.entry_list import BLOCK, RECENT, EntryList

MANY = RECENT + 3 * BLOCK + 7


def made(count):
    """Entries of several kinds, in order."""
    kinds = (
        lambda n: Said(n=n, at=n / 3, content=(Text(text=f"Ask {n} – ü"),)),
        lambda n: Replied(
            n=n,
            response_id=f"r{n}",
            content=(ToolUse(id=f"t{n}", name="Read", input={"file_path": f"/{n}", "x": 1.5}),),
            usage=Usage(input_tokens=n),
        ),
        lambda n: Ran(n=n, tool_use_id=f"t{n - 1}", content=f"result {n}\n" * 20),
    )
    return [kinds[n % 3](n) for n in range(1, count + 1)]


@pytest.fixture
def entries():
    """More than are kept as they are."""
    return made(MANY)


@pytest.fixture
def packed(entries):
    """The same, appended one by one."""
    found = EntryList()
    for entry in entries:
        found.append(entry)
    return found


def test_packed_entries_are_read_as_they_were(entries, packed):
    assert len(packed) == MANY and packed == entries
    assert list(reversed(packed)) == entries[::-1]
    for at in (0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 5, MANY - RECENT, MANY - 1, -1, -MANY):
        assert packed[at] == entries[at]
    for part in (slice(0, 3), slice(BLOCK - 2, BLOCK + 2), slice(-5, None), slice(7, 2), slice(3)):
        assert packed[part] == entries[part]
    assert packed[::-500] == entries[::-500]


@pytest.mark.parametrize("at", [MANY, -MANY - 1])
def test_a_place_outside_is_an_error(packed, at):
    with pytest.raises(IndexError):
        packed[at]


def test_old_entries_take_little_memory(entries, packed):
    blocks, recent = packed._parts
    assert len(recent) < RECENT + BLOCK
    text = sum(len(entry.content) for entry in entries[: 2 * BLOCK] if isinstance(entry, Ran))
    assert 0 < sum(map(len, blocks[:2])) < text / 4


def test_a_resumed_session_is_packed_as_it_goes_on(entries):
    found = EntryList(entries)
    assert len(found._parts.recent) == MANY
    for entry in made(4):
        found.append(entry)
    assert len(found._parts.recent) < RECENT + BLOCK and len(found) == MANY + 4


def test_a_copy_stands_while_the_list_grows(entries, packed):
    copy, read = packed.copy(), []
    thread = Thread(target=lambda: read.extend(copy))
    thread.start()
    for entry in made(2 * BLOCK):
        packed.append(entry)
    thread.join()
    assert read == entries and len(packed) == MANY + 2 * BLOCK


def test_what_cannot_be_written_stays_as_it_is():
    entries = made(MANY)
    entries[3] = Said(n=4, content=(Text(text="\ud800"),))
    found = EntryList()
    for entry in entries:
        found.append(entry)
    assert found == entries


def test_undo_reaches_back_into_what_is_packed(entries):
    view = fold([])
    for entry in entries:
        view.apply(entry)
    done = Compacted(n=MANY + 1, first=1, last=30, summary=(Text(text="short"),))
    view.apply(done)
    assert fold(view.history).messages() == view.messages()
