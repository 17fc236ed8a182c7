"""Shared tasks: who may claim which, decided once for all agents."""

import contextlib
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from longhold.agent.subagents.tasks import (
    Task,
    TaskChange,
    TaskList,
    Unchanged,
    apply_change,
    claim_task,
)
from longhold.errors import StoreError


@pytest.fixture
def tasks(tmp_path):
    """Three tasks, the third waiting for the first two."""
    made = TaskList(tmp_path / "tasks.jsonl")
    made.create("one", "main")
    made.create("two", "main")
    made.create("three", "main", change=TaskChange(waits_for=("1", "2")))
    return made


def test_a_task_is_claimed_once(tasks):
    assert tasks.claim("ada", "1").owner == "ada"
    with pytest.raises(Unchanged, match="in progress with ada"):
        tasks.claim("ben", "1")


def test_the_oldest_free_task_is_taken(tasks):
    assert [tasks.claim(name).id for name in ("ada", "ben")] == ["1", "2"]
    with pytest.raises(Unchanged, match="No task can be claimed"):
        tasks.claim("cid")
    tasks.change("1", TaskChange(status="completed"), by="ada")
    with pytest.raises(Unchanged, match="waits for 2"):
        tasks.claim("cid", "3")
    tasks.change("2", TaskChange(status="deleted"), by="ben")
    assert tasks.claim("cid").id == "3"


def test_setting_a_task_in_progress_is_claiming_it(tasks):
    assert tasks.change("1", TaskChange(status="in_progress"), by="ada").owner == "ada"
    with pytest.raises(Unchanged, match="belongs to ada"):
        tasks.change("1", TaskChange(status="in_progress"), by="ben")
    with pytest.raises(Unchanged, match="waits for"):
        tasks.change("3", TaskChange(status="in_progress"), by="ben")


def test_only_the_owner_and_the_main_agent_change_what_somebody_has(tasks):
    tasks.claim("ada", "1")
    with pytest.raises(Unchanged, match="only ada or main"):
        tasks.change("1", TaskChange(status="completed"), by="ben")
    with pytest.raises(Unchanged, match="Only main assigns"):
        tasks.change("2", TaskChange(owner="ada"), by="ben")
    given = tasks.change("2", TaskChange(owner="ben"), by="main", is_lead=True)
    assert (given.owner, given.status) == ("ben", "pending")
    with pytest.raises(Unchanged, match="belongs to ben"):
        tasks.claim("ada", "2")
    assert tasks.claim("ben", "2").status == "in_progress"


def test_a_task_given_back_is_nobodys(tasks):
    tasks.claim("ada", "1")
    assert tasks.change("1", TaskChange(status="pending"), by="ada").owner == ""
    assert tasks.claim("ben", "1").owner == "ben"


def test_what_a_dead_agent_held_is_released(tasks):
    tasks.claim("ada", "1")
    tasks.claim("ben", "2")
    assert [task.id for task in tasks.release("ada")] == ["1"]
    owners = [task.owner for task in tasks.tasks().values()]
    assert owners == ["", "ben", ""]


def test_waiting_in_a_circle_is_refused(tasks):
    with pytest.raises(Unchanged, match="wait for itself"):
        tasks.change("1", TaskChange(waits_for=("1",)), by="main")
    with pytest.raises(Unchanged, match="wait for itself"):
        tasks.change("1", TaskChange(waits_for=("3",)), by="main")
    with pytest.raises(Unchanged, match="no task 9"):
        tasks.change("1", TaskChange(waits_for=("9",)), by="main")
    assert tasks.tasks()["1"].waits_for == ()


def test_blocking_is_waiting_seen_from_the_other_side(tasks):
    tasks.change("1", TaskChange(blocks=("2",)), by="main")
    assert tasks.tasks()["2"].waits_for == ("1",)
    waiting = [task.id for task in tasks.tasks().values() if "1" in task.waits_for]
    assert waiting == ["2", "3"]


def test_numbers_are_never_given_twice(tasks):
    tasks.change("3", TaskChange(status="deleted"), by="main")
    assert "3" not in tasks.tasks()
    assert tasks.create("four", "main").id == "4"


@pytest.mark.parametrize("subject", ["", "  ", "x" * 201])
def test_a_task_must_say_something_short(tasks, subject):
    with pytest.raises(StoreError, match="cannot hold that"):
        tasks.create(subject, "main")
    assert len(tasks.tasks()) == 3


def test_an_owner_is_a_name(tasks):
    with pytest.raises(StoreError, match="cannot hold that"):
        tasks.change("1", TaskChange(owner="a\n2. completed"), by="main", is_lead=True)
    assert tasks.tasks()["1"].owner == ""


def test_the_rules_give_every_task_that_becomes_different():
    known = {"1": Task(id="1", subject="a"), "2": Task(id="2", subject="b")}
    new = apply_change(known, "1", TaskChange(subject="c", blocks=("2",)), by="ada", is_lead=False)
    assert [(task.id, task.subject, task.waits_for) for task in new] == [
        ("1", "c", ()),
        ("2", "b", ("1",)),
    ]
    assert claim_task(known, "2", "ada").owner == "ada"


class TwoReaders(RuleBasedStateMachine):
    """Two agents at one list, against the rules told in a few words."""

    @initialize()
    def begin(self):
        self.directory = tempfile.TemporaryDirectory()
        path = Path(self.directory.name) / "tasks.jsonl"
        self.lists = {name: TaskList(path) for name in ("ada", "ben")}

    @rule(who=st.sampled_from(["ada", "ben"]), wait=st.sets(st.integers(1, 6), max_size=2))
    def create(self, who, wait):
        known = self.lists[who].tasks()
        if len(known) < 6:
            waits = tuple(str(id) for id in sorted(wait) if str(id) in known)
            self.lists[who].create("x", who, change=TaskChange(waits_for=waits))

    @rule(who=st.sampled_from(["ada", "ben"]), id=st.integers(1, 6))
    def claim(self, who, id):
        other = self.lists["ben" if who == "ada" else "ada"].tasks()
        task = other.get(str(id))
        free = (
            task is not None
            and task.status == "pending"
            and task.owner in ("", who)
            and all(w not in other or other[w].status == "completed" for w in task.waits_for)
        )
        try:
            self.lists[who].claim(who, str(id))
            assert free
        except Unchanged:
            assert not free

    @rule(
        who=st.sampled_from(["ada", "ben"]),
        id=st.integers(1, 6),
        status=st.sampled_from(["pending", "completed", "deleted"]),
    )
    def change(self, who, id, status):
        with contextlib.suppress(Unchanged):
            self.lists[who].change(str(id), TaskChange(status=status), by=who)

    @invariant()
    def both_see_the_same(self):
        if hasattr(self, "lists"):
            one, other = (each.tasks() for each in self.lists.values())
            assert one == other
            assert all(task.owner for task in one.values() if task.status == "in_progress")

    def teardown(self):
        if hasattr(self, "directory"):
            self.directory.cleanup()


test_two_agents_at_one_list = TwoReaders.TestCase

CLAIMER = """
import sys, pathlib
from longhold.agent.subagents.tasks import TaskList, Unchanged
tasks = TaskList(pathlib.Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
while True:
    try:
        print(tasks.claim(sys.argv[2]).id)
    except Unchanged:
        break
"""


def test_processes_that_claim_at_once_never_get_the_same_task(tmp_path):
    path = tmp_path / "tasks.jsonl"
    tasks = TaskList(path)
    for number in range(120):
        tasks.create(f"task {number}", "main")
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, str(path), f"w{n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    assert [child.stdout.readline() for child in children] == ["ready\n"] * 4
    for child in children:  # only now that all can begin
        child.stdin.write("go\n")
        child.stdin.flush()
    claims = Counter(id for child in children for id in child.communicate()[0].split())
    assert claims == {str(number): 1 for number in range(1, 121)}
