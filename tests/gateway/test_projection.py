"""Only the session's decisions change a client's list."""

import openai
import pytest

from gateway_parts import Agent, listing
from longhold.core.log import load
from longhold.core.log.entries import Compacted
from longhold.core.messages import Message, content_from_wire
from longhold.core.messages.rules import violations
from longhold.core.settings import ClearSettings, Settings, WindowSettings, home

SMALL = Settings(window=WindowSettings(limit_tokens=40_000), clear=ClearSettings(on=False))


def compactions():
    logs = home().glob("projects/*/gw-*.jsonl")
    return [e for log in logs for e in load(log).entries if isinstance(e, Compacted)]


def test_a_list_that_would_not_fit_is_compacted_by_us(gateway, upstream):
    agent = Agent(gateway(SMALL).url)
    upstream.simulation.brain.files = 6
    for words in ("Read six files.", "Again.", "Now the other six.", "And again."):
        agent.ask(words)
    assert compactions()
    sizes = [len(body) for body in upstream.bodies]
    assert max(sizes) < 4 * 45_000
    for request in upstream.requests:
        messages = [
            Message(m["role"], content_from_wire(m["content"])) for m in request["messages"]
        ]
        assert not list(violations(messages))
    assert all("x-longhold-passed" not in headers for headers in agent.headers)
    assert agent.answers[-1].content[0].text == "Done after 6."


def test_behind_a_compaction_each_request_begins_with_the_one_before(gateway, upstream):
    agent = Agent(gateway(SMALL).url)
    upstream.simulation.brain.files = 6
    for words in ("Read six files.", "Again.", "Now the other six.", "And again."):
        agent.ask(words)
    read = [answer.usage.cache_read_input_tokens for answer in agent.answers]
    assert sum(tokens == 0 for tokens in read[1:]) <= len(compactions())


@pytest.mark.parametrize("is_stream", [False, True])
def test_chat_completions_are_managed_too(gateway, upstream, is_stream):
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "bash", "arguments": '{"command": "make"}'},
    }
    tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
    messages = [
        {"role": "system", "content": "Build."},
        {"role": "user", "content": "Build it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": listing("make", 4_000)},
    ]
    upstream.simulation.brain.files = 0
    given = {"model": "gpt-6-sol", "messages": messages, "tools": [tool], "stream": is_stream}
    with openai.OpenAI(base_url=f"{gateway().url}/v1", api_key="k", max_retries=0) as client:
        raw = client.chat.completions.with_raw_response.create(**given)
        answer = raw.parse()
        words = (
            "".join(c.choices[0].delta.content or "" for c in answer if c.choices)
            if is_stream
            else answer.choices[0].message.content
        )
    assert words
    sent = upstream.requests[-1]
    assert sent["messages"][:3] == messages[:3]
    assert len(sent["messages"][3]["content"]) < len(messages[3]["content"]) / 2
    assert "x-longhold-passed" not in raw.headers
