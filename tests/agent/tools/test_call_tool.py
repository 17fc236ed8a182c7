"""A call through CallTool is a call of the named tool."""

import pytest

from longhold.core.messages import ToolUse, text_of
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import CALL_TOOL, unwrap_call


def test_the_inner_call_is_meant():
    use = ToolUse(id="t", name="CallTool", input={"name": "mcp__db__query", "input": {"q": 1}})
    assert unwrap_call(use) == ToolUse(id="t", name="mcp__db__query", input={"q": 1})


@pytest.mark.parametrize(
    "use",
    [
        ToolUse(id="t", name="Read", input={"name": "x", "input": {}}),
        ToolUse(id="t", name="CallTool", input={"name": "x"}),
        ToolUse(id="t", name="CallTool", input={"name": "x", "input": "{}"}),
        ToolUse(id="t", name="CallTool", input={"name": "CallTool", "input": {}}),
    ],
    ids=["another tool", "no input", "text as input", "itself"],
)
def test_any_other_call_is_left_alone(use):
    assert unwrap_call(use) is use


async def test_a_malformed_call_says_what_is_wrong(tmp_path):
    context = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)
    outcome = await CALL_TOOL.run({"name": "x"}, context)
    assert outcome.is_error
    assert "input" in text_of(outcome.content)
