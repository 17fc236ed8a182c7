"""What single sections choose to tell: files, errors, the course of turns, conclusions, tasks."""

from dataclasses import replace

from longhold.core.stages.compact.digest import FactPieces
from longhold.core.stages.compact.digest.context import DigestContext
from longhold.core.stages.compact.digest.files import group_edits
from longhold.core.stages.compact.digest.state import failures
from longhold.core.stages.facts.gist import conclusions
from longhold.core.stages.facts.tool_steps import extract

PLENTY = 6_000


def told(talk, budget=PLENTY):
    """Tell a conversation."""
    return FactPieces(facts=extract(talk.items)).digest(budget)


def section(talk, n):
    """Give the lines of one section."""
    text = told(talk)
    return text.split(f"## {n}. ")[1].split("\n\n## ")[0].splitlines()[1:]


def test_files_are_ordered_by_how_often_they_were_changed(talk):
    for path, times in (("/p/one.py", 1), ("/p/three.py", 3), ("/p/two.py", 2)):
        for _ in range(times):
            talk.call("Edit", "ok", file_path=path, old_string="a", new_string="b")
    talk.call("Edit", "no such file", is_error=True, file_path="/p/four.py", new_string="b")
    assert [edits.path for edits in group_edits(extract(talk.items))] == [
        "/p/three.py",
        "/p/two.py",
        "/p/one.py",
    ]


def test_read_files_are_listed_by_directory(talk):
    for path in ("/p/src/a.py", "/p/src/b.py", "/p/src/b.py", "/p/doc/c.txt", "/p/src/d.py"):
        talk.call("Read", "text", file_path=path)
    assert section(talk, 3) == ["- read: b.py ×2, a.py, d.py", "- read: /p/doc/: c.txt"]


def test_an_error_that_works_later_says_so(talk):
    talk.call("Bash", "Exit code 1\nboom", is_error=True, command="make a")
    talk.call("Bash", "Exit code 1\nboom", is_error=True, command="make b")
    n = talk.call("Bash", "fine", command="make a")
    assert [(t.what, t.mended) for t in failures(extract(talk.items))] == [
        ("make a", n),
        ("make b", 0),
    ]


def test_the_same_error_is_told_once_with_its_count(talk):
    for _ in range(3):
        talk.call("Edit", "File has not been read yet.", is_error=True, file_path="/a.py")
    assert section(talk, 4) == ["- T0 [#3] `change /a.py`: File has not been read yet. (×3)"]


def test_a_refusal_stands_among_the_errors_and_among_the_words(talk):
    talk.user("ship it")
    talk.call("Bash", "Not allowed: wait for Anna.", refused="wait for Anna", command="deploy")
    assert section(talk, 4) == ["- T1 [#2] `Bash deploy`: Not allowed: wait for Anna."]
    assert section(talk, 6)[-1] == "T1 [#2] User, refusing `Bash deploy`: wait for Anna"


def test_announcements_are_left_out_and_findings_are_kept(talk):
    talk.user("go")
    talk.answer("Let me look.")
    talk.answer("I see. The cache is never filled, because the key has a date in it.")
    talk.answer("All done.")
    assert section(talk, 6) == [
        "T1 [#1] User: go",
        "- said [#3]: The cache is never filled, because the key has a date in it.",
        "- said [#4]: All done.",
    ]


def test_the_last_answer_of_a_turn_is_told_at_length(talk):
    long = " ".join(f"Point {i} is that it matters." for i in range(60))
    talk.user("explain")
    talk.answer(long)
    talk.answer(long)
    first, last = section(talk, 6)[1:]
    assert len(first) < 300
    assert last == f"- said [#3]: {long}"


def test_what_an_approved_plan_demands_is_told(talk):
    talk.user("plan it")
    talk.call("ExitPlanMode", "User has approved your plan.", plan="# Move\n\n- first the table\n")
    assert "Plan approved by the user in T1 [#2]:\nMove:\n- first the table" in told(talk)


def test_a_document_nobody_pointed_at_is_only_a_file(talk):
    talk.user("go")
    talk.call("Read", "# Notes\n" + "Something. " * 80, file_path="/p/notes.md")
    assert "pointed at" not in told(talk)


def test_a_ticket_the_user_named_a_command_for_is_told_by_what_it_demands(talk):
    talk.user("Run tracker show 12 and do what it says.")
    talk.call("Bash", "# Ticket 12\n\n- rename it\n" + "more " * 100, command="tracker show 12")
    lead = (
        "The user pointed at `tracker show 12`, read in T1 [#2]; it says:\nTicket 12:\n- rename it"
    )
    assert lead in told(talk)


def test_a_ticket_that_a_ticket_points_at_binds_as_well(talk):
    talk.user("Work on shop-7.")
    epic = "# Epic shop-7\n\nThe export.\n\n## Tasks\n\n- shop-7.1: write it\n" + "about it " * 30
    task = "# Task\n\nWhy.\n\n## No-gos\n\n- never write `db.py`\n" + "about it " * 30
    talk.call("Bash", epic, command="tracker show shop-7")
    talk.call("Bash", task, command="tracker show shop-7.1")
    talk.call("Bash", task, command="tracker show other-9")
    said = told(talk)
    assert "pointed at `tracker show shop-7.1`" in said
    assert "No-gos:\n- never write `db.py`" in said
    assert "other-9`, read in" not in said


def test_conclusions_are_sentences_that_say_so():
    thought = (
        "Let me check the handler for the root cause. Is the problem is in the parser perhaps? "
        "The real issue is that the lock is taken twice in close()."
    )
    assert conclusions(thought, 200) == (
        "The real issue is that the lock is taken twice in close().",
    )


def test_what_runs_in_the_background_is_pending(talk):
    talk.call("Bash", "Runs in the background as sh-7.", command="serve", run_in_background=True)
    assert section(talk, 7) == ["- in the background, not heard to have ended: sh-7 [#1] serve"]


def test_paths_are_shortened_by_the_directory_most_lie_in(talk):
    for name in ("a.py", "b.py", "c.py"):
        talk.call("Read", "x", file_path=f"/home/u/app/src/{name}")
    talk.call("Read", "x", file_path="/tmp/log.txt")
    scene = DigestContext(facts=extract(talk.items))
    assert scene.root == "/home/u/app/src"
    assert scene.short("/home/u/app/src/a.py") == "a.py"
    assert scene.short("/tmp/log.txt") == "/tmp/log.txt"


def test_messages_compacted_before_are_told_after_new_ones(talk):
    talk.user("old wish")
    talk.answer("An old answer. " + "It says a good many things about the old wish. " * 8)
    since = talk.user("new wish")
    talk.answer("A new answer. " + "It says a good many things about the new wish. " * 8)
    facts = replace(extract(talk.items), since=since)
    text = FactPieces(facts=facts).digest(300)
    assert "old wish" in text
    assert "A new answer" in text
    assert "An old answer" not in text


def test_a_short_reply_is_told_with_the_question_it_answers(talk):
    talk.user("look at it")
    talk.answer("There is a bug. Want me to fix it?")
    talk.user("yes")
    talk.answer("Fixed. Push it?")
    talk.user("No, wait for the review of Anna and then merge it into the release branch.")
    lines = section(talk, 6)
    assert 'T2 [#3] User, asked "Want me to fix it?": yes' in lines
    assert lines[-1].startswith("T3 [#5] User: No, wait for")


def test_a_constant_is_told_with_the_value_it_was_set_to_last(talk):
    for old, new in (("20", "50"), ("50", "100")):
        talk.call(
            "Edit", "ok", file_path="/p/a.go",
            old_string=f"const maxRows = {old}", new_string=f"const maxRows = {new}",
        )  # fmt: skip
    assert "set maxRows = 100" in section(talk, 3)[0]
    assert "maxRows = 50" not in section(talk, 3)[0]


def test_a_short_look_is_told_with_what_it_showed(talk):
    talk.call("Bash", "3f3384a\nCheckpoint: f2ad525b80cd", command="git log -1")
    talk.call("Bash", "line\n" * 200, command="git status")
    assert section(talk, 6)[1:] == [
        "- `git log -1` → 3f3384a Checkpoint: f2ad525b80cd [#1]",
        "- `git status` ok [#2]",
    ]


def test_a_document_the_agent_wrote_is_no_specification(talk):
    talk.user("Write notes.md.")
    talk.call("Write", "ok", file_path="/p/notes.md", content="# Notes")
    talk.user("Is notes.md complete?")
    talk.call("Read", "# Notes\n" + "Something. " * 80, file_path="/p/notes.md")
    assert "pointed at" not in told(talk)


def test_an_error_that_still_stands_is_told_before_one_that_was_mended(talk):
    talk.user("go")
    talk.call("Bash", "Exit code 1\nlint: bad import order", is_error=True, command="make lint")
    talk.call("Bash", "ok", command="make lint")
    talk.call("Bash", "Exit code 1\nFAILED test_resume", is_error=True, command="make check")
    text = told(talk, 200)
    assert "FAILED test_resume" in text
    assert "bad import order" not in text


def test_of_many_conclusions_in_a_turn_the_last_count(talk):
    talk.user("find it")
    for i in range(6):
        talk.think(f"The problem is that part {i} of the machine is not as it should be.")
    text = told(talk, 260)
    assert "part 5" in text
    assert "part 0" not in text


def test_a_commit_that_was_looked_at_is_told_with_its_author(talk):
    log = "commit 3f9c2ab1\nAuthor: Ines Ruiz <i@x.org>\nDate:   now\n\n    Round sums\n"
    other = "commit 77aa11bb\nAuthor: Bo Li <b@x.org>\n\n    Other\n"
    talk.call("Bash", f"{log}\n{other}", command="git log -S round")
    talk.answer("It was 3f9c2ab.")
    assert "- T0 [#1] looked at 3f9c2ab by Ines Ruiz: Round sums" in section(talk, 5)
    assert "77aa11b" not in "".join(section(talk, 5))


def test_the_neighbours_of_a_changed_function_are_named(talk):
    code = "def before(): pass\n\ndef changed(): pass\n\ndef after(): pass\n"
    talk.call("Read", code, file_path="/p/a.py")
    talk.call("Edit", "ok", file_path="/p/a.py", old_string="def changed(): pass", new_string="x")
    assert "touched changed; beside before, after" in section(talk, 3)[0]


def test_the_last_command_is_told_with_its_result_and_the_branch(talk):
    talk.call("Bash", "On branch ann/export\nnothing to commit", command="git status")
    talk.call("Bash", "FAILED test_a - assert 1 == 2", is_error=True, command="make check")
    talk.think("Only test_a is left: the fixture counts from one.")
    state = section(talk, 8)
    assert "- on branch ann/export" in state
    assert "- last command [#2]: `make check` failed: FAILED test_a - assert 1 == 2" in state
    assert any("last thought [#3]: Only test_a is left" in line for line in state)


def test_explanations_stand_in_order_and_the_last_one_holds(talk):
    talk.user("why?")
    talk.answer("The problem is the index.")
    talk.user("there is one")
    talk.answer("Right. The actual cause is the lock in sync.")
    lines = section(talk, 5)
    assert lines[0] == "Explanations in the order they were given; the last one stands:"
    assert lines[1:3] == [
        "- T1 [#2] The problem is the index.",
        "- T2 [#4] The actual cause is the lock in sync.",
    ]
