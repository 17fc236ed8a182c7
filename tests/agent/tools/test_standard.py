"""The standard tools as a whole."""

from longhold.agent.tools.standard import STANDARD
from longhold.core.tools.describe import description_of


def test_tools_are_sorted_so_that_requests_never_differ_by_order():
    names = [tool.name for tool in STANDARD]
    assert names == sorted(names)
    assert len(set(names)) == len(names)


def test_limits_are_those_that_were_decided():
    limits = {tool.name: tool.limit_chars for tool in STANDARD}
    assert (limits["Bash"], limits["Grep"], limits["Read"]) == (30_000, 20_000, None)
    assert limits["Glob"] == limits["WebFetch"] == limits["Edit"] == 50_000


def test_declared_inputs_exist():
    for tool in STANDARD:
        properties = tool.input_schema["properties"]
        declared = {*tool.path_inputs, *filter(None, [tool.command_input])}
        assert declared <= set(properties)


def test_a_definition_is_what_a_request_lists():
    for tool in STANDARD:
        assert list(tool.definition()) == ["name", "description", "input_schema"]
        assert tool.description


def test_our_own_tools_are_described_as_they_declare_themselves():
    for tool in STANDARD:
        known = description_of(tool.name)
        assert (known.kind, known.path_inputs, known.command_input, known.limit_chars) == (
            tool.kind,
            tool.path_inputs,
            tool.command_input,
            tool.limit_chars,
        )
