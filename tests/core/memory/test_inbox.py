"""The inbox: no memory is stored without the user's consent."""

import pytest

from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.inbox import Inbox, must_ask
from longhold.core.memory.memory import Memory, MemoryConflict, MemoryRefused, NoSuchMemory
from longhold.core.settings import MemorySettings

NEW = MemoryChange(file="a.md", text="# A\n", expected="")


def propose(store, *changes, **more):
    """Put changes before the user."""
    return Inbox(store).propose(changes, by="extraction", why="said so", **more)


def test_consent_decides_and_outside_text_always_asks():
    assert not must_ask(MemorySettings(), is_outside=False)
    assert must_ask(MemorySettings(), is_outside=True)
    assert must_ask(MemorySettings(consent="ask"), is_outside=False)


def test_a_proposal_changes_nothing_until_it_is_accepted(store):
    (proposal,) = propose(store, NEW, session="s1", is_outside=True)
    assert store.versions() == {}
    assert Inbox(store).waiting() == [proposal] and proposal.is_outside
    assert "+# A" in Inbox(store).diff(proposal)
    commit = Inbox(store).accept(proposal.id)
    assert (commit.by, commit.why) == ("extraction", "said so (accepted)")
    assert store.read("a.md") == "# A\n"
    assert Inbox(store).waiting() == []


def test_what_was_declined_is_not_proposed_again(store):
    (proposal,) = propose(store, NEW)
    assert propose(store, NEW) == []
    Inbox(store).decline(proposal.id)
    assert propose(store, NEW) == []
    assert len(propose(store, MemoryChange(file="a.md", text="# B\n", expected=""))) == 1


def test_a_declined_memory_with_other_dates_is_the_same(store):
    def said(modified, evidence, file="board.md"):
        memory = Memory(
            file=file, name="Board", description="in Linear", modified=modified, evidence=evidence
        )
        return MemoryChange(file=file, text=memory.text, expected="")

    (proposal,) = propose(store, said(1_000.0, ("s1#1",)))
    assert propose(store, said(2_000.0, ("s1#4",))) == []
    Inbox(store).decline(proposal.id)
    assert propose(store, said(3_000.0, ("s2#1",))) == []
    assert propose(store, said(4_000.0, ("s3#1",), file="tickets.md")) == []


def test_a_new_proposal_takes_the_place_of_the_one_that_waits(store):
    (first,) = propose(store, NEW)
    (second,) = propose(store, MemoryChange(file="a.md", text="# B\n", expected=""))
    assert Inbox(store).waiting() == [second]
    with pytest.raises(NoSuchMemory, match="was replaced"):
        Inbox(store).accept(first.id)


def test_a_memory_changed_meanwhile_is_a_conflict(store):
    (proposal,) = propose(store, NEW)
    store.commit([MemoryChange(file="a.md", text="# Other\n", expected="")], by="person", why="x")
    with pytest.raises(MemoryConflict):
        Inbox(store).accept(proposal.id)
    assert Inbox(store).waiting() == [proposal]


def test_a_proposal_is_settled_once(store):
    (proposal,) = propose(store, NEW)
    Inbox(store).decline(proposal.id)
    with pytest.raises(NoSuchMemory, match="was declined"):
        Inbox(store).accept(proposal.id)
    with pytest.raises(NoSuchMemory, match="no proposal 99"):
        Inbox(store).accept(99)


def test_a_secret_does_not_even_get_into_the_inbox(store):
    with pytest.raises(MemoryRefused):
        propose(store, MemoryChange(file="a.md", text="AKIA" + "Z7QKX2VBMTN4RWLS\n", expected=""))
    assert Inbox(store).waiting() == []


def test_a_secret_in_the_reason_is_refused_too(store):
    with pytest.raises(MemoryRefused, match="reason"):
        Inbox(store).propose([NEW], by="extraction", why="glpat-" + "q7Zk2XvB9mTn4RwL8sJd")
    assert Inbox(store).waiting() == []
