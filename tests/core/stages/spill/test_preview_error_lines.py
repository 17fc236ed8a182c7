"""Lines that look like errors: which count, and how they are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages.secrets import mask_secrets
from longhold.core.stages.spill.spill import error_lines

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@given(st.lists(st.sampled_from(["ok", "error: x", "Traceback", "0 errors", "E   assert"])))
def test_error_lines_are_numbered_as_they_stand(lines):
    found, count = error_lines("\n".join(lines), 10_000)
    wanted = {}
    for number, line in enumerate(lines, 1):
        if line not in ("ok", "0 errors"):
            wanted.setdefault(line, number)
    assert found == [f"{number}: {line}" for line, number in wanted.items()]
    assert count == len(wanted)


def test_where_not_all_errors_fit_the_first_and_the_last_do():
    text = "\n".join(f"error number {n}" for n in range(1_000))
    found, count = error_lines(text, 120)
    assert found == [
        "1: error number 0",
        "2: error number 1",
        "3: error number 2",
        "999: error number 998",
        "1000: error number 999",
    ]
    assert count == 1_000


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: bad",
        "  File.java:3: error: ';' expected",
        "E       assert 1 == 2",
        "FAILED tests/test_a.py::test_b",
        "Tests run: 10, Failures: 2, Errors: 0, Skipped: 0",
        "=== 2 failed, 98 passed, 0 errors in 3s ===",
        "0 failures, 3 errors",
        "2 failing",
        "# fail 2",
        "error rate of errors: 0.5",
        "thread 'main' panicked at src/main.rs:2",
        "bash: foo: command not found",
        "Traceback (most recent call last):",
        "fatal: not a git repository",
        "npm ERR! cannot find module",
        "Segmentation fault (core dumped)",
    ],
)
def test_what_looks_like_an_error(line):
    assert error_lines(line, 1_000)[1] == 1


@pytest.mark.parametrize(
    "line",
    [
        "src/errors.py",
        "0 errors, 0 warnings",
        "no failures",
        "failed=0 changed=3",
        "Tests run: 10, Failures: 0, Errors: 0, Skipped: 0",
        "=== 98 passed, 0 failed, no errors in 3s ===",
        "# fail 0",
        "error_handler.go is formatted",
        "tests/test_error.py .....",
        "12 passed",
    ],
)
def test_what_does_not(line):
    assert error_lines(line, 1_000)[1] == 0


def test_capitals_are_read_in_any_alphabet():
    assert error_lines("İstanbul\nFAILED: Errors: 3\n", 1_000) == (["2: FAILED: Errors: 3"], 1)


@pytest.mark.parametrize("at", range(140, 201, 10))
def test_a_secret_across_the_cut_of_a_line_is_masked(at):
    [line], _ = error_lines(f"error: {'x' * (at - 8)} {KEY} end", 1_000, mask=mask_secrets)
    assert KEY[:8] not in line and len(line) <= 203


def test_a_secret_at_the_end_of_what_is_read_of_a_line_is_not_shown():
    line = "error: " + f"{KEY} " * 60
    [shown], _ = error_lines(line, 1_000, mask=mask_secrets)
    assert KEY[:8] not in shown and "[secret: github-pat]" in shown
