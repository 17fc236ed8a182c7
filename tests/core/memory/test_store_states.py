"""The store against a simple model: any operations in any order, by two writers and by hand.

No update is lost, undo is exact, the index is within its limits and every line of it resolves.
"""

import re
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from longhold.core.memory import memory as index
from longhold.core.memory.branch import Branch
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import INDEX_LINE_CHARS, MemoryConflict, NoSuchMemory
from longhold.core.memory.store import MemoryStore

FILES = st.sampled_from([f"m{n}.md" for n in range(12)] + ["ops/x.md", "ops/y.md"])
TEXTS = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=30).map(
    lambda text: f"# {text}\n"
)
WRITERS = st.integers(0, 1)


@pytest.fixture(autouse=True)
def few_lines(monkeypatch):
    monkeypatch.setattr(index, "INDEX_LINES", 10)
    monkeypatch.setattr(index, "INDEX_BYTES", 1_000)


class StoreMachine(RuleBasedStateMachine):
    """Two open stores of one directory, and what must be in it."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.stores = [self.opened(), self.opened()]
        self.model: dict[str, str] = {}
        self.states: list[tuple[int, dict[str, str], str]] = []
        self.commits: dict[int, tuple[dict[str, str], dict[str, str]]] = {}

    def opened(self) -> MemoryStore:
        return MemoryStore(self.place / "memory")

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        shutil.rmtree(self.place)

    def note(self, before: dict[str, str]) -> None:
        head = self.stores[0].history.head
        if head not in self.commits and before != self.model:
            self.commits[head] = (before, dict(self.model))

    def index_on_disk(self) -> str:
        path = self.place / "memory" / "MEMORY.md"
        return path.read_text() if path.exists() else ""

    @rule(who=WRITERS, file=FILES, text=TEXTS)
    def write(self, who, file, text):
        """A writer that read the current version writes."""
        before, store = dict(self.model), self.stores[who]
        change = MemoryChange(file=file, text=text, expected=store.version(file))
        store.commit([change], by="agent", why="write")
        self.model[file] = text
        self.note(before)

    @rule(who=WRITERS, file=FILES, text=TEXTS)
    def write_late(self, who, file, text):
        """A writer that read before the other one wrote gets a conflict, and nothing is lost."""
        late = self.stores[who]
        seen = late.version(file)
        self.write(1 - who, file, f"{text}first\n")
        if self.stores[0].version(file) == seen:
            return
        try:
            late.commit([MemoryChange(file=file, text=text, expected=seen)], by="dream", why="late")
        except MemoryConflict:
            return
        raise AssertionError("an update was lost")

    @rule(who=WRITERS, file=FILES)
    def remove(self, who, file):
        """A memory goes, and leaves a tombstone with its text."""
        before, store = dict(self.model), self.stores[who]
        gone = self.model.pop(file, None)
        change = MemoryChange(file=file, text=None, expected=store.version(file), reason="gone")
        store.commit([change], by="person", why="remove")
        self.note(before)
        if gone is not None:
            stones = {stone.file: stone for stone in store.history.tombstones()}
            assert store.history.text(stones[file].version) == gone

    @rule(who=WRITERS)
    def write_and_undo(self, who):
        """A set of changes and its undo leave what was there."""
        store, index = self.stores[who], self.index_on_disk()
        changes = [
            MemoryChange(file=file, text=None, expected=store.version(file), reason="x")
            for file in list(self.model)[:2]
        ]
        changes.append(MemoryChange(file="undone.md", text="x\n", expected=""))
        store.commit(changes, by="dream", why="to be undone")
        self.stores[1 - who].undo()
        assert sorted(self.index_on_disk().split("\n")) == sorted(index.split("\n"))

    @rule(who=WRITERS, pick=st.integers(0, 30))
    def undo_any(self, who, pick):
        """Any commit can be taken back unless its files changed since."""
        if not self.commits:
            return
        id = sorted(self.commits)[pick % len(self.commits)]
        was, became = self.commits[id]
        touched = {f for f in {*was, *became} if was.get(f) != became.get(f)}
        is_free = all(self.model.get(f) == became.get(f) for f in touched)
        is_done = all(self.model.get(f) == was.get(f) for f in touched)
        before = dict(self.model)
        try:
            self.stores[who].undo(id)
        except MemoryConflict:
            assert not is_free
            return
        except NoSuchMemory:
            assert is_done
            return
        for file in touched:
            self.model.pop(file, None)
            if file in was:
                self.model[file] = was[file]
        self.note(before)

    @rule(file=FILES, text=TEXTS)
    def change_by_hand(self, file, text):
        """A person edits a file; the next look takes it in."""
        before = dict(self.model)
        path = self.place / "memory" / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self.model[file] = text
        self.stores[0].adopt()
        self.note(before)

    @rule(who=WRITERS, files=st.lists(FILES, max_size=4), text=TEXTS)
    def merge_branch(self, who, files, text):
        """A branch happens at once."""
        before, branch = dict(self.model), Branch(self.stores[who])
        changes = [MemoryChange(file=file, text=text, expected="") for file in set(files)]
        branch.change(changes)
        branch.merge(by="dream", why="merge")
        self.model |= dict.fromkeys(files, text)
        self.note(before)

    @rule(who=WRITERS)
    def open_again(self, who):
        """A store says the same after it was closed."""
        self.stores[who].close()
        self.stores[who] = self.opened()

    @invariant()
    def holds_what_the_model_holds(self):
        """Both writers and the disk agree with the model."""
        root = self.place / "memory"
        for store in self.stores:
            assert {file: store.read(file) for file in store.versions()} == self.model
        on_disk = {
            path.relative_to(root).as_posix(): path.read_text()
            for path in root.rglob("*.md")
            if path.name != "MEMORY.md"
        }
        assert on_disk == self.model

    @invariant()
    def the_index_is_in_its_limits_and_every_line_resolves(self):
        """Whatever was done."""
        index = self.index_on_disk()
        assert len(index.splitlines()) <= 10 and len(index.encode()) <= 1_000
        assert all(len(line) < INDEX_LINE_CHARS for line in index.splitlines())
        assert set(re.findall(r"\]\(([^()\s]+\.md)\)", index)) <= self.model.keys()


StoreMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
TestStore = StoreMachine.TestCase
