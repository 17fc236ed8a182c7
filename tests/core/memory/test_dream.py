"""A dream without a model: what it merges, marks and fixes, and what it must never do."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.memory.branch import Branch, MemoryRules
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.dream import dream, list_unsound, merge_branch, tidy_branch
from longhold.core.memory.dreaming import DreamLock
from longhold.core.memory.memory import Memory, MemoryRefused
from longhold.core.memory.provenance import sources_of
from longhold.core.memory.store import MemoryStore
from longhold.core.settings import DreamSettings

SETTINGS = DreamSettings()
TUESDAY = "Deploys of the billing service go out on Tuesday nights after the backup"


def memory(file, description, at=1_000.0, **more):
    """A memory written at a moment."""
    return Memory(file=file, name=file, description=description, created=at, modified=at, **more)


@pytest.fixture
def repository(tmp_path):
    """A repository with one file."""
    place = tmp_path / "repo"
    place.mkdir()
    (place / "a.py").write_text("x = 1\n")
    return place


def test_duplicates_become_one_that_rests_on_the_evidence_of_both(store, write, repository):
    write(
        memory("old.md", TUESDAY, 1_000.0, evidence=("s1#1",)),
        memory("new.md", TUESDAY, 2_000.0, evidence=("s2#4",)),
        memory("other.md", "See how", body="As [told](new.md).\n"),
    )
    report = dream(store, SETTINGS, repository=repository)
    assert report.merged == {"new.md": "old.md"}
    kept = store.memory("old.md")
    assert (kept.evidence, kept.created, kept.modified) == (("s1#1", "s2#4"), 1_000.0, 2_000.0)
    assert store.memory("other.md").body == "As [told](old.md).\n"
    (stone,) = store.history.tombstones()
    assert (stone.file, stone.by, stone.reason) == ("new.md", "dream", "old.md contains all of it")


def test_a_contradicted_memory_is_marked_and_leaves_the_index(store, write, repository):
    write(
        memory("a.md", "The staging database is db-7", 1_000.0, evidence=("s1#1",)),
        memory("b.md", "The staging database is now db-9", 2_000.0),
    )
    report = dream(store, SETTINGS, repository=repository)
    assert report.superseded == {"a.md": "b.md"}
    assert store.memory("a.md").superseded_by == "b.md"
    assert store.memory("b.md").supersedes == ("a.md",)
    assert "a.md" not in store.index() and "b.md" in store.index()


def test_what_a_memory_says_it_supersedes_is_marked(store, write, repository):
    write(
        memory("a.md", "Ann reviews", 1_000.0),
        memory("b.md", "Reviews go round", 2_000.0, supersedes=("a.md",)),
    )
    assert dream(store, SETTINGS, repository=repository).superseded == {"a.md": "b.md"}


def test_a_forgotten_successor_does_not_stop_later_dreams(store, write, repository):
    write(
        memory("a.md", "The staging database is db-7", 1_000.0),
        memory("b.md", "The staging database is now db-9", 2_000.0),
        memory("c.md", "Reviews go round", supersedes=("never.md",)),
    )
    dream(store, SETTINGS, repository=repository)
    change = MemoryChange(file="b.md", text=None, expected=store.version("b.md"), reason="wrong")
    store.commit([change], by="person", why="wrong")
    report = dream(store, SETTINGS, repository=repository)
    assert (report.repaired, store.memory("a.md").superseded_by) == (("a.md",), "")
    assert report.line == "1 with links, marks or sources corrected"


def test_a_dead_link_becomes_words(store, write, repository):
    body = "See [the plan](plan.md), [code](a.py) and [docs](readme.md).\n"
    (repository / "readme.md").write_text("x")
    write(memory("a.md", "Links", body=body))
    dream(store, SETTINGS, repository=repository)
    assert store.memory("a.md").body == (
        "See the plan (plan.md is gone), [code](a.py) and [docs](readme.md).\n"
    )


def test_links_are_read_from_where_the_memory_lies(store, write, repository):
    body = (
        "[a](b.md) [b](./b.md#how) [c](../top.md#x) [d](ops/b.md) [e](../ops/b.md) [f](no.md#y)\n"
    )
    write(
        memory("ops/a.md", "Links", body=body),
        memory("ops/b.md", "Beside"),
        memory("top.md", "Above"),
    )
    dream(store, SETTINGS, repository=repository)
    assert store.memory("ops/a.md").body == body.replace("[f](no.md#y)", "f (no.md#y is gone)")


def test_a_relative_link_follows_a_merged_memory(store, write, repository):
    write(
        memory("old.md", TUESDAY, 1_000.0),
        memory("ops/new.md", TUESDAY, 2_000.0),
        memory("ops/a.md", "Links", body="As [told](new.md).\n"),
    )
    dream(store, SETTINGS, repository=repository)
    assert store.memory("ops/a.md").body == "As [told](../old.md).\n"


def test_changed_sources_are_named_until_they_match_again(store, write, repository):
    told = memory("a.md", "How x is set in a.py, unlike ../escape.py")
    write(replace(told, sources=sources_of(told, repository)))
    assert store.memory("a.md").sources.keys() == {"a.py"}
    (repository / "a.py").write_text("x = 2\n")
    assert dream(store, SETTINGS, repository=repository).repaired == ("a.md",)
    assert store.memory("a.md").more["stale"] == ["a.py"]
    (repository / "a.py").write_text("x = 1\n")
    dream(store, SETTINGS, repository=repository)
    assert "stale" not in store.memory("a.md").more


def test_a_dream_is_one_commit_that_undo_takes_back(store, write, repository):
    write(memory("a.md", TUESDAY), memory("b.md", TUESDAY, 2_000.0))
    before = {path.name: path.read_bytes() for path in store.root.glob("*.md")}
    report = dream(store, SETTINGS, repository=repository)
    assert report.commit.id == store.history.head == 2
    store.undo()
    assert {path.name: path.read_bytes() for path in store.root.glob("*.md")} == before


def test_what_the_user_took_back_is_not_dreamt_again(store, write, repository):
    write(memory("a.md", TUESDAY), memory("b.md", TUESDAY, 2_000.0))
    dream(store, SETTINGS, repository=repository)
    store.undo()
    assert dream(store, SETTINGS, repository=repository).commit is None
    write(memory("b.md", TUESDAY, 3_000.0), memory("a.md", TUESDAY, 2_500.0))
    assert dream(store, SETTINGS, repository=repository).merged


def test_a_trial_changes_nothing_and_shows_all(store, write, repository):
    write(memory("a.md", TUESDAY), memory("b.md", TUESDAY, 2_000.0))
    trial = dream(store, SETTINGS, repository=repository, is_trial=True)
    assert trial.commit is None and store.history.head == 1
    assert trial.diff == dream(store, SETTINGS, repository=repository).diff != ""


def test_a_trial_says_what_would_be_left_out(store, write, repository):
    write(memory("a.md", "Ann reviews", 1_000.0), memory("b.md", "Bob deploys", 2_000.0))
    rules = MemoryRules(settings=replace(SETTINGS, removed_floor=1), repository=repository)
    branch = Branch(store)
    branch.remove("a.md", "old")
    branch.remove("b.md", "old")
    trial = tidy_branch(branch, rules)
    assert trial.dropped == {
        "b.md": "only 1 of 2 memories may be removed at a time, or lose most of their words (dream.removed_share)"
    }
    assert (trial.commit, trial.merged) == (None, {"a.md": ""})


def test_a_second_dream_finds_nothing_to_do(store, write, repository):
    write(
        memory("a.md", TUESDAY),
        memory("b.md", TUESDAY, 2_000.0),
        memory("c.md", "The port of the api is 1", 1_000.0),
        memory("d.md", "The port of the api is 2", 2_000.0),
    )
    assert dream(store, SETTINGS, repository=repository).commit
    assert dream(store, SETTINGS, repository=repository).commit is None


def test_no_dream_takes_more_than_its_share(store, write, repository):
    settings = DreamSettings(removed_share=0.2, removed_floor=1)
    write(*(memory(f"m{n}.md", TUESDAY, 1_000.0 + n) for n in range(10)))
    assert len(dream(store, settings, repository=repository).merged) == 2
    assert len(store.versions()) == 8


def test_the_index_is_ordered_by_use(store, write, repository):
    write(memory("a.md", "one"), memory("b.md", "two"))
    store.count_uses({"b.md": 1})
    assert store.index().startswith("- [b.md]")


def test_a_dream_that_fails_puts_the_lock_back(store, write, repository, clock):
    write(memory("a.md", "See", body="[x](../../../b.md)\n"))
    lock = DreamLock(store.root, clock=clock)
    with pytest.raises(RuntimeError), lock.hold():
        raise RuntimeError("killed")
    assert lock.look().last == 0.0
    with lock.hold():
        assert dream(store, SETTINGS, repository=repository).commit
    assert lock.look().last == clock.at


def test_the_check_finds_dangling_links(store, write):
    write(memory("a.md", "one"))
    branch = Branch(store)
    branch.put(memory("b.md", "two", body="[x](nowhere.md) [y](a.md)\n"))
    assert list_unsound(branch, store.root) == ["b.md links to nowhere.md, which does not exist"]


def test_the_check_finds_a_rewritten_memory_without_its_evidence(store, write):
    write(memory("a.md", "one", evidence=("s1#1",)), memory("b.md", "two", evidence=("s1#2",)))
    branch = Branch(store)
    branch.put(memory("a.md", "one again"))
    branch.remove("b.md", "old")
    assert list_unsound(branch, store.root) == ["a.md loses evidence: s1#1"]


def test_a_branch_that_fails_its_check_is_not_merged(store, write):
    write(memory("a.md", "one"))
    branch, rules = Branch(store), MemoryRules(settings=SETTINGS, repository=store.root)
    report = tidy_branch(branch, rules)
    branch.put(memory("a.md", "two", body="[x](nowhere.md)\n"))
    with pytest.raises(MemoryRefused, match=r"nothing was changed: a.md links to nowhere.md"):
        merge_branch(branch, rules, report)
    assert store.memory("a.md").description == "one"


def test_the_check_finds_a_mark_that_leads_nowhere(store, write):
    write(memory("a.md", "one"))
    branch = Branch(store)
    branch.put(replace(memory("a.md", "one"), superseded_by="gone.md"))
    assert "superseded by gone.md" in list_unsound(branch, store.root)[0]


VOCABULARY = ("api", "db", "port", "web", "now", "is", "not", "the", "1", "2", "no", "longer")
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=8)


@given(st.lists(st.tuples(WORDS, st.integers(1, 5)), min_size=1, max_size=8))
def test_whatever_there_is_a_dream_passes_its_own_checks(tmp_path_factory, told):
    place = tmp_path_factory.mktemp("dream")
    memories = [
        memory(f"m{n}.md", " ".join(words) or "x", 1_000.0 * at, evidence=(f"s#{n}",))
        for n, (words, at) in enumerate(told)
    ]
    with MemoryStore(place / "memory") as store:
        branch = Branch(store)
        for one in memories:
            branch.put(one)
        branch.merge(by="agent", why="x")
        dream(store, SETTINGS, repository=place)
        after = store.memories()
        assert {e for one in after for e in one.evidence} == {
            e for m in memories for e in m.evidence
        }
        said = {word for one in after for word in one.description.split()}
        assert said == {word for one in memories for word in one.description.split()}
        marked = {one.superseded_by for one in after if one.superseded_by}
        assert marked <= {one.file for one in after}
