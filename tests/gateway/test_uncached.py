"""Clients without cache breakpoints pay the full price of every prompt."""

import pytest

from gateway_parts import MODEL, SYSTEM, TOOLS, Agent
from longhold.core.settings import GatewaySettings, Settings


class Plain(Agent):
    """An SDK loop that marks its system prompt at most, and no message."""

    def call(self, **more):
        given = {
            "model": MODEL,
            "max_tokens": 1000,
            "system": SYSTEM,
            "tools": TOOLS,
            "messages": self.messages,
        }
        raw = self.client.messages.with_raw_response.create(**given | more)
        self.headers.append(raw.headers)
        self.answers.append(raw.parse())
        return self.answers[-1]


def played(gateway, upstream, settings):
    upstream.simulation.brain.files = 4
    running = gateway(settings)
    agent = Plain(running.url)
    for turn in range(8):
        agent.ask(f"Read four more files, please: {turn}.")
    assert len(agent.answers) == 40
    return running.planner.stats()["totals"], agent


def test_clearing_is_free_for_a_client_that_caches_nothing(gateway, upstream):
    totals, _ = played(gateway, upstream, Settings())
    assert totals["saved_usd"] > 0.5 * totals["shadow_usd"]


def test_breakpoints_are_added_on_wish(gateway, upstream):
    settings = Settings(gateway=GatewaySettings(breakpoints="add"))
    totals, agent = played(gateway, upstream, settings)
    billed = upstream.simulation.stats.to_json()["totals"]["cost_usd"]["total"]
    assert totals["billed_usd"] == pytest.approx(billed, rel=1e-6)
    assert totals["saved_usd"] > 0.5 * totals["shadow_usd"]
    assert totals["cache_read_ratio"] > 0.8
    assert all(str(request).count("cache_control") <= 4 for request in upstream.requests)
    assert all("x-longhold-passed" not in headers for headers in agent.headers)
