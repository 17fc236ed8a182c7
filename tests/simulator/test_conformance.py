"""The official Anthropic SDK against the simulator, over HTTP."""

import asyncio

import anthropic
import httpx2
import pytest

from longhold.simulator.brains import BrainAnswer, ScriptedBrain, text

MODEL = "claude-sonnet-5-5"
LONG = "the cache wants long prompts " * 150
HI = [{"role": "user", "content": "hi"}]
READ = {
    "name": "Read",
    "description": "Read a file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
SCRIPT = """
think: The file must be read first.
text: I will read the file now, and then tell you in one sentence what is in it.
tool: Read {"path": "notes.txt"}
---
text: It holds notes.
"""


def test_create(simulate, claude):
    client = claude(simulate(ScriptedBrain("text: hello")))
    message = client.messages.create(model=MODEL, max_tokens=100, messages=HI)
    assert (message.content[0].text, message.stop_reason) == ("hello", "end_turn")
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens > 0
    assert message._request_id.startswith("req_")


def test_stream_accumulates_to_the_created_message(simulate, claude):
    ask = {"model": MODEL, "max_tokens": 1000, "tools": [READ], "messages": HI}
    created = claude(simulate(ScriptedBrain(SCRIPT))).messages.create(**ask)
    with claude(simulate(ScriptedBrain(SCRIPT))).messages.stream(**ask) as stream:
        names = [event.type for event in stream]
        streamed = stream.get_final_message()
    assert [b.type for b in streamed.content] == ["thinking", "text", "tool_use"]
    plain = {"id", "parsed_output"}
    assert [b.model_dump(exclude=plain) for b in streamed.content] == [
        b.model_dump(exclude=plain) for b in created.content
    ]
    assert streamed.usage == created.usage
    assert streamed.stop_reason == created.stop_reason == "tool_use"
    assert names[0] == "message_start"
    assert names[-1] == "message_stop"
    assert "thinking" in names
    assert "input_json" in names


def test_raw_stream_order(simulate, claude):
    client = claude(simulate(ScriptedBrain("text: hello")))
    events = list(client.messages.create(model=MODEL, max_tokens=9, messages=HI, stream=True))
    assert [event.type for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[0].message.usage.input_tokens > 0
    assert events[-2].delta.stop_reason == "end_turn"


def test_a_tool_loop_with_thinking(simulate, claude):
    client = claude(simulate(ScriptedBrain(SCRIPT)))
    ask = {"model": MODEL, "max_tokens": 1000, "tools": [READ]}
    first = client.messages.create(**ask, messages=HI)
    use = first.content[-1]
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "notes"}
    second = client.messages.create(
        **ask, messages=[*HI, first.to_param(), {"role": "user", "content": [result]}]
    )
    assert second.content[0].text == "It holds notes."
    assert second.stop_reason == "end_turn"


def test_count_tokens_agrees_with_usage(simulate, claude):
    client = claude(simulate())
    ask = {"model": MODEL, "messages": HI, "system": LONG, "tools": [READ]}
    counted = client.messages.count_tokens(**ask)
    created = client.messages.create(**ask, max_tokens=10)
    assert counted.input_tokens == created.usage.input_tokens


def test_images_are_counted(simulate, claude):
    client = claude(simulate())
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    image = {"type": "image", "source": source}
    message = {"role": "user", "content": [image, {"type": "text", "text": "what is it?"}]}
    counted = client.messages.count_tokens(model=MODEL, messages=[message])
    assert counted.input_tokens > 1_600


def test_models(simulate, claude):
    client = claude(simulate())
    names = [model.id for model in client.models.list(limit=5)]
    assert {"claude-opus-5-5", "claude-haiku-4-5"} <= set(names)
    assert len(names) == len(set(names))
    found = client.models.retrieve("claude-haiku-4-5")
    assert (found.max_input_tokens, found.max_tokens) == (200_000, 64_000)
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("claude-nobody")


def test_the_cache_over_http(simulate, claude):
    client = claude(simulate())
    system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]

    def ask(**options):
        made = client.messages.create(
            model=MODEL, max_tokens=10, system=system, messages=HI, **options
        )
        return made.usage.cache_read_input_tokens, made.usage.cache_creation_input_tokens

    written = ask()[1]
    assert written > 512
    assert ask() == (written, 0)
    assert ask(extra_headers={"x-simulator-advance-seconds": "3600"}) == (0, written)


def test_keys_are_workspaces(simulate, claude):
    simulator = simulate()
    system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
    ask = {"model": MODEL, "max_tokens": 10, "system": system, "messages": HI}
    claude(simulator, key="one").messages.create(**ask)
    other = claude(simulator, key="two").messages.create(**ask)
    assert other.usage.cache_read_input_tokens == 0


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (403, anthropic.PermissionDeniedError),
        (404, anthropic.NotFoundError),
        (413, anthropic.APIStatusError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (504, anthropic.APIStatusError),
        (529, anthropic.APIStatusError),
    ],
)
def test_statuses_become_typed_errors(simulate, claude, status, error):
    client = claude(simulate(), max_retries=0)
    with pytest.raises(error) as raised:
        client.messages.create(
            model=MODEL,
            max_tokens=10,
            messages=HI,
            extra_headers={"x-simulator-fault": str(status)},
        )
    assert raised.value.status_code == status
    assert raised.value.body["type"] == "error"


def test_the_sdk_retries_and_obeys_retry_after(simulate, claude):
    simulator = simulate()
    client = claude(simulator)
    simulator.simulation.faults.plan({"queue": ["429:0.01", "529:0.01"]})
    message = client.messages.create(model=MODEL, max_tokens=100, messages=HI)
    assert message.stop_reason == "end_turn"
    statuses = simulator.simulation.stats.to_json()["totals"]["by_status"]
    assert statuses == {"429": 1, "529": 1, "200": 1}


def test_an_error_after_200(simulate, claude):
    client = claude(simulate(ScriptedBrain("text: hello")), max_retries=0)
    with (
        pytest.raises(anthropic.APIStatusError, match="Overloaded"),
        client.messages.stream(
            model=MODEL,
            max_tokens=10,
            messages=HI,
            extra_headers={"x-simulator-fault": "error_event:2"},
        ) as stream,
    ):
        stream.get_final_message()


def test_a_stream_in_single_bytes(simulate, claude):
    client = claude(simulate(ScriptedBrain("text: grüße")))
    with client.messages.stream(
        model=MODEL, max_tokens=10, messages=HI, extra_headers={"x-simulator-fault": "one_byte"}
    ) as stream:
        assert stream.get_final_text() == "grüße"


def test_a_stream_that_breaks(simulate, claude):
    client = claude(simulate(ScriptedBrain("text: hello")), max_retries=0)
    with (
        pytest.raises(Exception, match=r"(?i)incomplete|peer closed|connection"),
        client.messages.stream(
            model=MODEL, max_tokens=10, messages=HI, extra_headers={"x-simulator-fault": "cut:3"}
        ) as stream,
    ):
        stream.get_final_message()


def test_a_stream_that_stalls(simulate, claude):
    client = claude(simulate(ScriptedBrain("text: hello")), max_retries=0, timeout=0.3)
    with (
        pytest.raises(Exception, match=r"(?i)time"),
        client.messages.stream(
            model=MODEL, max_tokens=10, messages=HI, extra_headers={"x-simulator-fault": "stall:2"}
        ) as stream,
    ):
        stream.get_final_message()


def test_a_stream_that_ends_early(simulate, claude):
    client = claude(simulate(ScriptedBrain("text: hello")))
    with client.messages.stream(
        model=MODEL, max_tokens=10, messages=HI, extra_headers={"x-simulator-fault": "end_early:4"}
    ) as stream:
        assert stream.get_final_message().stop_reason is None


def test_refusals_in_the_api_s_words(simulate, claude):
    client = claude(simulate())
    with pytest.raises(anthropic.BadRequestError) as raised:
        client.messages.create(
            model="claude-haiku-4-5",
            max_tokens=10,
            messages=[{"role": "user", "content": "a " * 210_000}],
        )
    assert "prompt is too long: " in raised.value.message
    assert "tokens > 200000 maximum" in raised.value.message


def test_no_key_is_401(simulate):
    answer = httpx2.post(f"{simulate().url}/v1/messages", json={})
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "authentication_error"


def test_prewarming(simulate, claude):
    client = claude(simulate())
    system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
    ask = {"model": MODEL, "system": system, "messages": HI}
    warm = client.messages.create(**ask, max_tokens=0)
    assert (warm.content, warm.stop_reason, warm.usage.output_tokens) == ([], "max_tokens", 0)
    assert client.messages.create(**ask, max_tokens=10).usage.cache_read_input_tokens > 512


async def test_entries_are_readable_only_after_the_first_byte(simulate):
    class Gated:
        """Waits until three requests are in."""

        def __init__(self):
            self.waiting = 0
            self.complete = asyncio.Event()

        async def answer(self, request):
            self.waiting += 1
            if self.waiting == 3:
                self.complete.set()
            await self.complete.wait()
            return BrainAnswer(blocks=(text("done"),))

    simulator = simulate(Gated())
    system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
    async with anthropic.AsyncAnthropic(base_url=simulator.url, api_key="key") as client:

        async def reads():
            made = await client.messages.create(
                model=MODEL, max_tokens=10, system=system, messages=HI
            )
            return made.usage.cache_read_input_tokens

        assert await asyncio.gather(reads(), reads(), reads()) == [0, 0, 0]
        assert await reads() > 512


def test_two_tool_uses_with_one_id_are_refused(simulate, claude):
    use = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use, use]},
        {"role": "user", "content": [result]},
    ]
    client = claude(simulate())
    with pytest.raises(anthropic.BadRequestError, match="must be unique"):
        client.messages.create(model=MODEL, max_tokens=10, messages=messages)
