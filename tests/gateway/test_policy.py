"""Plug-ins that decide which requests the gateway manages, and what happens if they fail."""

from dataclasses import replace

import anthropic
import pytest

from gateway_parts import EAGER, MODEL, gateway_to
from longhold.core.settings import GatewaySettings, PluginsSettings
from longhold.errors import ConfigError

JUDGES = "from longhold.gateway.policy import Verdict\ndef make():\n    def judge(request):\n"
PASSES = f"{JUDGES}        return Verdict('pass', 'of ' + request.model)\n    return judge\n"
REFUSES = f"{JUDGES}        return Verdict('refuse', 'not today')\n    return judge\n"
MANAGES = f"{JUDGES}        return Verdict('manage')\n    return judge\n"
SHOWS = f"{JUDGES}        return Verdict('pass', repr(dict(request.headers)))\n    return judge\n"
RAISES = f"{JUDGES}        1 / 0\n    return judge\n"
ANSWERS_OTHERWISE = f"{JUDGES}        return ('maybe', '')\n    return judge\n"
HANGS = f"import time\n{JUDGES}        time.sleep(3)\n    return judge\n"
KEY = "sk-ant-secret"


@pytest.fixture
def ask(install, gateway):
    """Send a request to a gateway with a policy; return the response and the gateway."""

    def send(code, *, settings=EAGER, **headers):
        install("policies", "mine", code)
        started = gateway(replace(settings, plugins=PluginsSettings(use="mine")))
        client = anthropic.Anthropic(base_url=started.url, api_key=KEY, max_retries=0)
        given = {"model": MODEL, "max_tokens": 100}
        with client:
            raw = client.messages.with_raw_response.create(
                **given, messages=[{"role": "user", "content": "Hello"}], extra_headers=headers
            )
        return raw, started

    return send


def test_a_policy_can_pass_a_request_unchanged(ask):
    response, _ = ask(PASSES)
    assert response.headers["x-longhold-passed"] == f"of {MODEL}"
    assert "x-longhold-session" not in response.headers


def test_a_policy_can_let_the_gateway_manage(ask):
    response, _ = ask(MANAGES)
    assert "x-longhold-session" in response.headers
    assert "x-longhold-passed" not in response.headers


def test_a_policy_cannot_manage_what_the_client_or_the_settings_leave_out(ask):
    response, _ = ask(MANAGES, **{"x-longhold-bypass": "1"})
    assert "x-longhold-session" not in response.headers
    off = replace(EAGER, gateway=GatewaySettings(on=False))
    response, _ = ask(MANAGES, settings=off)
    assert "x-longhold-session" not in response.headers


@pytest.mark.parametrize("headers", [{}, {"x-longhold-bypass": "1"}])
def test_a_refusal_reaches_the_client_and_nothing_the_provider(ask, upstream, headers):
    with pytest.raises(anthropic.PermissionDeniedError, match="longhold gateway: not today"):
        ask(REFUSES, **headers)
    assert not upstream.requests


def test_a_policy_sees_no_credentials(ask):
    response, _ = ask(SHOWS, authorization=f"Bearer {KEY}", cookie=KEY)
    shown = response.headers["x-longhold-passed"]
    assert "host" in shown
    assert KEY not in shown
    assert "x-api-key" not in shown


@pytest.mark.parametrize(
    ("code", "kind"),
    [(RAISES, "ZeroDivisionError"), (ANSWERS_OTHERWISE, "ValueError"), (HANGS, "TimeoutError")],
)
def test_if_a_policy_fails_the_request_passes_unchanged_and_is_counted(ask, code, kind):
    response, started = ask(code)
    assert response.headers["x-longhold-passed"] == "the gateway's policy failed"
    assert started.planner.stats()["failures"] == {f"policy: {kind}": 1}


def test_a_policy_that_is_not_installed_stops_the_gateway_at_its_start(upstream, clock):
    named = replace(EAGER, plugins=PluginsSettings(use="mine"))
    with pytest.raises(ConfigError, match="'mine'"), gateway_to(upstream.url, named, clock):
        pass
