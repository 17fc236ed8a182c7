"""A credential's daily budget holds for any form of requests."""

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from gateway_parts import MODEL, Agent, gateway_to
from longhold.core.http import serve_in_thread, server_of
from longhold.core.settings import GatewaySettings, Settings, home

LIMITED = Settings(gateway=GatewaySettings(tenant_usd_per_day=0.5))
USAGE = {"input_tokens": 200_000, "output_tokens": 20_000}
"""$1.50 for Opus."""
BODY = {"model": MODEL, "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
ANSWER = {"id": "m", "type": "message", "role": "assistant", "model": MODEL, "content": []}


class Dear:
    """A provider whose every answer costs more than a day's budget. It keeps what it was sent."""

    def __init__(self):
        self.headers = []
        self.is_cut = False
        self.wait = 0.0

    async def __call__(self, scope, receive, send):
        request = Request(scope, receive)
        body = await request.body()
        self.headers.append(scope["headers"])
        is_stream = b'"stream": true' in body or b'"stream":true' in body
        await (self.stream() if is_stream else self.whole())(scope, receive, send)

    def whole(self) -> Response:
        return JSONResponse({**ANSWER, "stop_reason": "end_turn", "usage": USAGE})

    def stream(self) -> Response:
        async def events():
            yield event("message_start", message={**ANSWER, "usage": USAGE})
            yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            await asyncio.sleep(self.wait)
            if not self.is_cut:
                yield event("message_delta", delta={"stop_reason": "end_turn"}, usage=USAGE)
                yield event("message_stop")

        return StreamingResponse(events(), media_type="text/event-stream")


def event(kind, **more):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()


@pytest.fixture
def provider():
    made = Dear()
    with serve_in_thread(server_of(made)) as made.url:
        yield made


@pytest.fixture
def url(provider):
    with gateway_to(provider.url, LIMITED) as gateway:
        yield gateway.url


def status(url, headers, path="/v1/messages", body=BODY):
    given = [("content-type", "application/json"), *headers]
    return httpx2.post(f"{url}{path}", content=json.dumps(body).encode(), headers=given).status_code


KEY = ("authorization", "Bearer KEY")


@pytest.mark.parametrize(
    "second",
    [
        [KEY],
        [("authorization", "bearer KEY")],
        [("authorization", "Bearer  KEY")],
        [("x-api-key", "KEY")],
        [KEY, ("api-key", "junk")],
        [KEY, ("authorization", "Bearer junk")],
        [KEY, ("x-goog-api-key", "junk"), ("connection", "x-goog-api-key")],
        [KEY, ("x-longhold-bypass", "1")],
    ],
)
def test_a_credential_is_one_tenant_however_it_is_written(url, provider, second):
    assert status(url, [KEY]) == 200
    assert status(url, second) == 402
    assert status(url, [("x-api-key", "ANOTHER")]) == 200
    assert len(provider.headers) == 2


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", {**BODY, "model": "my-alias-of-opus"}),
        ("/v1/messages", ["no", "model"]),
        ("/v1/responses", {"model": "gpt-5", "background": True, "input": "hi"}),
        ("/v1/messages/batches", {"requests": []}),
        ("/v1/embeddings", BODY),
        ("/v1/messages/", BODY),
        ("//v1/messages", BODY),
        ("/v1//messages", BODY),
        ("/v1/messages%20", BODY),
        ("/v1/messages/%2e", BODY),
    ],
)
def test_what_cannot_be_counted_is_refused_while_a_budget_is_set(url, provider, path, body):
    assert status(url, [KEY], path, body) == 402
    assert not provider.headers
    assert httpx2.get(f"{url}/v1/models").status_code == 200


def test_paths_and_models_without_a_price_pass_without_a_budget(provider):
    with gateway_to(provider.url) as gateway:
        assert status(gateway.url, [KEY], "/v1/messages/batches", {}) == 200
        assert status(gateway.url, [KEY], body={**BODY, "model": "my-alias-of-opus"}) == 200


@pytest.mark.parametrize("hangs_up", [True, False])
def test_an_answer_that_does_not_end_is_paid(url, provider, hangs_up):
    provider.is_cut, provider.wait = not hangs_up, 30.0 if hangs_up else 0.0
    body = {**BODY, "stream": True}
    with httpx2.stream("POST", f"{url}/v1/messages", json=body, headers=[KEY]) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "event: message_start"
        assert hangs_up or list(lines)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not list(home().glob("spent/tenants/*/*.jsonl")):
        time.sleep(0.05)
    assert status(url, [KEY]) == 402
    assert len(provider.headers) == 1


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_connection_that_breaks_in_an_answer_is_paid(is_stream):
    """The provider says how long its answer is, and hangs up before."""
    seen = []

    async def breaking(scope, receive, send):
        seen.append(await Request(scope, receive).body())
        kind = b"text/event-stream" if is_stream else b"application/json"
        begun = event("message_start", message={**ANSWER, "usage": USAGE})
        body = (
            begun if is_stream else b'{"content": [{"type": "text", "text": "' + b"word " * 50_000
        )
        headers = [(b"content-type", kind), (b"content-length", b"9000000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await asyncio.sleep(0.2)
        raise ConnectionError

    with serve_in_thread(server_of(breaking)) as nowhere, gateway_to(nowhere, LIMITED) as gateway:
        body = {**BODY, "stream": is_stream}
        with pytest.raises(httpx2.TransportError):
            httpx2.post(f"{gateway.url}/v1/messages", json=body, headers=[KEY])
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not list(home().glob("spent/tenants/*/*.jsonl")):
            time.sleep(0.05)
        assert status(gateway.url, [KEY]) == 402
    assert len(seen) == 1


def test_requests_sent_together_do_not_spend_the_same_dollars(url, provider):
    """Each costs more than is left, so only the first is sent; the others wait for its price."""
    provider.wait = 0.5
    long = {**BODY, "max_tokens": 30_000, "stream": True}  # $0.75 expected, and $1.50 billed
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: status(url, [KEY], body=long), range(8)))
    assert sorted(found) == [200, *[402] * 7]
    assert len(provider.headers) == 1


@pytest.mark.parametrize(
    "odd", [{"max_tokens": -30_000}, {"n": -9}, {"max_tokens": 10**400}, {"n": "x"}]
)
def test_odd_numbers_make_no_room(url, provider, odd):
    provider.wait = 1.0
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(status, url, [KEY], body={**BODY, **odd, "stream": True})
        time.sleep(0.4)
        long = {**BODY, "max_tokens": 30_000}
        assert status(url, [KEY], body=long) == 402
    assert first.result() == 200


def test_requests_that_fit_together_are_not_held_up(url, provider):
    provider.wait = 1.0
    short = {**BODY, "stream": True}
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: status(url, [KEY], body=short), range(4)))
    assert found == [200] * 4


def test_a_client_that_leaves_before_the_first_byte_pays_for_its_prompt(provider):
    spent = Settings(gateway=GatewaySettings(tenant_usd_per_day=0.001))

    async def slow(scope, receive, send):
        await asyncio.sleep(30)

    with serve_in_thread(server_of(slow)) as nowhere, gateway_to(nowhere, spent) as gateway:
        body = {**BODY, "messages": [{"role": "user", "content": "word " * 10_000}]}
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{gateway.url}/v1/messages", json=body, headers=[KEY], timeout=0.5)
        for _ in range(100):
            try:
                answer = httpx2.post(
                    f"{gateway.url}/v1/messages", json=BODY, headers=[KEY], timeout=0.2
                )
            except httpx2.ReadTimeout:
                continue
            break
        assert answer.status_code == 402


def test_a_trailer_is_no_header(provider):
    body = json.dumps(BODY).encode()
    head = b"\r\n".join(
        (
            b"POST /v1/messages HTTP/1.1",
            b"host: 127.0.0.1",
            b"x-api-key: KEY",
            b"connection: close",
            b"transfer-encoding: chunked",
            b"",
            b"%x" % len(body),
            body,
            b"0",
            b"x-api-key: TRAILER",
            b"x-more: 1",
            b"",
            b"",
        )
    )
    with gateway_to(provider.url) as gateway:
        address = urlsplit(gateway.url)
        with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
            connection.sendall(head)
            assert b" 200 " in connection.recv(65_536).splitlines()[0]
    [headers] = provider.headers
    assert [value for name, value in headers if name == b"x-api-key"] == [b"KEY"]
    assert b"x-more" not in dict(headers)


def test_statistics_are_of_ones_own_sessions(gateway, upstream):
    running = gateway(key="operator")
    upstream.simulation.brain.files = 0
    for key in ("one", "two"):
        Agent(running.url, key=key).ask("Hello")
    where = f"{running.url}/longhold/stats"
    one = httpx2.get(where, headers={"authorization": "Bearer one"}).json()
    two = httpx2.get(where, headers={"x-api-key": "two"}).json()
    assert [len(own["sessions"]) for own in (one, two)] == [1, 1]
    assert one["sessions"][0]["id"] != two["sessions"][0]["id"]
    assert httpx2.get(where).json()["sessions"] == []
    operator = {"x-longhold-key": "operator"}
    assert len(httpx2.get(where, headers=operator).json()["sessions"]) == 2
    metrics = f"{running.url}/longhold/metrics"
    assert httpx2.get(metrics).status_code == 401
    assert httpx2.get(metrics, headers=operator).status_code == 200
