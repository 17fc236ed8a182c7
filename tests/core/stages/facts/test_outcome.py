"""The lines of an output that show how a command ended."""

from longhold.core.stages.facts.outcome import (
    CommitLine,
    commits_in,
    error_head,
    find_total,
    has_failed,
    only_looks,
    telling_lines,
    tree_in,
    without_pipes,
)


def test_short_output_is_told_whole():
    assert telling_lines("ok\n  3 passed\n", 80) == "ok 3 passed"


def test_long_output_is_told_by_failures_and_totals():
    noise = "\n".join(f"compiling part {i} of the whole program" for i in range(40))
    output = f"{noise}\nFAIL: test_login\n{noise}\n1 failed, 30 passed\n{noise}\nthe end"
    assert telling_lines(output, 200) == "FAIL: test_login … 1 failed, 30 passed"


def test_packages_that_passed_are_counted():
    output = "\n".join(f"ok  \texample.org/app/part{i}\t(cached)" for i in range(30))
    assert telling_lines(f"[test] $ go test ./...\n{output}", 200) == "30 packages ok"


def test_commits_are_read_with_their_hashes():
    assert commits_in("noise\n[main (root-commit) 3f9c2ab] Begin\n 1 file changed") == [
        CommitLine(hash="3f9c2ab", branch="main", subject="Begin")
    ]


def test_an_error_is_told_by_its_beginning_and_its_telling_line():
    text = "Exit code 1\n" + "setting things up\n" * 30 + "main.go:3:1: undefined: strings"
    assert error_head(text, 140).endswith(" things … main.go:3:1: undefined: strings")


def test_an_error_is_told_by_where_it_went_wrong_before_that_it_went_wrong():
    text = "Exit code 1\n" + "set up\n" * 30 + "[lint] ERROR task failed\napp/a.go:3:1: bad (vet)\n"
    assert error_head(text, 140).endswith("… app/a.go:3:1: bad (vet)")


def test_failure_is_seen_where_the_status_hides_it():
    assert has_failed("ok a\n--- FAIL: TestX\n")
    assert has_failed("error: cannot find module\n")
    assert has_failed("14 doctests, 297 tests, 11 failures\n")
    assert has_failed("5 issues:\n* errcheck: 2\n[lint] ERROR task failed\n")
    assert not has_failed("14 doctests, 297 tests, 0 failures\n")
    assert not has_failed("0 errors, nothing failed\n")


def test_the_working_tree_is_read_from_git_status():
    status = (
        "On branch main\nChanges not staged for commit:\n  (use git add)\n\tmodified:   a.py\n"
        "\tdeleted:    b.py\n\nUntracked files:\n  (use git add)\n\tnotes/c.md\n"
    )
    assert tree_in(status) == "modified a.py; deleted b.py; untracked notes/c.md"
    assert tree_in("On branch main\nnothing to commit, working tree clean\n") == ""
    assert tree_in("a\tmodified: b\n") == ""


def test_a_place_is_told_with_the_message_on_the_next_line():
    noise = "Finding suitable tables\n" * 20
    text = f"Check failed\n{noise}lib/a.ex:57:13:pattern_match\nThe pattern can never match.\n"
    assert error_head(text, 200).endswith(
        "lib/a.ex:57:13:pattern_match The pattern can never match."
    )


def test_a_log_line_is_not_the_place_of_a_problem():
    noise = "set up\n" * 30 + "hooks.go:155: 12:36:12 INFO stop\n"
    text = f"Exit code 1\n{noise}--- FAIL: TestResume (0.46s)\n    resume_test.go:276: bad output\n"
    assert error_head(text, 180).endswith("(0.46s) resume_test.go:276: bad output")


def test_commands_that_only_look_are_known():
    assert only_looks("cd /a && git log --oneline")
    assert not only_looks("git commit -m 'x'")


def test_the_test_that_failed_is_named_before_the_places_it_passed():
    noise = "set up\n" * 30 + "hooks.go:155: output\n"
    text = f"Exit code 1\n{noise}--- FAIL: TestResume (0.46s)\nFAIL\n"
    assert error_head(text, 180).endswith("… --- FAIL: TestResume (0.46s) hooks.go:155: output")


def test_the_message_at_a_place_comes_before_the_package_that_failed():
    output = "# app\nFAIL\tapp/cmd [build failed]\ncmd/a.go:141:9: no new variables on left side of :=\nok app/b"
    assert error_head(output * 3, 100).startswith("cmd/a.go:141:9: no new variables on left side")


def test_a_listing_is_told_by_its_total():
    output = " a.py | 24 ++\n b.py | 26 ++-\n 2 files changed, 48 insertions(+), 2 deletions(-)\n"
    assert find_total(output) == "2 files changed, 48 insertions(+), 2 deletions(-)"
    assert find_total("a.py\nb.py") == ""


def test_pipes_that_only_bound_the_output_are_not_part_of_a_command():
    assert without_pipes("make test 2>&1 | tail -20") == "make test"
    assert without_pipes("make test | grep FAIL") == "make test | grep FAIL"
