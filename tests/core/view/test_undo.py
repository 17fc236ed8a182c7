"""Which entries are in force after undo and redo."""

from longhold.core.log.entries import (
    Cleared,
    Compacted,
    Redone,
    Restored,
    Rewound,
    Said,
    Snipped,
    Undone,
)
from longhold.core.view.in_force import InForce, find_in_force
from properties.strategies import numbered


def compacted(**fields):
    return Compacted(first=1, last=1, summary=(), **fields)


def fate_of(*entries):
    return find_in_force(numbered((Said(content=()), *entries)))


def test_nothing_undone_is_the_plain_fate():
    assert fate_of(compacted(), Snipped(targets=(2,))) == InForce()


def test_an_undo_takes_a_whole_chain_along():
    chain = (compacted(), Restored(compaction=2, content=()), Snipped(targets=(3,)))
    assert fate_of(*chain, Undone(target=2)).dead == {2, 3, 4}


def test_undoing_the_end_of_a_chain_leaves_its_beginning():
    chain = (compacted(), Restored(compaction=2, content=()))
    assert fate_of(*chain, Undone(target=3)).dead == {3}


def test_a_redo_leaves_what_was_undone_on_its_own():
    chain = (compacted(), Restored(compaction=2, content=()))
    undone = (*chain, Undone(target=3), Undone(target=2), Redone(target=2))
    assert fate_of(*undone).dead == {3}


def test_only_what_was_undone_itself_is_vetoed():
    found = fate_of(
        Cleared(ids=("a", "b"), texts=("", "")),
        Snipped(targets=(1,), rests_on=(2,)),
        Undone(target=2),
    )
    assert found.dead == {2, 3}
    assert found.vetoes == {"a", "b"}


def test_undo_of_what_is_not_there_yet_means_nothing():
    assert fate_of(Undone(target=3), compacted()) == InForce()


def test_sizes_between_an_entry_and_its_undo_are_not_trusted():
    found = fate_of(compacted(), Said(content=()), Undone(target=2), Said(content=()))
    assert [found.is_distrusted(n) for n in range(1, 6)] == [False, False, True, False, False]


def test_what_comes_to_rest_on_a_dead_entry_is_dead_from_the_start():
    dead = InForce(dead=frozenset({2}))
    assert dead.add_entry(Snipped(n=9, targets=(2,))).dead == {2, 9}
    assert dead.add_entry(Snipped(n=9, targets=(3,))) is dead


def test_a_rewind_takes_what_was_said_since_and_the_summaries_over_it():
    said = Said(content=())
    stays, covers = compacted(), Compacted(first=1, last=2, summary=())
    found = fate_of(said, stays, Restored(compaction=3, content=()), covers, Rewound(after=1))
    assert found.dead == {2, 5}
    assert fate_of(said, Snipped(targets=(1, 2)), Rewound(after=1)).dead == {2}
    assert fate_of(said, Rewound(after=1), said, Rewound(after=1), said).dead == {2, 4}
    assert not found.vetoes
