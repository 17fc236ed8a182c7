"""The official OpenAI SDK through the gateway: synchronous, asynchronous, streamed."""

import httpx2
import openai
import pytest

from gateway_parts import gateway_to, listing
from holdfast import load
from holdfast.log.entries import Failed, Spilled
from holdfast.settings import home
from holdfast.simulator.serving import in_thread, server_of

MODEL = "gpt-6-sol"
HELLO = [{"role": "user", "content": "Hello"}]
BUILT = [
    {"role": "user", "content": "Build it."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": listing("make", 4_000)},
]
SHELL = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]
COMPLETED = (
    b'event: response.completed\ndata: {"type":"response.completed","sequence_number":0,"response":'
    b'{"id":"r1","object":"response","created_at":1,"model":"gpt-6-sol","status":"completed",'
    b'"output":[{"id":"m1","type":"message","role":"assistant","status":"completed","content":'
    b'[{"type":"output_text","text":"Hello.","annotations":[]}]}],"parallel_tool_calls":true,'
    b'"tool_choice":"auto","tools":[],"usage":{"input_tokens":9,"output_tokens":1,"total_tokens":10,'
    b'"input_tokens_details":{"cached_tokens":0},"output_tokens_details":{"reasoning_tokens":0}}}}\n\n'
)


def entries(kind):
    logs = home().glob("projects/*/gw-*.jsonl")
    return [entry for log in logs for entry in load(log).entries if isinstance(entry, kind)]


@pytest.fixture
def url(gateway, upstream):
    upstream.simulation.brain.files = 0
    return gateway().url + "/v1"


def test_answers_are_the_providers(url):
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=HELLO)
        streamed = client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        words = "".join(chunk.choices[0].delta.content or "" for chunk in streamed if chunk.choices)
    assert raw.parse().choices[0].message.content == words == "Done after 0."
    assert "x-holdfast-passed" not in raw.headers
    assert not entries(Failed)


async def test_the_asynchronous_client_works(url):
    async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
        answer = await client.chat.completions.create(model=MODEL, messages=HELLO)
        stream = await client.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        words = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
    assert answer.choices[0].message.content == "".join(words) == "Done after 0."


def test_a_long_result_is_spilled_in_this_dialect_too(url, upstream):
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        client.chat.completions.create(model=MODEL, messages=BUILT, tools=SHELL)
    [spilled] = entries(Spilled)
    sent = upstream.requests[-1]["messages"]
    assert sent[:2] == BUILT[:2]
    assert spilled.file in sent[2]["content"]
    assert len(sent[2]["content"]) < len(BUILT[2]["content"]) / 2


async def _completes(scope, receive, send):
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": COMPLETED})


async def test_responses_are_streamed_and_recorded():
    """The Responses dialect, by the SDK's two clients; the answer is in the log."""
    with in_thread(server_of(_completes)) as upstream, gateway_to(upstream) as gateway:
        base = {"base_url": f"{gateway.url}/v1", "api_key": "k", "max_retries": 0}
        with openai.OpenAI(**base) as client:
            events = list(client.responses.create(model=MODEL, input=HELLO, stream=True))
        async with openai.AsyncOpenAI(**base) as other:
            stream = await other.responses.create(model=MODEL, input=HELLO, stream=True)
            more = [event async for event in stream]
        stats = httpx2.get(f"{gateway.url}/holdfast/metrics").text
    assert events[-1].response.output_text == more[-1].response.output_text == "Hello."
    assert "holdfast_gateway_requests_total 2" in stats
    assert "holdfast_gateway_failures_total 0" in stats
