"""Tools are declared by a type, and answer any input."""

from typing import Annotated

import pytest
from msgspec import Meta, Struct

from longhold.core.tools.protocol import Input, Outcome, Refused, make_tool, schema_of


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A part."""

    size: int


class Given(Input, frozen=True, kw_only=True):
    """An input."""

    name: Annotated[str, Meta(description="Who.")]
    parts: tuple[Part, ...] = ()
    count: int = 1


def _tool(does, **more):
    return make_tool("Skill", Given, does, kind="other", **more)


async def _echo(given, _tool_context):
    return Outcome(content=f"{given.name} {given.count}")


def test_the_schema_is_written_out_without_references():
    assert schema_of(Given) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who."},
            "parts": {
                "type": "array",
                "default": [],
                "items": {
                    "type": "object",
                    "properties": {"size": {"type": "integer"}},
                    "required": ["size"],
                    "additionalProperties": False,
                },
            },
            "count": {"type": "integer", "default": 1},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


async def test_a_number_written_as_text_is_taken_for_a_number(tool_context):
    outcome = await _tool(_echo).run({"name": "x", "count": "3"}, tool_context)
    assert outcome.content == "x 3"


@pytest.mark.parametrize(
    "given",
    [{}, {"name": 1}, {"name": "x", "nonsense": 1}, {"name": "x", "parts": [{"size": "big"}]}],
)
async def test_a_wrong_input_is_told_and_not_run(given, tool_context):
    outcome = await _tool(_echo).run(given, tool_context)
    assert outcome.is_error
    assert "wrong input" in outcome.content


@pytest.mark.parametrize("text", ["a\0b", "half \ud83d"])
async def test_a_text_that_no_file_can_hold_is_refused(text, tool_context):
    for given in ({"name": text}, {"name": "x", "parts": [{"size": text}]}):
        outcome = await _tool(_echo).run(given, tool_context)
        assert "zero byte or half a character" in outcome.content


async def test_a_name_that_is_no_text_is_written_out(tool_context):
    async def name(_given, _tool_context):
        return Outcome(content="x\udcff.txt", note="\udcff")

    outcome = await _tool(name).run({"name": "x"}, tool_context)
    assert (outcome.content, outcome.note) == ("x\\udcff.txt", "\\udcff")


async def test_an_error_of_the_system_becomes_a_result(tool_context):
    async def fail(_given, _tool_context):
        raise PermissionError(13, "Permission denied", "/x")

    outcome = await _tool(fail).run({"name": "x"}, tool_context)
    assert outcome == Outcome(
        content="Skill failed: permission denied: /x.",
        is_error=True,
        note="Skill failed: permission denied: /x.",
    )


async def test_a_refusal_becomes_a_result_with_one_line_for_the_user(tool_context):
    async def refuse(_given, _tool_context):
        raise Refused("Not this.\nBecause.")

    outcome = await _tool(refuse).run({"name": "x"}, tool_context)
    assert (outcome.content, outcome.note) == ("Not this.\nBecause.", "Not this.")


def test_whether_a_call_changes_anything_may_depend_on_its_input():
    tool = _tool(_echo, is_read_only=lambda given: given.count == 1)
    assert tool.is_read_only({"name": "x"})
    assert not tool.is_read_only({"name": "x", "count": 2})
    assert tool.is_read_only({"count": 2})
