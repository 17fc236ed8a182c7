"""The scripted model."""

import pytest

from longhold.core.messages import Opaque, Text, Thinking, ToolUse, Usage
from longhold.core.models.protocol import Request, collect
from longhold.core.models.scripted import ScriptedAnswer, ScriptedModel, read_script
from longhold.errors import (
    ConfigError,
    ModelRefused,
    ModelUnavailable,
    PromptTooLong,
    RequestRejected,
    StreamBroken,
)


def request(*words):
    return Request(
        kwargs={"model": "m", "messages": [{"role": "user", "content": w} for w in words]}
    )


async def test_answers_come_in_order():
    model = ScriptedModel("text: one\n---\ntext: two")
    replies = [await collect(model.stream(request("a"))) for _ in range(2)]
    assert [reply.content for reply in replies] == [(Text(text="one"),), (Text(text="two"),)]
    assert [reply.stop_reason for reply in replies] == ["end_turn", "end_turn"]


async def test_the_end_of_the_script_is_said():
    model = ScriptedModel("text: one")
    await collect(model.stream(request("a")))
    with pytest.raises(RequestRejected, match="ended after 1 answers"):
        await collect(model.stream(request("a")))


async def test_made_up_ids_differ_between_conversations_and_never_flap():
    async def tool_id(*words):
        reply = await collect(ScriptedModel("tool: Now").stream(request(*words)))
        assert reply.stop_reason == "tool_use"
        return reply.content[0].id

    assert await tool_id("a") == await tool_id("a")
    assert await tool_id("a") != await tool_id("a", "b")


async def test_usage_is_given_or_estimated():
    said = await collect(ScriptedModel("text: a\nusage: input=5").stream(request("a")))
    short = await collect(ScriptedModel("text: a").stream(request("a")))
    long = await collect(ScriptedModel("text: a").stream(request("a" * 400)))
    assert said.usage == Usage(input_tokens=5)
    assert long.usage.input_tokens - short.usage.input_tokens == pytest.approx(100, abs=1)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("429", ModelUnavailable),
        ("529", ModelUnavailable),
        ("400", RequestRejected),
        ("broken", StreamBroken),
        ("refused", ModelRefused),
        ("too-long", PromptTooLong),
    ],
)
async def test_an_error_alone_fails_the_request(error, kind):
    with pytest.raises(kind):
        await collect(ScriptedModel(f"error: {error}").stream(request("a")))


async def test_an_error_after_blocks_breaks_the_answer():
    seen = []
    with pytest.raises(StreamBroken):
        async for event in ScriptedModel("text: a\nerror: 529").stream(request("a")):
            seen.append(type(event).__name__)
    assert seen == ["Started", "TextDelta", "BlockFinished"]


async def test_too_long_has_its_numbers():
    with pytest.raises(PromptTooLong) as caught:
        await collect(ScriptedModel("error: too-long 210 200").stream(request("a")))
    assert (caught.value.needed_tokens, caught.value.allowed_tokens) == (210, 200)


async def test_a_script_is_read_from_a_file(tmp_path):
    path = tmp_path / "talk.txt"
    path.write_text("text: hi")
    model = ScriptedModel.from_file(path)
    assert model.name == f"scripted:{path}"
    assert await model.count(request("a")) > 0


def test_a_missing_script_is_a_config_error(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        ScriptedModel.from_file(tmp_path / "nowhere.txt")


def test_every_line_of_the_language():
    script = """\
# a comment
think: hm
text: Let me look,
  and then some.
tool: Read {"path": "a: b"}
block: {"type": "hologram", "shape": "cube"}
usage: input=1 output=2 read=3 write=4
stop: max_tokens
"""
    assert read_script(script) == (
        ScriptedAnswer(
            blocks=(
                Thinking(thinking="hm", signature="scripted"),
                Text(text="Let me look,\nand then some."),
                ToolUse(id="", name="Read", input={"path": "a: b"}),
                Opaque(raw={"type": "hologram", "shape": "cube"}),
            ),
            usage=Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4),
            stop_reason="max_tokens",
        ),
    )


def test_indented_lines_keep_blank_lines_and_further_indentation():
    (answer,) = read_script("text: Like this:\n\n  def f():\n      return 1\n\nstop: end_turn\n")
    assert answer.blocks == (Text(text="Like this:\n\ndef f():\n    return 1"),)
    assert answer.stop_reason == "end_turn"


def test_answers_are_parted_by_dashes():
    assert [answer.error for answer in read_script("text: a\n---\nerror: 529\n---\n")] == [
        None,
        "529",
    ]


def test_an_empty_answer_between_separators_is_an_answer():
    assert read_script("---\ntext: a") == (
        ScriptedAnswer(),
        ScriptedAnswer(blocks=(Text(text="a"),)),
    )


def test_a_tool_without_input_has_an_empty_one():
    (answer,) = read_script("tool: Now")
    assert answer.blocks == (ToolUse(id="", name="Now", input={}),)


@pytest.mark.parametrize(
    "line",
    [
        "shout: hi",
        "no colon",
        "tool: Read {oops",
        "tool: Read [1]",
        "usage: in=1",
        "error: maybe",
        "error:",
    ],
)
def test_a_line_that_is_wrong_is_named_by_its_number(line):
    with pytest.raises(ConfigError, match="script line 2"):
        read_script(f"text: a\n{line}")
