"""What a gateway policy promises: `longhold.gateway.policy.GatewayPolicy`."""

import json
import time

import pytest

pytest.importorskip("starlette", reason="the gateway's extra is not installed")

from longhold.core.settings import GatewaySettings
from longhold.gateway.policy import PolicyRequest, Verdict, judge

BODIES = {
    "messages": {"model": "claude-sonnet-5-5", "messages": [{"role": "user", "content": "Hi."}]},
    "no model": {"messages": []},
    "a model that is no text": {"model": 5},
    "no object": [],
}


def make(body=b"", path="/v1/messages", **headers):
    return PolicyRequest(path=path, headers=headers, body=body, tenant="a1b2")


@pytest.mark.parametrize("body", [*map(json.dumps, BODIES.values()), "", "{", "\0"])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses"])
async def test_every_request_gets_a_verdict(policy, body, path):
    verdict = await judge(GatewaySettings(), make(body.encode(), path), policy)
    assert isinstance(verdict, Verdict)


async def test_a_refusal_says_why(policy):
    for body in map(json.dumps, BODIES.values()):
        verdict = await judge(GatewaySettings(), make(body.encode()), policy)
        assert verdict.action != "refuse" or verdict.why.strip()


def test_the_same_request_gets_the_same_verdict(policy):
    asked = make(json.dumps(BODIES["messages"]).encode(), accept="*/*")
    assert len({policy(asked) for _ in range(3)}) == 1


def test_it_does_not_hold_up_requests(policy):
    asked = make(json.dumps(BODIES["messages"]).encode())
    began = time.perf_counter()
    for _ in range(100):
        policy(asked)
    assert time.perf_counter() - began < 1.0
