"""Hostile clients get an error or pass unchanged, and harm nobody else."""

import asyncio
import gzip
import json
import re
import socket
import sys
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2
import msgspec
import pytest
from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from gateway_parts import MODEL, Agent, gateway_process, gateway_to
from longhold.core.http import serve_in_thread, server_of
from longhold.core.log.store import FileStore
from longhold.core.settings import GatewaySettings, Settings, home
from longhold.gateway.conversations import Conversations
from longhold.gateway.endpoints import ENDPOINTS
from longhold.gateway.planner import LATE, Planner
from longhold.gateway.tenants import TenantBudgets
from longhold.simulator import BrainAnswer
from longhold.simulator.brains import text

HEADERS = {"x-api-key": "sk-test", "anthropic-version": "2023-06-01"}
ASKED = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]}
STRICT = Settings(gateway=GatewaySettings(body_bytes=100_000, body_seconds=0.5))


@pytest.fixture
def url(gateway, upstream):
    upstream.simulation.brain.files = 0
    return gateway(STRICT, key="operator").url


def others_work(url):
    agent = Agent(url)
    agent.ask("Hello")
    return "x-longhold-passed" not in agent.headers[-1]


def said(url, *pieces):
    """Send bytes as they are; return what comes back until the server closes."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        for piece in pieces:
            connection.sendall(piece)
        answer = b""
        while more := connection.recv(65_536):
            answer += more
    return answer


def head(*lines, host="127.0.0.1"):
    first = (b"POST /v1/messages HTTP/1.1", b"host: " + host.encode(), b"connection: close")
    return b"\r\n".join((*first, *lines, b"", b""))


def test_a_body_without_a_length_is_read_no_further_than_it_may_be_long(url, upstream):
    def endless():
        for _ in range(1_000):
            yield b"x" * 10_000

    try:
        answer = httpx2.post(f"{url}/v1/messages", content=endless(), headers=HEADERS)
    except httpx2.TransportError:
        pass  # it was still sending when it was refused
    else:
        assert answer.status_code == 413
    assert not upstream.bodies
    assert others_work(url)


def test_a_compressed_body_is_not_unpacked_here(url, upstream):
    packed = gzip.compress(b"\0" * 50_000_000)
    headers = HEADERS | {"content-encoding": "gzip"}
    httpx2.post(f"{url}/v1/messages", content=packed, headers=headers)
    assert upstream.bodies == [packed]
    assert upstream.headers[0]["content-encoding"] == "gzip"


@pytest.mark.parametrize(
    "lines",
    [
        (b"content-length: 4", b"transfer-encoding: chunked"),
        (b"content-length: 4", b"content-length: 5"),
        (b"transfer-encoding: chunked, identity",),
        (b"x-odd: a\r\n folded: b",),
        (b"x-odd\0: a",),
        (b"content-length: -1",),
    ],
)
def test_a_request_whose_end_is_in_doubt_is_not_passed_on(url, upstream, lines):
    answer = said(
        url, head(*lines) + b"0\r\n\r\nGET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    )
    assert not answer or b" 400 " in answer.splitlines()[0], answer
    assert not upstream.bodies
    assert others_work(url)


def test_connections_without_a_request_do_not_use_up_the_files(quick):
    held = []
    with gateway_process(quick, open_files=256) as (url, _, _):
        address = urlsplit(url)
        try:
            for _ in range(400):
                held.append(socket.create_connection((address.hostname, address.port), timeout=20))
                held[-1].sendall(b"POST /v1/messages HTTP/1.1\r\nhost:")
            with httpx2.Client(headers=HEADERS, timeout=10) as client:
                client.post(f"{url}/v1/messages", json=ASKED).raise_for_status()
        finally:
            for one in held:
                one.close()


def test_a_head_without_end_is_cut_off(url, upstream):
    answer = b""
    with suppress(ConnectionError):  # it may still be sending when it is cut off
        answer = said(url, head()[:-2], *(b"x-more: " + b"y" * 1_000 + b"\r\n" for _ in range(500)))
    assert not answer or b" 400 " in answer.splitlines()[0]
    assert not upstream.bodies
    assert others_work(url)


@pytest.mark.parametrize("begun", [b"2\r\n{}\r\n0\r\nX: ", b"2;x="])
def test_trailers_and_chunk_extensions_without_end_are_cut_off(url, begun):
    with socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout=20) as client:
        client.sendall(head(b"transfer-encoding: chunked") + begun)
        sent = 0
        with pytest.raises(ConnectionError):
            while sent < 20_000_000:
                sent += client.send(b"a" * 65_536)
    assert sent < 20_000_000 and others_work(url)


@pytest.mark.parametrize("begun", [b"", b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a"])
async def test_heads_that_never_come_are_not_waited_for(url, begun):
    address = urlsplit(url)
    held = [await asyncio.open_connection(address.hostname, address.port) for _ in range(100)]
    for _, writer in held:
        writer.write(begun)
    assert await asyncio.to_thread(others_work, url)
    async with asyncio.timeout(20):
        assert {await reader.read() for reader, _ in held} == {b""}
    for _, writer in held:
        writer.close()


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/files", "/v1/messages"])
def test_bodies_are_limited_on_every_path(url, upstream, path):
    """A file may be longer than other bodies, but has an end, too."""
    begun = head(b"x-api-key: k", b"content-length: 2000000").replace(
        b"/v1/messages", path.encode()
    )
    with suppress(ConnectionError):  # it may still be sending when it is refused
        answer = said(url, begun, b"x" * 2_000_000)
        assert not answer or b" 413 " in answer.splitlines()[0]
    assert all(len(body) < 2_000_000 for body in upstream.bodies)
    began = time.monotonic()
    answer = said(url, begun, b"x")
    assert b" 408 " in answer.splitlines()[0]
    assert time.monotonic() - began < 10
    assert others_work(url)


def test_an_error_names_no_password(gateway):
    with gateway_to("http://user:SECRET@127.0.0.1:9") as running:
        answer = httpx2.post(f"{running.url}/v1/messages", json=ASKED, headers=HEADERS)
    assert answer.status_code == 502
    assert "SECRET" not in answer.text + str(answer.headers)
    assert "127.0.0.1:9 cannot be reached" in answer.text


async def test_a_remote_client_sees_no_paths(tmp_path):
    where = Conversations(Settings(), store=FileStore(tmp_path), directory=tmp_path)
    found = []
    for is_local in (True, False):
        planner = Planner(where, salt=b"x", budgets=TenantBudgets(0.0, tmp_path), is_local=is_local)
        tmp_path.chmod(0o500)
        body = json.dumps({**ASKED, "model": "x" * 300}).encode()
        (tmp_path / "projects").write_text("in the way") if is_local else None
        plan = await planner.plan(ENDPOINTS["/v1/messages"], body, Headers({}))
        found.append(str(tmp_path) in plan.reason)
        assert plan.reason
    tmp_path.chmod(0o700)
    assert found == [True, False]


async def test_a_client_that_does_not_read_holds_up_nobody(gateway, upstream):
    url = gateway().url
    upstream.simulation.brain.answer = lambda request: BrainAnswer(
        blocks=(text("word " * 200_000),)
    )
    address = urlsplit(url)
    body = msgspec.json.encode({**ASKED, "max_tokens": 64_000, "stream": True})
    _, writer = await asyncio.open_connection(address.hostname, address.port, limit=1_024)
    lines = [f"{name}: {value}".encode() for name, value in HEADERS.items()]
    writer.write(head(*lines, b"content-length: %d" % len(body)) + body)
    await writer.drain()
    async with httpx2.AsyncClient(headers=HEADERS) as client:
        for _ in range(3):
            counted = await client.post(
                f"{url}/v1/messages/count_tokens", json={k: ASKED[k] for k in ("model", "messages")}
            )
            assert counted.status_code == 200
    writer.close()


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "m", "messages": [{"role": "user", "content": "\xff\xfe"}]}',
        b"\xef\xbb\xbf{}",
        b'{"model": "m", "messages": [' + b'{"role":"user","content":"x"},' * 3_000,
        b'{"model": "' + b"m" * 90_000 + b'", "messages": [{"role": "user", "content": "x"}]}',
        b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1e999}',
        b"1" * 90_000,
    ],
)
def test_bytes_that_are_no_request_reach_the_provider_as_they_are(url, upstream, body):
    httpx2.post(f"{url}/v1/messages", content=body, headers=HEADERS)
    assert upstream.bodies == [body]
    assert others_work(url)


@pytest.mark.parametrize("name", ["../../../escape", "/etc/passwd", "..\\x", "a" * 3_000, "%2e%2e"])
def test_a_session_cannot_be_named_out_of_its_place(url, upstream, name, tmp_path):
    agent = Agent(url, **{"x-claude-code-session-id": name})
    agent.ask("Hello")
    [log] = home().rglob("gw-*.jsonl")
    assert re.fullmatch(r"gw-[0-9a-f]{12}-[0-9a-f]{8}-1", log.stem)
    assert not list(home().parent.rglob("*escape*"))


def test_the_statistics_quote_no_client(url, upstream):
    for words in ("PRIVATE", "PRIVATE" * 10_000):
        unreadable = {"type": "text", "text": {"oops": words}}
        asked = ASKED | {"messages": [{"role": "user", "content": [unreadable]}]}
        httpx2.post(f"{url}/v1/messages", json=asked, headers=HEADERS)
    said = httpx2.get(f"{url}/longhold/stats", headers={"x-longhold-key": "operator"}).text
    assert json.loads(said)["failures"] == {"InvalidArgument": 2}
    assert "PRIVATE" not in said


def test_a_credential_in_the_query_is_passed_on_and_written_nowhere(url, upstream):
    answer = httpx2.post(f"{url}/v1/messages?key=sk-in-the-query", json=ASKED, headers=HEADERS)
    assert answer.status_code == 200
    written = [file.read_bytes() for file in home().rglob("*") if file.is_file()]
    assert written
    assert not any(b"in-the-query" in data for data in written)


def test_odd_values_pass_as_they_are(url, upstream):
    headers = HEADERS | {"x-odd": "caf\xe9 \x80"}
    httpx2.post(
        f"{url}/v1/messages",
        json=ASKED,
        headers=[(k, v.encode("latin-1")) for k, v in headers.items()],
    )
    assert upstream.headers[0]["x-odd"] == "caf\xe9 \x80"


class Silent:
    """A provider that thinks for as long as anybody waits."""

    def __init__(self):
        self.asked, self.left = threading.Event(), threading.Event()

    async def __call__(self, scope, receive, send):
        while (await receive())["type"] != "http.disconnect":
            self.asked.set()
        self.left.set()


def test_who_gives_up_before_the_first_byte_is_not_answered(tmp_path):
    silent = Silent()
    with serve_in_thread(server_of(silent)) as upstream, gateway_to(upstream) as gateway:
        address = urlsplit(gateway.url)
        body = msgspec.json.encode(ASKED)
        with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
            connection.sendall(head(b"content-length: %d" % len(body)) + body)
            assert silent.asked.wait(20)
        assert silent.left.wait(20)


ANSWERED = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": MODEL,
    "content": [{"type": "text", "text": "Yes."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 2},
}


@pytest.fixture
def quick():
    """A provider that answers anything, so that only the gateway takes time."""
    with serve_in_thread(server_of(JSONResponse(ANSWERED))) as url:
        yield url


def with_uses(count, words):
    uses = [
        {"type": "tool_use", "id": f"t{i}", "name": "Bash", "input": {"command": "cat x"}}
        for i in range(count)
    ]
    results = [
        {"type": "tool_result", "tool_use_id": f"t{i}", "content": "r"} for i in range(count)
    ]
    messages = [
        {"role": "user", "content": words},
        {"role": "assistant", "content": uses},
        {"role": "user", "content": results},
        {"role": "assistant", "content": "All of them said r."},
        {"role": "user", "content": "Go on."},
    ]
    return {"model": MODEL, "max_tokens": 10, "messages": messages}


def delays(url, body, tries=3):
    """Send a request and, until it is answered, another client's. Return its answer and the delay.

    Another program on the machine can delay a client, too, but hardly three times.
    """
    for _ in range(tries):
        answer, worst = _delay_once(url, body)
        if worst < 0.5:
            break
    return answer, worst


def _delay_once(url, body):
    others = []

    def ask():
        began = time.perf_counter()
        with httpx2.Client(headers=HEADERS | {"x-api-key": "another"}) as client:
            client.post(f"{url}/v1/messages", json=ASKED).raise_for_status()
        others.append(time.perf_counter() - began)

    for _ in range(5):
        ask()
    usual = sorted(others)[2]
    del others[:]
    answers = []
    data = json.dumps(body).encode()
    sending = threading.Thread(
        target=lambda: answers.append(
            httpx2.post(f"{url}/v1/messages", content=data, headers=HEADERS, timeout=100)
        )
    )
    sending.start()
    while sending.is_alive() or not others:
        ask()
    sending.join()
    worst = max(others) - usual
    sys.stdout.write(f"{len(data):,} bytes delayed another client by {worst * 1000:.0f} ms\n")
    return answers[0], worst


@pytest.mark.parametrize(("uses", "is_managed"), [(20_000, False), (4_900, True)])
def test_one_clients_many_blocks_do_not_hold_up_another(quick, uses, is_managed):
    with gateway_process(quick) as (url, _, _):
        answer, worst = delays(url, with_uses(uses, f"{uses} of them"))
    assert answer.status_code == 200
    assert ("x-longhold-passed" not in answer.headers) == is_managed
    assert worst < 0.5  # 100 ms where nothing else runs; it was a minute and a half


TEXT = {"type": "text", "text": "x"}
MANY_PARTS = {
    "system": {"system": [TEXT] * 300_000},
    "tools": {"tools": [{"name": "a", "input_schema": {}}] * 300_000},
    "keys": {"metadata": {f"k{i}": 1 for i in range(900_000)}},
    "fewer": {"system": [TEXT] * 10_000},
}


@pytest.mark.parametrize("kind", MANY_PARTS)
def test_many_parts_outside_the_messages_are_not_managed_either(quick, kind):
    with gateway_process(quick) as (url, _, _):
        answer, worst = delays(url, ASKED | MANY_PARTS[kind])
    assert answer.status_code == 200 and "x-longhold-passed" in answer.headers
    assert worst < 0.5  # system blocks and keys took a second and more


async def test_large_requests_with_invented_credentials_delay_nobody_else(tmp_path):
    store = FileStore(tmp_path)
    planner = Planner(
        Conversations(Settings(), store=store, directory=tmp_path),
        salt=b"x",
        budgets=TenantBudgets(0.0, tmp_path),
    )

    def plan(key, body):
        headers = Headers({"x-api-key": key})
        data = json.dumps(body).encode()
        return asyncio.create_task(planner.plan(ENDPOINTS["/v1/messages"], data, headers))

    large = [plan(f"invented {n % 9}", with_uses(2_000, f"task {n}")) for n in range(36)]
    await asyncio.sleep(0.1)
    planner.end(await plan("honest", ASKED))
    answered = [task for task in large if task.done()]
    assert len(answered) < 4  # while 32 threads were shared, the honest one waited for four
    for task in large:
        task.cancel()
    for task in answered:
        planner.end(task.result())
    planner.close()


async def test_what_is_planned_too_late_goes_as_the_client_wrote_it(tmp_path):
    store = FileStore(tmp_path)
    planner = Planner(
        Conversations(Settings(), store=store, directory=tmp_path),
        salt=b"x",
        budgets=TenantBudgets(0.0, tmp_path),
        plan_seconds=0.01,
    )
    body = json.dumps(with_uses(3_000, "late")).encode()
    plan = await planner.plan(ENDPOINTS["/v1/messages"], body, Headers({}))
    assert (plan.body, plan.reason, plan.conversation) == (body, LATE, None)
    planner.end(plan)
    planner.close()
    assert len(store.sessions(tmp_path)) <= 1
