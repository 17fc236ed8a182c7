"""Search finds memories by words, meaning and neighbours, or nothing if nothing fits."""

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
    start = len(store.list_lines(1_000))
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


@pytest.mark.parametrize("said", ["the observatory is far", "the observationdeck is far"])
def test_a_word_that_no_memory_has_is_found_by_its_beginning(store, said):
    remember(store, *(f"lunch number {n} is at noon" for n in range(30)))
    remember(store, said)
    assert by_words(store, "Where is the observatio?") == ["m30.md"]


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


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("部署在星期二晚上进行,在备份之后", "什么时候部署?"),
        ("发布负责人是王小明", "谁负责发布?"),
        ("用户养了两只猫", "我的猫在哪里?"),
        ("デプロイは火曜日の夜に行う", "デプロイはいつ?"),
        ("ユーザーはタブを好む", "インデントはタブですか?"),
        ("배포는 화요일 밤에 진행된다", "배포가 언제예요?"),
    ],
)
def test_languages_without_spaces_are_found_by_words(store, said, asked):
    remember(store, "The staging database is in Frankfurt", said, "会议室在三楼", "窓を閉める")
    assert by_words(store, asked) == ["m1.md"]


def test_the_newest_comes_first_among_equals(store):
    days = (70, 0, 30, 10, 50, 20, 40, 60)
    memories = [
        Memory(
            file=f"d{99 - day}.md", name="note", description=f"deploy window of service {day}",
            modified=1_790_000_000.0 - day * 86_400,
        )
        for day in days
    ]  # fmt: skip
    changes = [MemoryChange(file=one.file, text=one.text, expected="") for one in memories]
    store.commit(changes, by="agent", why="test")
    asked = "What is the deploy window of the service?"
    assert by_words(store, asked) == ["d99.md", "d89.md", "d79.md", "d69.md", "d59.md"]
    assert by_words(store, "the deploy window of service 70?")[0] == "d29.md"


@needs_meaning
def test_close_words_decide_between_memories_that_share_a_word(store):
    remember(
        store,
        "The car of Jonas was repaired, the car is fine",
        "Jonas quit the bank and started at the bakery",
        "Jonas likes his job",
        *(f"Guest {n} came for lunch" for n in range(20)),
    )
    found = store.search("What profession did Jonas choose, is he a baker?", 3)
    assert found[0].file == "m1.md"


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
