"""The simulator's own endpoints: clock, faults, statistics, reset."""

import socket
from urllib.parse import urlsplit

import httpx2
import pytest

from longhold.simulator.server import MAX_BODY_BYTES

HI = [{"role": "user", "content": "hi"}]
LONG = "the cache wants long prompts " * 200
HEADERS = {"x-api-key": "key", "anthropic-version": "2026-10-21"}


@pytest.fixture
def http(simulate):
    """A plain HTTP client for a fresh simulator."""
    with httpx2.Client(base_url=simulate().url, headers=HEADERS) as client:
        yield client


def ask(http, **body):
    """Create a message over plain HTTP."""
    full = {"model": "claude-opus-5", "max_tokens": 50, "messages": HI, **body}
    return http.post("/v1/messages?beta=true", json=full)


def test_the_clock_moves(http):
    before = http.post("/simulator/clock", json={}).json()["now"]
    after = http.post("/simulator/clock", json={"advance_seconds": 3600}).json()["now"]
    assert after - before == 3600
    assert http.post("/simulator/clock", json={"advance_seconds": -1}).status_code == 400


def test_stats_tell_tokens_cache_and_money(http):
    system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
    for _ in range(2):
        ask(http, system=system)
    told = http.get("/simulator/stats").json()
    first, second = told["requests"]
    assert first["write_5m_tokens"] == second["read_tokens"] > 512
    assert second["cost_usd"]["read"] == pytest.approx(second["read_tokens"] * 0.50 / 1e6)
    assert told["totals"]["requests"] == 2
    assert told["totals"]["cost_usd"]["total"] == pytest.approx(
        first["cost_usd"]["total"] + second["cost_usd"]["total"]
    )


def test_reset_forgets_everything(http):
    system = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
    ask(http, system=system)
    http.post("/simulator/faults", json={"queue": ["500"]})
    http.post("/simulator/reset")
    assert http.get("/simulator/stats").json()["totals"]["requests"] == 0
    assert ask(http, system=system).json()["usage"]["cache_read_input_tokens"] == 0


def test_queued_faults_are_used_up_in_order(http):
    http.post("/simulator/faults", json={"queue": ["529", "none", "429"]})
    answers = [ask(http) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [529, 200, 429, 200]
    assert answers[2].headers["retry-after"] == "1"


def test_unknown_orders_are_refused(http):
    assert "'flood' is not one of" in http.post("/simulator/faults", json={"queue": ["flood"]}).text
    assert http.get("/simulator/nothing").status_code == 404


@pytest.mark.parametrize("body", [b"{", b'"text"', b'{"model": 1}', b'{"messages": [1]}'])
def test_malformed_bodies_are_400(http, body):
    answer = http.post("/v1/messages", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_whole_body_can_break_too(http):
    with pytest.raises(httpx2.RemoteProtocolError):
        http.post(
            "/v1/messages",
            json={"model": "claude-opus-5", "max_tokens": 50, "messages": HI},
            headers={"x-simulator-fault": "cut"},
        )


def test_a_repeated_event_is_repeated(http):
    body = {"model": "claude-opus-5", "max_tokens": 50, "messages": HI, "stream": True}
    answer = http.post("/v1/messages", json=body, headers={"x-simulator-fault": "repeat:4"})
    names = [line for line in answer.text.splitlines() if line.startswith("event:")]
    assert names.count("event: message_start") == 1
    assert names[3] == names[4] == "event: content_block_delta"


def test_large_bodies_are_413(simulate):
    body = b" " * (MAX_BODY_BYTES + 1)
    answer = httpx2.post(f"{simulate().url}/v1/messages", content=body, headers=HEADERS)
    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")


@pytest.mark.parametrize("action", ["reset", "clock", "faults"])
def test_looking_at_an_address_changes_nothing(http, action):
    ask(http)
    assert http.get(f"/simulator/{action}").status_code == 405
    assert len(http.get("/simulator/stats").json()["requests"]) == 1


@pytest.mark.parametrize("name", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example"])
def test_a_name_that_is_not_ours_is_refused(http, name):
    for path in ("/v1/models", "/simulator/stats", "/"):
        assert http.get(path, headers={"host": name}).status_code == 403
    assert http.get("/v1/models", headers={"host": "localhost:1"}).status_code == 200


def test_a_body_is_read_no_further_than_it_may_be_long(simulate):
    address = urlsplit(simulate().url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as link:
        link.sendall(
            b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nx-api-key: k\r\n"
            b"anthropic-version: 2026-10-21\r\nContent-Length: 200000000\r\n\r\n"
            + b"x"
            * (MAX_BODY_BYTES + 1)
        )
        assert link.recv(100).startswith(b"HTTP/1.1 413 ")
