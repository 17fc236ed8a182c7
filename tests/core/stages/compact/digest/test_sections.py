"""The content of single sections: files, errors, turns, conclusions, tasks."""

import tracemalloc
from dataclasses import replace

from longhold.core.stages.compact.digest import FactPieces
from longhold.core.stages.compact.digest.context import DigestContext, find_failures
from longhold.core.stages.compact.digest.files import group_edits
from longhold.core.stages.facts.carried import demands
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
    assert section(talk, 3) == ["- read: b.py ×2, a.py, d.py; /p/doc/: c.txt"]


def test_an_error_that_works_later_says_so(talk):
    talk.call("Bash", "Exit code 1\nboom", is_error=True, command="make a")
    talk.call("Bash", "Exit code 1\nboom", is_error=True, command="make b")
    n = talk.call("Bash", "fine", command="make a")
    assert [(t.what, t.mended) for t in find_failures(extract(talk.items))] == [
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
    assert "Plan approved by the user in T1 [#2]:\n| Move:\n| - first the table" in told(talk)


def test_a_document_nobody_pointed_at_is_only_a_file(talk):
    talk.user("go")
    talk.call("Read", "# Notes\n" + "Something. " * 80, file_path="/p/notes.md")
    assert "pointed at" not in told(talk)


def test_a_ticket_the_user_named_a_command_for_is_told_by_what_it_demands(talk):
    talk.user("Run tracker show 12 and do what it says.")
    talk.call("Bash", "# Ticket 12\n\n- rename it\n" + "more " * 100, command="tracker show 12")
    lead = "The user pointed at `tracker show 12`, read in T1 [#2]; it says:\n| Ticket 12:\n| - rename it"
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
    assert "No-gos:\n| - never write `db.py`" in said
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
    text = FactPieces(facts=facts).digest(240)
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
    text = told(talk, 125)
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


def test_the_last_command_is_told_with_its_result_and_the_branch(talk):
    talk.call("Bash", "On branch ann/export\nnothing to commit", command="git status")
    talk.call("Bash", "FAILED test_a - assert 1 == 2", is_error=True, command="make check")
    talk.think("Only test_a is left: the fixture counts from one.")
    state = section(talk, 8)
    assert "- on branch ann/export" in state
    assert "- last command [#2]: `make check` failed, see section 4" in state
    assert any("FAILED test_a - assert 1 == 2" in line for line in section(talk, 4))
    assert any("last thought [#3]: Only test_a is left" in line for line in state)


def test_explanations_stand_in_order_and_the_last_one_holds(talk):
    talk.user("why?")
    talk.answer("The problem is the index.")
    talk.user("there is one")
    talk.answer("Right. The actual cause is the lock in sync.")
    lines = section(talk, 5)
    assert lines[0] == "Explanations in the order they were given; the last one stands:"
    assert lines[1:3] == [
        "| T1 [#2] The problem is the index.",
        "| T2 [#4] The actual cause is the lock in sync.",
    ]


def test_a_short_output_is_told_before_the_whole_of_a_command(talk):
    talk.user("which version?")
    talk.call("Bash", "v18.2.1", command="node --version && " + "true && " * 30 + "true")
    brief = FactPieces(facts=extract(talk.items)).digest(330)
    assert "→ v18.2.1 [#2]" in brief


def test_a_failed_command_points_at_nothing_that_may_be_left_out(talk):
    talk.user("test it")
    talk.call("Bash", "Exit code 1\nFAIL", command="make test", is_error=True)
    assert "- `make test` failed [#2]" in section(talk, 6)
    assert "see 4" not in FactPieces(facts=extract(talk.items)).digest(5_000)


def test_the_line_that_names_a_problem_is_told_with_its_count(talk):
    noise = "\n".join(f"checking package number {n} of the project" for n in range(40))
    talk.user("lint it")
    talk.call(
        "Bash",
        f"{noise}\nsrc/api.ts(12,5): TS2322 wrong type\n1 issues:\n* type: 1",
        command="lint",
    )
    assert any("TS2322 wrong type" in line for line in section(talk, 6))


def test_a_small_edit_is_told_by_what_replaced_what(talk):
    talk.user("slower")
    old = "def wait():\n    sleep(1)\n    return True"
    talk.call("Edit", "ok", file_path="/p/a.py", old_string=old, new_string=old.replace("1", "30"))
    assert "- edited a.py [#2]: `sleep(1)` → `sleep(30)`" in section(talk, 6)


def test_an_explanation_is_told_with_its_reason(talk):
    talk.user("why?")
    talk.answer("The problem is the index.")
    talk.user("really?")
    talk.answer("The actual cause is the lock. It is taken twice when a row is retried. Bye then.")
    assert any(
        line.endswith("The actual cause is the lock. It is taken twice when a row is retried.")
        for line in section(talk, 5)
    )


def test_what_an_open_task_demands_comes_before_a_finished_one(talk):
    body = "\n".join(f"- must keep rule {n} of NAME as it is written here" for n in range(12))
    for name in ("old", "new"):
        talk.user(f"Follow {name}.md")
        rules = body.replace("NAME", name)
        talk.call("Read", f"# {name}\n## Rules\n{rules}", file_path=f"/p/{name}.md")
        talk.answer("Done.")
    talk.user("go on")
    text = FactPieces(facts=extract(talk.items), marks={4: "done"}).digest(440)
    assert text.count("of old as it is") > text.count("of new as it is")


def test_texts_that_a_document_prescribes_come_first():
    lines = [f"- `value_{n}` must be used" for n in range(20)]
    shown = demands("\n".join((*lines, '- must say "No results for this week"')), 200)
    assert '"No results for this week"' in shown


def test_repeated_runs_of_a_command_are_one_line(talk):
    talk.user("commit it")
    first = talk.call("Bash", "Pre-commit: FAILED", is_error=True, command="git commit -m x")
    talk.call("Bash", "fine", command="make format")
    last = talk.call("Bash", "[main 3f9c2ab] x", command="git commit -m x")
    talk.answer("Committed.")
    runs = [line for line in section(talk, 6) if "git commit" in line]
    assert runs == [
        f"- `git commit -m x` → [main 3f9c2ab] x [#{last}], run ×1 before, failed [#{first}]"
    ]


def test_each_call_of_an_open_turn_has_its_own_line(talk):
    talk.user("try it")
    calls = [talk.call("Bash", "no", command="make a") for _ in range(3)]
    assert all(f"[#{n}]" in line for n, line in zip(calls, section(talk, 6)[1:], strict=True))


def test_what_is_not_committed_is_told(talk):
    status = "On branch main\nChanges not staged:\n\tmodified:   a.py\n"
    talk.user("go")
    n = talk.call("Bash", status, command="git status")
    assert f"- not committed, by git status [#{n}]: modified a.py" in section(talk, 8)
    talk.call("Bash", "[main 3f9c2ab] x\n 1 file changed", command="git commit -am x")
    assert not any("not committed" in line for line in section(talk, 8))


def test_a_message_that_the_next_one_repeats_is_told_once(talk):
    asked = (
        "Please add logging to each step that can fail, so that it is visible why data is missing."
    )
    talk.user(asked)
    talk.user(f"{asked} Also log what is calculated.")
    text = told(talk)
    assert text.count("why data is missing") == 1
    assert f"{asked} Also log what is calculated." in text


def test_an_explanation_is_not_repeated_as_a_remark(talk):
    talk.user("why?")
    talk.answer("The problem is the index of the table.")
    talk.call("Bash", "x", command="make a")
    talk.answer("The actual cause is the lock in `retry_row`.")
    talk.call("Bash", "x", command="make b")
    talk.answer("Done.")
    assert told(talk).count("the lock in `retry_row`") == 1


def test_what_the_agent_announced_last_is_told_whole(talk):
    talk.user("fix the logs")
    steps = " ".join(f"{i}. `handle_{i}()`, after it has read its input." for i in range(1, 7))
    places = f"Now let me add it to each handler: {steps}"
    n = talk.answer(places)
    talk.call("Edit", "ok", file_path="/p/a.py", old_string="a", new_string="b")
    assert f"- said [#{n}]: {places}" in section(talk, 6)


def test_a_closed_ticket_gives_way_to_the_open_one(talk):
    lines = "\n".join(f"- must keep `rule_{i}` as it is" for i in range(40))
    talk.user("Do ABC-1 and then ABC-2.")
    talk.call("Bash", f"# Ticket\n## Rules\n{lines}", command="tracker show ABC-1")
    talk.call("Bash", "closed", command="tracker close ABC-1")
    talk.call(
        "Bash", f"# Ticket\n## Rules\n{lines}\n- never touch db.py", command="tracker show ABC-2"
    )
    text = FactPieces(facts=extract(talk.items)).digest(900)
    before, current = text.split("The user pointed at `tracker show ABC-2`")
    assert current.count("rule_") > 2 * before.count("rule_")
    assert "never touch db.py" in current


def test_an_edit_is_told_by_its_new_lines(talk):
    talk.user("import it")
    old = "import a\nimport b\nimport c"
    talk.call("Edit", "ok", file_path="/p/a.py", old_string=old, new_string=f"{old}\nimport d")
    assert "- edited a.py [#2]: put in `import d`" in section(talk, 6)


def test_in_a_small_size_a_plan_outranks_the_open_turns_calls(talk):
    rules = "\n".join(f"- must keep `rule_{n}` as it is" for n in range(20))
    talk.user("Do what plan.md says.")
    talk.call("Read", f"# Plan\n## Rules\n{rules}", file_path="/p/plan.md")
    reads = [talk.call("Read", "x", file_path=f"/p/part_{n}.py") for n in range(80)]
    last = talk.call("Edit", "ok", file_path="/p/a.py", old_string="a = 1", new_string="a = 2")
    pieces = FactPieces(facts=extract(talk.items))
    small, reserved = pieces.digest(700), pieces.digest(700, words_tokens=20)
    assert small.count("must keep `rule_") > 10 > reserved.count("must keep `rule_")
    assert "calls of the open turn left out" in small
    assert f"- edited a.py [#{last}]: `a = 1` → `a = 2`" in small
    listed = [n for n in reads if f"[#{n}]" in reserved]
    assert len(listed) > 20 > len([n for n in reads if f"[#{n}]" in small])


def test_in_a_small_size_a_paste_is_told_by_its_failing_line(talk):
    log = "\n".join(f"2026-01-01 10:00:{n:02} INFO step {n} done" for n in range(30))
    failed = "--- FAIL: TestReload (0.1s)"
    talk.user(f"why does this fail?\n{log}\n{failed}\n{log}")
    talk.answer("The port is taken.")
    talk.user("go on")
    text = FactPieces(facts=extract(talk.items)).digest(300)
    assert "why does this fail?" in text and failed in text
    assert "61 pasted lines: " in text and "step 12 done" not in text


def test_in_a_small_size_standing_words_from_before_remain(talk):
    asked = "Run the linter first and tell me what it reports about the two new modules, please."
    talk.user(f"{asked} {asked}")
    talk.user(f"{asked} Never touch the generated files in dist.")
    since = talk.user("now the tests, " + "and the pages that describe them, " * 12)
    facts = replace(extract(talk.items), since=since)
    text = FactPieces(facts=facts).digest(165)
    assert "T2 [#2] User: Never touch the generated files in dist." in text
    assert "T1" not in text.partition("## 6")[2]


def test_what_new_code_says_to_people_is_told(talk):
    asked = '    return confirm("Overwrite the local log with the newer one?", "y")'
    code = "\n".join(("def ask():", *(f"    step_{n}()" for n in range(60)), asked))
    talk.user("ask before")
    n = talk.call("Write", "ok", file_path="/p/ask.py", content=code)
    line = f'- wrote ask.py [#{n}]: ask, "Overwrite the local log with the newer one?"'
    assert line in FactPieces(facts=extract(talk.items)).digest(160)


def test_a_failure_is_told_with_what_the_agent_said_next(talk):
    talk.user("run it")
    said = "The issue is that `.entire/` files count as the user's."
    talk.call("Bash", "FAIL: expected 0 lines", is_error=True, command="make test | tail -40")
    talk.answer(said)
    n = talk.call("Bash", "ok", command="make test | tail -5")
    talk.answer("It works.")
    told_error = section(talk, 4)[0]
    assert told_error.endswith(f"Said next [#3]: {said} Worked later [#{n}].")
    assert not any(said in line for line in section(talk, 6)), "it is told once"


def test_in_a_small_size_only_the_last_run_of_a_kind_is_told(talk):
    talk.user("Do what is left.")
    runs = [
        talk.call("Bash", f"{n} passed, as listed above", command=f"npm run test -- part_{n}")
        for n in range(11, 51)
    ]
    talk.answer("Done.")
    small = told(talk, 420)
    assert f"→ 50 passed, as listed above [#{runs[-1]}]" in small
    assert sum(f"[#{n}]" in small for n in runs) < len(runs) / 2


def test_settings_without_definitions_are_told_by_their_new_names(talk):
    talk.user("configure it")
    new = 'exporter: "OTLP_ENDPOINT",\nprotocol: :http_protobuf,\nbatch_size: 512\n'
    talk.call("Write", "ok", file_path="/p/runtime.exs", content=new)
    assert 'put in "OTLP_ENDPOINT", http_protobuf, batch_size, 512' in section(talk, 3)[0]


def test_a_path_with_very_many_directories_takes_little_memory(talk):
    talk.call("Read", "x", file_path="/home/u/" + "a/" * 200_000)
    tracemalloc.start()
    root = DigestContext(facts=extract(talk.items)).root
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert root.startswith("/home/u/a") and peak < 20_000_000
