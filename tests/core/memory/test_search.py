"""Search finds memories by words, by meaning, and beside what matches; nothing where nothing fits."""

import pytest

from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory
from longhold.core.memory.search import MemorySearch, load_installed
from longhold.core.memory.store import MemoryStore
from longhold.core.messages.words import words_of

needs_meaning = pytest.mark.skipif(load_installed() is None, reason="needs the extra `recall`")


@pytest.fixture
def store(tmp_path):
    with MemoryStore(tmp_path / "memory") as store:
        yield store


def remember(store, *texts, evidence=()):
    """Write one memory for each text, named by its number; evidence in the same order."""
    start = len(store.listed(1_000))
    changes = []
    for number, text in enumerate(texts):
        rests_on = (evidence[number],) if evidence else ()
        memory = Memory(
            file=f"m{start + number}.md", name="note", description=text, evidence=rests_on
        )
        changes.append(MemoryChange(file=memory.file, text=memory.text, expected=""))
    store.commit(changes, by="agent", why="test")


def by_words(store, query, limit=5):
    """Search without an embedding; what is not significant is left out."""
    found = MemorySearch(store.database, lambda: None).find(query, limit)
    return [hit.file for hit in found if hit.is_significant]


def test_a_name_in_most_memories_tells_the_matches_apart(store):
    remember(store, *(f"{name} likes tea number {n}" for n in range(30) for name in ("Ann", "Bob")))
    remember(store, "Bob bought a telescope last winter", "Ann sold a telescope last winter")
    assert by_words(store, "Which telescope did Ann own last winter?")[0] == "m61.md"


def test_parts_of_names_are_words():
    assert words_of("parseHookInput")[1:] == ["parse", "hook", "input"]
    assert words_of("snake_case_name") == ["snake", "case", "name"]


def test_an_answer_comes_with_its_question(store):
    remember(
        store,
        "asked which database the staging server uses",
        "it is the one in Frankfurt",
        "lunch is at noon",
        evidence=("s1#7", "s1#8", "s1#30"),
    )
    assert by_words(store, "Which database does staging use?") == ["m0.md", "m1.md"]


def test_neighbours_follow_what_changes(store):
    remember(store, "asked about the staging database", "Frankfurt", evidence=("s#1", "s#2"))
    assert by_words(store, "staging database") == ["m0.md", "m1.md"]
    moved = Memory(file="m1.md", name="note", description="Frankfurt", evidence=("s#40",))
    store.commit(
        [MemoryChange(file="m1.md", text=moved.text, expected=store.version("m1.md"))],
        by="agent",
        why="test",
    )
    assert by_words(store, "staging database") == ["m0.md"]


@needs_meaning
def test_a_memory_is_found_by_meaning_alone(store):
    remember(
        store,
        "The puppy sleeps in the kitchen",
        "Invoices are sent on the first of the month",
        "The compiler needs version twelve",
        *(f"Meeting {n} was moved to another room" for n in range(20)),
    )
    found = store.search("Where does our dog rest at night?", 3)
    assert found[0].file == "m0.md"
    assert found[0].is_significant
    assert by_words(store, "Where does our dog rest at night?") == []


@needs_meaning
def test_meaning_follows_what_changes(store):
    remember(store, "The puppy sleeps in the kitchen", *(f"Room {n} is booked" for n in range(20)))
    assert store.search("dog", 1)[0].file == "m0.md"
    changed = Memory(file="m0.md", name="note", description="Bread is baked on Fridays")
    store.commit(
        [MemoryChange(file="m0.md", text=changed.text, expected=store.version("m0.md"))],
        by="agent",
        why="test",
    )
    assert not [hit for hit in store.search("dog", 3) if hit.is_significant]
    assert store.search("loaf from the oven", 1)[0].file == "m0.md"
    store.commit(
        [MemoryChange(file="m0.md", text=None, expected=store.version("m0.md"), reason="over")],
        by="agent",
        why="test",
    )
    assert "m0.md" not in [hit.file for hit in store.search("loaf from the oven", 5)]


@pytest.mark.parametrize("query", ["thanks, go on", "rename the variable foo to bar", "", "the"])
def test_what_bears_on_nothing_finds_nothing(store, query):
    remember(
        store,
        "The staging database is in Frankfurt",
        "Invoices are sent on the first of the month",
        "Deploys wait for the review",
    )
    assert not [hit for hit in store.search(query, 5) if hit.is_significant]
