"""Facts and ledger that are carried over between compactions."""

import time

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.entries import Compacted, Directed, Undone
from longhold.core.messages import Text, Thinking, ToolResult, ToolUse
from longhold.core.stages.compact.directives import DirectiveLedger
from longhold.core.stages.compact.facts_fold import FactsFold
from longhold.core.stages.facts.carried import MOST_STEPS
from longhold.core.stages.facts.tool_steps import gather
from longhold.core.view import fold
from longhold.session.importing.transcript_writer import TranscriptWriter

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Course:
    """A session that grows, turn by turn, and is compacted now and then."""

    def __init__(self):
        self.writer = TranscriptWriter()
        self.entries = []
        self.calls = 0

    def turn(self, text="go on"):
        self.entries.append(self.writer.write_message((Text(text=text),)))
        for name, given_input, output in (
            ("Read", {"file_path": f"/p/f{self.calls % 7}.py"}, "def a(): pass\n" * 50),
            ("Edit", {"file_path": f"/p/f{self.calls % 7}.py", "new_string": "b = 1"}, "ok"),
            ("Bash", {"command": "make"}, "ok\n" * 200),
            ("TodoWrite", {"todos": [{"content": text, "status": "pending"}]}, "ok"),
        ):
            self.calls += 1
            use = ToolUse(id=f"t{self.calls}", name=name, input=given_input)
            self.entries.append(self.writer.write_answer(f"r{self.calls}", (use,)))
            result = ToolResult(tool_use_id=use.id, content=output)
            self.entries.append(self.writer.ran(result))
        self.calls += 1
        said = (Thinking(thinking="The root cause is the lock in sync."), Text(text="Done."))
        self.entries.append(self.writer.write_answer(f"r{self.calls}", said))

    def compact(self, by="digest"):
        items = list(fold(self.entries).items)
        entry = Compacted(
            first=items[0].id, last=items[-1].id, summary=(Text(text="so far"),), by=by
        )
        self.entries.append(self.writer.write(entry))

    def read(self, facts):
        return facts.gather(self.entries, list(fold(self.entries).items))


@given(
    st.lists(st.sampled_from(["turn", "cancel", "compact", "model", "direct", "undo"]), max_size=14)
)
def test_a_fold_that_followed_says_what_one_that_begins_says(acts):
    course, carried = Course(), FactsFold()
    for act in acts:
        match act:
            case "turn":
                course.turn(f"build the export {course.calls}")
            case "cancel":
                course.turn("Never mind.")
            case "compact" | "model" if course.entries:
                course.compact(by="digest" if act == "compact" else "model")
            case "direct" if course.entries:
                done = Directed(message=1, state="done", rests_on=1, by="person")
                course.entries.append(course.writer.write(done))
            case "undo":
                made = [e for e in course.entries if isinstance(e, Compacted)]
                if made:
                    course.entries.append(course.writer.write(Undone(target=made[-1].n)))
        course.read(carried)
    assert course.read(carried) == course.read(FactsFold())


def test_the_first_time_nothing_is_shortened():
    course = Course()
    course.turn("one")
    course.turn("two")
    items = list(fold(course.entries).items)
    plain = gather(course.entries, items)
    assert course.read(FactsFold()).facts == plain
    assert course.read(FactsFold()).ledger == DirectiveLedger().follow(plain.words())


def test_what_was_compacted_before_is_carried_shorter_and_the_words_are_whole():
    course, carried = Course(), FactsFold()
    long = ("Keep every word of this. " * 100).strip()
    course.turn(long)
    course.compact()
    course.turn("next")
    facts, ledger = course.read(carried)
    assert [words.text for _, words in facts.words()] == [long, "next"]
    assert [each.text for each in ledger.directives] == [long, "next"]
    old, new = facts.turns
    assert sum(len(getattr(step, "text", "")) for step in old.steps) < 200
    assert any("def a()" in getattr(step, "text", "") for step in new.steps)


def test_a_secret_is_masked_in_what_is_carried():
    course, carried = Course(), FactsFold()
    course.turn(f"use {SECRET}")
    course.compact()
    course.turn(f"again {SECRET}")
    assert SECRET not in repr(course.read(carried))


def test_very_old_turns_keep_what_the_user_said():
    course, carried = Course(), FactsFold()
    for i in range(MOST_STEPS // 3):
        course.turn(f"wish {i}")
        if i % 10 == 9:
            course.compact()
            course.read(carried)
    facts, ledger = course.read(carried)
    assert len(ledger.directives) == MOST_STEPS // 3
    assert len(list(facts.steps())) < MOST_STEPS * 1.5
    assert "/p/f3.py" in {getattr(step, "path", "") for _, step in facts.steps()}


def test_a_late_compaction_reads_only_what_is_new():
    course, carried, times = Course(), FactsFold(), []
    for i in range(100):
        for _ in range(3):
            course.turn(f"wish {i}")
        course.compact()
        course.turn("more")
        items = list(fold(course.entries).items)
        began = time.process_time()
        carried.gather(course.entries, items)
        times.append(time.process_time() - began)
    early, late = sorted(times[10:40])[15], sorted(times[-30:])[15]
    assert late < early * 3
