"""A model's exact input before and after a compaction. `make golden` rewrites it."""

from pathlib import Path

from longhold.core.log.entries import Ran, Replied, Said
from longhold.core.messages import Text, ToolUse
from longhold.core.stages.compact.compose import Manner, compose, gather_material
from longhold.core.stages.compact.segment import whole_segment
from longhold.core.stages.compact.summary import HEADINGS, Written, ask_for_summary
from longhold.core.view import fold
from regions import check_golden

HERE = Path(__file__).parent


def said(n, text):
    return Said(n=n, content=(Text(text=text),))


def called(n, name, given, result, is_error=False):
    use = ToolUse(id=f"t{n}", name=name, input=given)
    yield Replied(n=n, response_id=f"r{n}", content=(use,), stop_reason="tool_use")
    yield Ran(n=n + 1, tool_use_id=f"t{n}", content=result, is_error=is_error)


EDIT = {"file_path": "/repo/auth.py", "old_string": "session[k]", "new_string": "session.get(k)"}
HISTORY = [
    said(1, "Fix the login: it raises KeyError 'user'. Never touch the cookie format."),
    *called(
        2,
        "Read",
        {"file_path": "/repo/auth.py"},
        "1\tdef user(session, k):\n2\t    return session[k]",
    ),
    *called(4, "Edit", EDIT, "Edited /repo/auth.py."),
    *called(
        6,
        "Bash",
        {"command": "pytest -q tests/test_auth.py"},
        "Exit code 1\nE   KeyError: 'user'\n1 failed",
        True,
    ),
    Replied(
        n=8,
        response_id="r8",
        content=(Text(text="The fixture has no user either."),),
        stop_reason="end_turn",
    ),
    said(9, "Use the fixture from conftest.py then."),
    Replied(n=10, response_id="r10", content=(Text(text="Done."),), stop_reason="end_turn"),
]
WRITTEN = Written(
    text="\n\n".join(
        f"## {n}. {title}\nWhat the model says of {title.lower()}." for n, title in HEADINGS.items()
    )
)


def material():
    view = fold(HISTORY)
    return gather_material(HISTORY, whole_segment(view), 20_000)


def test_what_a_model_is_asked():
    directives = material().ledger.directives
    check_golden(
        HERE / "compaction_asked.txt",
        ask_for_summary(focus=("the cookie",), directives=directives) + "\n",
    )


def test_what_stands_for_history_with_a_model():
    manner = Manner(log="/logs/session.jsonl", has_history=True)
    check_golden(HERE / "compaction_summary.txt", compose(material(), WRITTEN, manner).text + "\n")
