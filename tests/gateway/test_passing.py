"""Unmanaged requests pass byte for byte, and Longhold's failures cost no request."""

import asyncio
import json
import socket
from contextlib import ExitStack

import anthropic
import httpx2
import pytest

from gateway_parts import MODEL, Agent, client_of, gateway_process, gateway_to, listing
from longhold.core.http import serve_in_thread, server_of
from longhold.core.settings import GatewaySettings, Settings, home
from longhold.errors import ConfigError
from longhold.gateway.server import GatewayOptions, serve

ODD_BODY = b'{"b" : 1,\n  "a": [1.50, "\\u00e9"] }  '


class Echo:
    """A provider that says what it heard, and answers as it is told."""

    def __init__(self, status=200, headers=(), body=b"{}"):
        self.heard = []
        self.status, self.headers, self.body = status, list(headers), body

    async def __call__(self, scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.heard.append((scope, body))
        headers = [(b"content-length", str(len(self.body)).encode()), *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


@pytest.fixture
def echoing():
    """Put a gateway in front of a provider of this kind."""
    with ExitStack() as stack:

        def start(settings=None, **kind):
            echo = Echo(**kind)
            url = stack.enter_context(serve_in_thread(server_of(echo)))
            return echo, stack.enter_context(gateway_to(url, settings)).url

        yield start


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/messages/batches"),
        ("POST", "/v1/files?beta=true&x=%2F"),
        ("DELETE", "/v1/files/file_%20odd"),
        ("POST", "/v1/embeddings"),
        ("PATCH", "/some/path/of/tomorrow"),
    ],
)
def test_unknown_requests_pass_byte_for_byte(echoing, method, path):
    echo, url = echoing(status=203, headers=[(b"x-odd", b"1")], body=b" {odd} ")
    answer = httpx2.request(method, url + path, content=ODD_BODY, headers={"x-Mine": "a, b"})
    [(scope, body)] = echo.heard
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    assert (scope["method"], target, body) == (method, path.encode(), ODD_BODY)
    assert dict(scope["headers"])[b"x-mine"] == b"a, b"
    assert (answer.status_code, answer.content) == (203, b" {odd} ")
    assert answer.headers["x-odd"] == "1"


def test_headers_pass_but_those_of_one_connection_and_ours(echoing):
    echo, url = echoing()
    headers = [
        ("anthropic-beta", "one,two"),
        ("anthropic-beta", "three"),
        ("authorization", "Bearer sk-ant-oat-1"),
        ("connection", "keep-alive, x-hop"),
        ("x-hop", "1"),
        ("x-longhold-bypass", "1"),
        ("x-claude-code-session-id", "s"),
    ]
    httpx2.post(f"{url}/v1/messages", content=b"{}", headers=headers)
    sent = [(k.decode(), v.decode()) for k, v in echo.heard[0][0]["headers"]]
    assert [v for k, v in sent if k == "anthropic-beta"] == ["one,two", "three"]
    assert ("authorization", "Bearer sk-ant-oat-1") in sent
    assert ("x-claude-code-session-id", "s") in sent
    assert {"x-hop", "x-longhold-bypass"}.isdisjoint(dict(sent))


def test_a_managed_request_keeps_the_login_of_a_subscription(echoing):
    echo, url = echoing()
    headers = [
        ("authorization", "Bearer sk-ant-oat-1"),
        ("anthropic-beta", "oauth-2025-04-20,interleaved-thinking-2025-05-14"),
        ("user-agent", "claude-cli/2.1.197 (external, cli)"),
        ("x-app", "cli"),
    ]
    body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
    answer = httpx2.post(f"{url}/v1/messages?beta=true", json=body, headers=headers)
    assert "x-longhold-session" in answer.headers  # it was managed, not passed unchanged
    scope = echo.heard[0][0]
    sent = [(k.decode(), v.decode()) for k, v in scope["headers"]]
    assert set(headers) <= set(sent)
    assert "x-api-key" not in dict(sent)
    assert scope["query_string"] == b"beta=true"
    for path in home().rglob("*"):
        assert not path.is_file() or b"sk-ant-oat-1" not in path.read_bytes()


def test_errors_of_the_provider_pass_untouched(echoing):
    body = b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'
    headers = [(b"retry-after", b"7"), (b"request-id", b"req_9")]
    _, url = echoing(status=429, headers=headers, body=body)
    with pytest.raises(anthropic.RateLimitError) as raised:
        client_of(url).messages.create(
            model=MODEL, max_tokens=9, messages=[{"role": "user", "content": "Hello"}]
        )
    response = raised.value.response
    assert (response.headers["retry-after"], response.headers["request-id"]) == ("7", "req_9")
    assert response.content == body


def test_a_provider_that_cannot_be_reached_is_an_error_of_the_api():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{free.getsockname()[1]}"
    with gateway_to(dead) as gateway, pytest.raises(anthropic.InternalServerError) as raised:
        Agent(gateway.url).ask("Hello")
    assert raised.value.status_code == 502
    assert "cannot be reached" in raised.value.body["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"not json at all",
        b'{"model": 7, "messages": []}',
        b'{"model": "m", "messages": ["text"]}',
        b'{"model": "m", "messages": [{"role": "wizard", "content": "x"}]}',
        b'{"model": "m", "messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}',
        b'{"model": "m", "messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "system": {"a": 1}}',
        b"[" * 50_000,
    ],
)
def test_a_request_we_cannot_read_reaches_the_provider_as_it_is(echoing, body):
    echo, url = echoing(status=400, body=b'{"theirs": true}')
    answer = httpx2.post(f"{url}/v1/messages", content=body)
    assert [heard for _, heard in echo.heard] == [body]
    assert answer.content == b'{"theirs": true}'
    assert answer.headers["x-longhold-passed"]


def test_a_full_disk_costs_the_client_nothing(gateway, upstream):
    agent = Agent(gateway().url)
    (home() / "projects").write_text("in the way")
    upstream.simulation.brain.files = 2
    agent.ask("Read two files.")
    assert agent.answers[-1].content[0].text == "Done after 2."
    assert all(headers["x-longhold-passed"] for headers in agent.headers)


def test_a_managed_request_that_is_refused_is_sent_again_as_it_was(gateway, upstream, clock):
    agent = Agent(gateway().url)
    agent.ask("Read a dozen files.")
    clock.advance(600)
    upstream.simulation.faults.plan({"queue": ["400"]})
    agent.messages.append({"role": "user", "content": "Again."})
    agent.call()
    assert "answered 400" in agent.headers[-1]["x-longhold-passed"]
    managed, given = upstream.bodies[-2:]
    assert len(managed) < len(given)


def test_beyond_this_machine_a_token_is_required():
    with pytest.raises(ConfigError, match="token"):
        serve("0.0.0.0", 0, GatewayOptions())


def test_only_who_has_the_token_is_passed_on(gateway, upstream):
    url = gateway(token="open sesame").url
    with pytest.raises(anthropic.AuthenticationError):
        Agent(url).ask("Hello")
    upstream.simulation.brain.files = 0
    Agent(url, **{"x-longhold-token": "open sesame"}).ask("Hello")
    assert httpx2.get(f"{url}/longhold/stats").status_code == 401
    assert "x-longhold-token" not in upstream.headers[-1]


def test_a_name_that_points_here_from_a_browser_is_refused(gateway):
    answer = httpx2.get(f"{gateway().url}/v1/models", headers={"host": "evil.example"})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example:99999", 403),
        ("a@evil.example", 403),
        ("localhost@evil.example", 403),
        ("127.0.0.1:80@evil.example", 403),
        ("evil.example/localhost", 403),
        ("[::1", 403),
        ("localhost:1", 200),
        ("LOCALHOST", 200),
        ("[::1]:8080", 200),
        ("127.0.0.1", 200),
    ],
)
def test_a_host_that_cannot_be_parsed_is_not_this_machine(gateway, upstream, host, status):
    for url in (f"{gateway().url}/longhold/stats", f"{upstream.url}/simulator/stats"):
        assert httpx2.get(url, headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("http://127.0.0.1.evil.example:8080", 403),
        ("http://localhost:3000", 200),
        ("http://[::1]:3000", 200),
        ("HTTPS://evil.example", 403),
        ("http://localhost:x@evil.example", 403),
        ("null", 403),
        ("file://", 403),
        ("chrome-extension://abc", 403),
        ("vscode-webview://x", 403),
    ],
)
def test_another_machines_page_is_refused(gateway, upstream, origin, status):
    given = [("origin", origin)]
    for url in (f"{gateway().url}/longhold/stats", f"{upstream.url}/simulator/stats"):
        assert httpx2.get(url, headers=given).status_code == status
        twice = [("origin", "http://localhost"), *given]
        assert httpx2.get(url, headers=twice).status_code == status


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("none", 200)]
)
def test_what_a_browser_says_of_a_request_counts(gateway, upstream, site, status):
    given = {"sec-fetch-site": site}
    assert httpx2.get(f"{gateway().url}/longhold/stats", headers=given).status_code == status
    answer = httpx2.post(f"{upstream.url}/simulator/reset", headers=given)
    assert answer.status_code == status


def test_a_body_that_is_too_long_is_refused_in_the_apis_words(echoing):
    echo, url = echoing(Settings(gateway=GatewaySettings(body_bytes=2_000)))
    answer = httpx2.post(f"{url}/v1/messages", content=b"x" * 5_000)
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "request_too_large"
    assert not echo.heard


async def test_a_client_that_never_finishes_its_request_harms_nobody(echoing):
    echo, url = echoing(Settings(gateway=GatewaySettings(body_seconds=0.2)))
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99\r\n\r\n{")
    await writer.drain()
    async with httpx2.AsyncClient() as client:
        other = await client.get(f"{url}/v1/models")
    assert other.status_code == 200
    assert b" 408 " in await reader.readline()
    writer.close()
    assert len(echo.heard) == 1


def test_nothing_of_a_credential_is_written(gateway, upstream):
    upstream.simulation.brain.files = 1
    Agent(gateway().url, key="sk-ant-very-secret-credential").ask("Read a file.")
    written = [file.read_bytes() for file in home().rglob("*") if file.is_file()]
    assert written
    assert not any(b"very-secret" in data for data in written)


def test_the_process_answers_at_the_address_it_prints(upstream):
    upstream.simulation.brain.files = 0
    with gateway_process(upstream.url) as (url, _, _):
        Agent(url).ask("Hello")
        own = {"x-api-key": "sk-test"}
        stats = json.loads(httpx2.get(f"{url}/longhold/stats", headers=own).content)
    assert stats["totals"]["calls"] == 1
    assert stats["totals"]["saved_usd"] == 0


def test_a_list_of_items_is_managed_as_well(echoing):
    body = b'event: response.completed\ndata: {"type":"response.completed","response":{"id":"r1",'
    body += b'"model":"gpt-6-sol","output":[],"usage":{"input_tokens":9,"output_tokens":1}}}\n\n'
    echo, url = echoing(headers=[(b"content-type", b"text/event-stream")], body=body)
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Build."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"},
        {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": listing("make", 4_000)},
    ]
    tools = [{"type": "function", "name": "shell", "parameters": {"type": "object"}}]
    asked = {"model": "gpt-6-sol", "instructions": "Work.", "tools": tools, "stream": True}
    answer = httpx2.post(f"{url}/v1/responses", json={**asked, "input": items})
    sent = json.loads(echo.heard[0][1])
    assert answer.content == body
    assert "x-longhold-passed" not in answer.headers
    assert sent["input"][:3] == items[:3]
    assert len(sent["input"][3]["output"]) < len(items[3]["output"]) / 2


def test_what_the_provider_remembers_itself_passes(echoing):
    echo, url = echoing()
    asked = {"model": "gpt-6-sol", "input": [{"role": "user", "content": "x"}]}
    answer = httpx2.post(f"{url}/v1/responses", json={**asked, "previous_response_id": "r1"})
    assert "no complete conversation" in answer.headers["x-longhold-passed"]
    assert len(echo.heard) == 1
