"""The engine's account: the same in one step or many, with sections within their limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import Text, Thinking, ToolUse
from longhold.core.stages.notes.account import SessionAccount, engine_sections
from longhold.core.view.items import Result, Round, Spoken
from longhold.core.view.tokens import estimate_tokens

SECTION_TOKENS = 800


def said(n, text):
    return Spoken(id=n, order=n, content=(Text(text=text),))


def ran(n, tool, output="", is_error=False, text="", thought="", **given):
    use = ToolUse(id=f"t{n}", name=tool, input=given)
    blocks = (
        *((Thinking(thinking=thought),) if thought else ()),
        *((Text(text=text),) if text else ()),
    )
    result = Result(id=n + 1, tool_use_id=f"t{n}", content=output, is_error=is_error)
    return Round(id=n, order=n, response_id=f"r{n}", content=(*blocks, use), results=(result,))


def answered(n, text):
    return Round(id=n, order=n, response_id=f"r{n}", content=(Text(text=text),))


TODOS = [
    {"content": "Mend the login", "status": "in_progress"},
    {"content": "Read auth.py", "status": "completed"},
]
WORK = [
    said(1, "Fix the login. Keep the cookie."),
    ran(2, "Read", "def login(): ...", file_path="/src/auth.py"),
    ran(4, "Bash", "Exit code 1\nE KeyError: user", is_error=True, command="pytest -q"),
    ran(6, "TodoWrite", "ok", todos=TODOS),
    ran(
        8,
        "Edit",
        "ok",
        thought="The root cause is that the session has no user before the first request.",
        file_path="/src/auth.py",
        old_string="def login(): ...",
        new_string="def login(user=None): ...",
    ),
    ran(10, "Bash", "12 passed", command="pytest -q"),
    ran(12, "Bash", "[main 1a2b3c4d] Mend the login\n", command="git commit -am x"),
    answered(14, "The login works. Shall I push?"),
    said(15, "Yes, to the fork."),
]


def account(items=WORK):
    one = SessionAccount()
    one.follow(items)
    return one


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("Title", "Fix the login."),
        ("Current state", "- [in progress] Mend the login"),
        ("Current state", "the user last said [#15]: Yes, to the fork."),
        ("Task", "- T1 [#1]: Fix the login. Keep the cookie."),
        ("Files and functions", "- /src/auth.py: changed, read [#8]; login"),
        ("Workflow", "- `pytest -q` ×2, failed, last [#10]: 12 passed"),
        ("Errors and corrections", "KeyError: user Works since [#10]."),
        ("Learnings", "The root cause is"),
        ("Key results", "- commit 1a2b3c4d on main: Mend the login [#12]"),
        ("Key results", "The login works. Shall I push?"),
        ("Worklog", '- T1 [#1] "Fix the login. Keep the cookie.": changed auth.py'),
    ],
)
def test_each_section_tells_what_the_log_knows(section, line):
    assert line in engine_sections(account(), SECTION_TOKENS)[section]


def test_what_is_done_is_not_pending():
    assert "Read auth.py" not in engine_sections(account(), SECTION_TOKENS)["Current state"]


@given(cuts=st.sets(st.integers(0, len(WORK))))
def test_counted_bit_by_bit_it_comes_to_the_same(cuts):
    one = SessionAccount()
    for cut in sorted({*cuts, len(WORK)}):
        one.follow(WORK[:cut])
        one.follow(WORK[:cut])
    assert engine_sections(one, SECTION_TOKENS) == engine_sections(account(), SECTION_TOKENS)


def test_a_round_whose_tools_still_run_waits():
    use = ToolUse(id="t20", name="Bash", input={"command": "make"})
    still = Round(id=20, order=20, response_id="r20", content=(use,))
    one = account([*WORK, still])
    assert "make" not in one.commands
    done = Round(
        id=20,
        order=20,
        response_id="r20",
        content=(use,),
        results=(Result(id=21, tool_use_id="t20", content="built"),),
    )
    one.follow([*WORK, done])
    assert one.commands["make"].outcome == "built"


def test_a_round_that_was_interrupted_does_not_hold_up_the_rest():
    use = ToolUse(id="t20", name="Bash", input={"command": "make"})
    cut_off = Round(id=20, order=20, response_id="r20", content=(use,))
    assert (
        "It is done."
        in engine_sections(account([cut_off, answered(21, "It is done.")]), 800)["Worklog"]
    )


def test_secrets_are_masked():
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    lines = engine_sections(account([said(1, f"Use {token} to push.")]), SECTION_TOKENS)
    assert token not in str(lines)
    assert "[secret" in lines["Task"]


def test_each_section_stays_within_its_room():
    items = []
    for i in range(0, 4_000, 4):
        items += [said(i + 1, f"Task number {i} " + "word " * 40)]
        items += [
            ran(i + 2, "Read", "text", file_path=f"/src/{i}.py"),
            answered(i + 4, f"Done {i}."),
        ]
    lines = engine_sections(account(items), SECTION_TOKENS)
    assert all(estimate_tokens(text) <= 1.1 * SECTION_TOKENS for text in lines.values())
    assert "Done 3996." in lines["Worklog"] and "Done 0." not in lines["Worklog"]
