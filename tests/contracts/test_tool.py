"""The contract of a tool: `longhold.core.tools.protocol.Tool`."""

import re

import msgspec

from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome


def test_its_name_and_schema_are_what_apis_accept(tool):
    assert re.fullmatch(r"[A-Za-z][\w-]{0,63}", tool.name)
    assert tool.description.strip()
    assert tool.input_schema["type"] == "object"
    assert msgspec.json.decode(msgspec.json.encode(tool.input_schema)) == tool.input_schema


def test_its_kind_is_one_that_clearing_knows(tool):
    assert tool.kind in ("read", "search", "shell", "fetch", "write", "ask", "other")


async def test_wrong_input_is_an_outcome_and_no_exception(tool, tmp_path):
    outcome = await tool.run(
        {"no such input": 1}, ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)
    )
    assert isinstance(outcome, Outcome)
    assert outcome.is_error
    assert outcome.content


def test_reading_only_is_decided_without_running(tool):
    assert tool.is_read_only({}) in (True, False)
