"""Deferred tools in a request: sent to models that support them, as text to others."""

from longhold.core.log.entries import Framed
from longhold.core.request.request import Caching, build
from longhold.core.request.tool_references import defer_tool, spell_out

TOOL = {"name": "ToolSearch", "input_schema": {"type": "object"}}
LATER = defer_tool({"name": "mcp__db__query", "input_schema": {"type": "object"}})
FOUND = {
    "role": "user",
    "content": [
        {
            "type": "tool_result",
            "tool_use_id": "t",
            "content": [{"type": "tool_reference", "tool_name": "mcp__db__query"}],
        }
    ],
}
PLAIN = {"role": "user", "content": [{"type": "text", "text": "hi"}]}


def request(model):
    frame = Framed(tools=(TOOL, LATER), cached=False)
    return build(frame, [PLAIN, FOUND], model=model, max_output_tokens=9, caching=Caching()).kwargs


def test_a_model_that_takes_references_gets_them():
    sent = request("claude-sonnet-5-5")
    assert sent["tools"] == [TOOL, LATER]
    assert sent["messages"] == [PLAIN, FOUND]


def test_another_model_reads_a_line_instead():
    sent = request("claude-opus-4-1")
    assert sent["tools"] == [TOOL]
    (block,) = sent["messages"][1]["content"]
    assert block["content"][0]["text"].startswith("mcp__db__query:")


def test_messages_without_references_stay_the_same_objects():
    assert spell_out([PLAIN])[0] is PLAIN
