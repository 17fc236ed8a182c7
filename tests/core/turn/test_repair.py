"""Results for calls that a dead process left open."""

import pytest

from longhold.core.log.entries import Began, Configured, Imported, Ran, Replied, Said
from longhold.core.messages import Text, ToolUse
from longhold.core.turn.repair import INTERRUPTED, MAY_HAVE_RUN, NOT_RUN, plan_repair
from longhold.core.view import fold


def replied(n, *ids):
    uses = tuple(ToolUse(id=id, name="charge", input={}) for id in ids)
    return Replied(n=n, response_id=f"r{n}", content=uses, stop_reason="tool_use")


SAID = Said(n=1, content=(Text(text="go"),))
OPEN = (SAID, replied(2, "a", "b"))
PROGRAMS = (Configured(n=3),)


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        (OPEN, [NOT_RUN, NOT_RUN]),
        ((*OPEN, Began(n=3, tool_use_id="a")), [INTERRUPTED, NOT_RUN]),
        ((*OPEN, *PROGRAMS), [MAY_HAVE_RUN, MAY_HAVE_RUN]),
        ((*OPEN, *PROGRAMS, Began(n=4, tool_use_id="a")), [INTERRUPTED, NOT_RUN]),
        ((*OPEN, Imported(n=3, format="codex", source="x")), [MAY_HAVE_RUN, MAY_HAVE_RUN]),
        ((*OPEN, Ran(n=3, tool_use_id="a", content="ok")), [MAY_HAVE_RUN]),
        ((SAID,), []),
    ],
    ids=["agent", "agent began", "program", "program began", "import", "ran unannounced", "none"],
)
def test_a_denial_is_only_made_where_beginnings_are_recorded(entries, told):
    assert [ran.content for ran in plan_repair(fold(entries))] == told
