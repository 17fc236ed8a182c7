"""The official OpenAI SDK against the simulator, over HTTP."""

import openai
import pytest

from longhold.core.models.capabilities import capabilities
from longhold.simulator.brains import ScriptedBrain

MODEL = "gpt-6-sol"
LONG = {"role": "system", "content": "the cache wants long prompts " * 400}
HI = {"role": "user", "content": "hi"}
READ = {
    "type": "function",
    "function": {"name": "Read", "parameters": {"type": "object", "properties": {}}},
}
SCRIPT = """
text: I will read it, since that is what was asked, and then report.
tool: Read {"path": "notes.txt"}
---
text: It holds notes.
"""


def test_create(simulate, gpt):
    client = gpt(simulate(ScriptedBrain("text: hello")))
    made = client.chat.completions.create(model=MODEL, messages=[HI])
    assert (made.choices[0].message.content, made.choices[0].finish_reason) == ("hello", "stop")
    assert made.usage.total_tokens == made.usage.prompt_tokens + made.usage.completion_tokens


def test_a_tool_loop(simulate, gpt):
    brain = ScriptedBrain(SCRIPT)
    client = gpt(simulate(brain))
    first = client.chat.completions.create(model=MODEL, messages=[HI], tools=[READ])
    call = first.choices[0].message.tool_calls[0]
    assert (call.function.name, call.function.arguments) == ("Read", '{"path":"notes.txt"}')
    assert first.choices[0].finish_reason == "tool_calls"
    result = {"role": "tool", "tool_call_id": call.id, "content": "notes"}
    said = first.choices[0].message.model_dump(exclude_none=True)
    second = client.chat.completions.create(model=MODEL, messages=[HI, said, result], tools=[READ])
    assert second.choices[0].message.content == "It holds notes."
    assert brain.requests[1].messages[2]["content"][0]["type"] == "tool_result"


def test_stream_accumulates(simulate, gpt):
    client = gpt(simulate(ScriptedBrain(SCRIPT)))
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=[HI],
            tools=[READ],
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(d.content or "" for d in deltas).startswith("I will read it")
    calls = [call for d in deltas for call in d.tool_calls or ()]
    assert "".join(call.function.arguments for call in calls) == '{"path":"notes.txt"}'
    assert chunks[-2].choices[0].finish_reason == "tool_calls"
    assert chunks[-1].usage.prompt_tokens > 0


def test_prefixes_are_cached_in_steps(simulate, gpt):
    client = gpt(simulate())

    def cached(messages):
        made = client.chat.completions.create(model=MODEL, messages=messages)
        return made.usage.prompt_tokens_details.cached_tokens

    assert cached([LONG, HI]) == 0
    again = cached([LONG, {"role": "user", "content": "something else"}])
    assert again >= 1_024
    assert again % 128 == 0
    assert cached([HI]) == cached([HI]) == 0


def test_prefixes_are_kept_as_long_as_the_models_provider_keeps_them(simulate, gpt):
    client = gpt(simulate())
    ask = {"model": MODEL, "messages": [LONG, HI]}

    def cached_after(seconds):
        advance = {"x-simulator-advance-seconds": str(seconds)}
        made = client.chat.completions.create(**ask, extra_headers=advance)
        return made.usage.prompt_tokens_details.cached_tokens

    lives = capabilities(MODEL).cache_seconds
    assert [cached_after(pause) > 0 for pause in (0, lives - 60, lives)] == [False, True, False]


def test_overflow_has_its_code(simulate, gpt):
    client = gpt(simulate())
    message = {"role": "user", "content": "a " * 1_060_000}
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model=MODEL, messages=[message])
    assert raised.value.code == "context_length_exceeded"


def test_unanswered_calls_are_refused(simulate, gpt):
    call = {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
    messages = [HI, {"role": "assistant", "tool_calls": [call]}, HI]
    with pytest.raises(openai.BadRequestError, match="did not have response messages: c1"):
        gpt(simulate()).chat.completions.create(model=MODEL, messages=messages)


def test_statuses_and_retries(simulate, gpt):
    simulator = simulate()
    with pytest.raises(openai.RateLimitError):
        gpt(simulator, max_retries=0).chat.completions.create(
            model=MODEL, messages=[HI], extra_headers={"x-simulator-fault": "429"}
        )
    simulator.simulation.faults.plan({"queue": ["429:0.01"]})
    assert gpt(simulator).chat.completions.create(model=MODEL, messages=[HI]).choices


def test_an_error_inside_a_stream(simulate, gpt):
    client = gpt(simulate(), max_retries=0)
    stream = client.chat.completions.create(
        model=MODEL,
        messages=[HI],
        stream=True,
        extra_headers={"x-simulator-fault": "error_event:2"},
    )
    with pytest.raises(openai.APIError, match="Overloaded"):
        list(stream)


def test_max_tokens_cut_the_answer(simulate, gpt):
    client = gpt(simulate(ScriptedBrain("text: " + "word " * 50)))
    made = client.chat.completions.create(model=MODEL, messages=[HI], max_completion_tokens=5)
    assert made.choices[0].finish_reason == "length"
    assert made.usage.completion_tokens == 5


def test_models(simulate, gpt):
    assert "claude-opus-5" in {model.id for model in gpt(simulate()).models.list()}
