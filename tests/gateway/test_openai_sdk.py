"""The official OpenAI SDK through the gateway: synchronous, asynchronous, streamed."""

from dataclasses import replace

import httpx2
import openai
import pytest

from gateway_parts import EAGER, Reader, client_of, gateway_to, listing
from longhold.core.http import serve_in_thread, server_of
from longhold.core.log import load
from longhold.core.log.entries import CacheBroke, Cleared, Failed, Replied, Rewound, Spilled
from longhold.core.settings import home
from longhold.simulator import BrainAnswer, run_simulator
from longhold.simulator.brains import text

MODEL = "gpt-6-sol"
OWN = {"authorization": "Bearer k"}
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
ITEMS = [
    {"role": "user", "content": "Build it."},
    {"type": "custom_tool_call", "call_id": "c1", "name": "exec", "input": "make()"},
    {"type": "custom_tool_call_output", "call_id": "c1", "output": listing("make", 4_000)},
]
FREEFORM = [{"type": "custom", "name": "exec"}]


class Says:
    """Says the same whatever it is asked."""

    def __init__(self, words):
        self.words = words

    def answer(self, request):
        return BrainAnswer(blocks=(text(self.words),))


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
    assert "x-longhold-passed" not in raw.headers
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


async def test_responses_are_answered_and_recorded(url):
    given = {"model": MODEL, "input": HELLO}
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        raw = client.responses.with_raw_response.create(**given)
        events = list(client.responses.create(**given, stream=True))
    async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as other:
        whole = await other.responses.create(**given)
        more = [event async for event in await other.responses.create(**given, stream=True)]
    answers = [raw.parse(), whole, events[-1].response, more[-1].response]
    assert [answer.output_text for answer in answers] == ["Done after 0."] * 4
    assert "x-longhold-passed" not in raw.headers
    ids = [reply.response_id for reply in entries(Replied)]
    assert sorted(ids) == sorted(answer.id for answer in answers)
    stats = httpx2.get(url.removesuffix("/v1") + "/longhold/stats", headers=OWN).json()
    assert stats["totals"]["calls"] == 4
    assert stats["failures"] == {}


def test_the_result_of_a_freeform_tool_is_spilled(url, upstream):
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        client.responses.create(model=MODEL, input=ITEMS, tools=FREEFORM)
    [spilled] = entries(Spilled)
    sent = upstream.requests[-1]["input"]
    assert sent[:2] == ITEMS[:2]
    assert spilled.file in sent[2]["output"]
    stats = httpx2.get(url.removesuffix("/v1") + "/longhold/stats", headers=OWN).json()
    assert stats["totals"]["saved_usd"] > 0


def test_what_a_client_puts_into_its_list_is_not_an_answer(url, upstream):
    added = {"type": "additional_tools", "role": "developer", "tools": FREEFORM}
    items = [added, *HELLO, {"type": "configuration_update", "reasoning": {"effort": "low"}}]
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        raw = client.responses.with_raw_response.create(model=MODEL, input=items)
        items += [item.model_dump(exclude_unset=True) for item in raw.parse().output]
        items += [{"role": "user", "content": "Again."}]
        again = client.responses.with_raw_response.create(model=MODEL, input=items)
    assert upstream.requests[-1]["input"] == items
    assert again.headers["x-longhold-session"] == raw.headers["x-longhold-session"]
    assert len(entries(Replied)) == 2
    assert not entries(Rewound)


def _in_pieces(kind, chunks):
    async def serve(scope, receive, send):
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return serve


def test_an_answer_is_recorded_when_its_last_event_is_whole():
    with run_simulator(Reader(files=0)) as simulator:
        answer = httpx2.post(
            f"{simulator.url}/v1/responses",
            headers={"authorization": "Bearer k"},
            json={"model": MODEL, "input": "Hello", "stream": True},
        )
    pieces = [answer.content[at : at + 100] for at in range(0, len(answer.content), 100)]
    serve = _in_pieces(b"text/event-stream", pieces)
    with serve_in_thread(server_of(serve)) as upstream, gateway_to(upstream) as gateway:
        base = {"base_url": f"{gateway.url}/v1", "api_key": "k", "max_retries": 0}
        with openai.OpenAI(**base) as client:
            events = list(client.responses.create(model=MODEL, input=HELLO, stream=True))
    [reply] = entries(Replied)
    assert events[-1].response.id == reply.response_id
    assert [block.text for block in reply.content] == ["Done after 0."]


def test_words_about_a_stream_do_not_end_it():
    said = "It ends with\nevent: message_stop\ndata: [DONE]\n\nand then some more."
    with run_simulator(Says(said)) as simulator, gateway_to(simulator.url) as through:
        client = client_of(through.url)
        with client.messages.stream(
            model="claude-opus-4-8", max_tokens=99, messages=HELLO
        ) as stream:
            assert stream.get_final_text() == said
    [reply] = entries(Replied)
    assert [block.text for block in reply.content] == [said]


def test_a_client_that_asks_for_a_websocket_is_told_to_use_http(url, upstream):
    upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    answer = httpx2.get(f"{url}/responses", headers=upgrade)
    assert answer.status_code == 426
    assert "use HTTP" in answer.json()["error"]["message"]
    assert not upstream.bodies


def test_a_result_that_is_cleared_later_is_no_failure(gateway, upstream, clock):
    upstream.simulation.brain.files = 0
    stays_open = replace(EAGER, gateway=replace(EAGER.gateway, idle_seconds=7_200))
    url = gateway(stays_open).url + "/v1"
    items = [{"role": "user", "content": "Build it."}]
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        for number in range(12):
            call = {"call_id": f"c{number}", "name": "exec_command"}
            made = {"type": "function_call", **call, "arguments": f'{{"cmd": "make {number}"}}'}
            output = listing(f"make {number}", 200)
            result = {"type": "function_call_output", "call_id": f"c{number}", "output": output}
            items += [made, result]
            client.responses.create(model=MODEL, input=items)
        clock.advance(3_600)
        items.append({"role": "user", "content": "And now?"})
        raw = client.responses.with_raw_response.create(model=MODEL, input=items)
    assert "x-longhold-passed" not in raw.headers
    assert entries(Cleared)
    [broke] = entries(CacheBroke)
    assert broke.cause.startswith("lifetime")
    assert "message 3" in broke.detail
    assert not entries(Failed)
