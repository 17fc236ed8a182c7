"""Clients that pause for longer than the cache lives."""

from dataclasses import replace

import pytest

from gateway_parts import EAGER, Agent, gateway_to
from longhold.core.messages.usage import usage_from_wire
from longhold.core.settings import GatewaySettings

PAUSE_SECONDS = 600


def usages(agent):
    return [usage_from_wire(answer.usage.model_dump()) for answer in agent.answers]


def lifetimes(request):
    """Return the lifetimes of a request's breakpoints in prompt order."""
    parts = [*request["tools"], *request["system"]]
    for message in request["messages"]:
        parts += message["content"] if isinstance(message["content"], list) else []
    marks = [part["cache_control"] for part in parts if "cache_control" in part]
    return [mark.get("ttl", "5m") for mark in marks]


def test_without_a_pause_nothing_is_cached_for_longer(gateway, upstream):
    agent = Agent(gateway().url)
    agent.ask("Read the files.")
    agent.ask("Read them again.")
    assert {life for one in upstream.requests for life in lifetimes(one)} == {"5m"}


def test_after_a_pause_what_is_written_again_outlives_the_next_pause(gateway, upstream, clock):
    agent = Agent(gateway().url)
    agent.ask("Read the files.")
    clock.advance(PAUSE_SECONDS)
    agent.ask("Read them again.")
    paused = len(agent.answers)
    clock.advance(PAUSE_SECONDS)
    agent.ask("And once more.")
    used = usages(agent)
    first = next(one for one in used if one.cache_write_1h_tokens)
    assert used[paused].cache_read_tokens == first.cache_write_1h_tokens
    assert used[paused + 1].cache_write_1h_tokens == 0  # the work in progress expires sooner


def test_longer_lifetimes_come_first_and_four_breakpoints_are_enough(gateway, upstream, clock):
    agent = Agent(gateway().url)
    for _ in range(3):
        agent.ask("Read the files.")
        clock.advance(PAUSE_SECONDS)
    for request in upstream.requests:
        found = lifetimes(request)
        assert found == sorted(found)  # "1h" sorts before "5m", as the API requires
        assert len(found) <= 4


def test_a_restarted_gateway_still_marks_what_it_had_cached_for_an_hour(upstream, clock):
    with gateway_to(upstream.url, clock=clock) as first:
        agent = Agent(first.url)
        agent.ask("Read the files.")
        clock.advance(PAUSE_SECONDS)
        agent.ask("Read them again.")
    with gateway_to(upstream.url, clock=clock) as second:
        agent.move(second.url)
        clock.advance(PAUSE_SECONDS)
        before = len(agent.answers)
        agent.ask("And once more.")
    assert usages(agent)[before].cache_read_tokens > 0


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05])
def test_a_session_that_ends_after_a_pause_costs_hardly_more(gateway, upstream, clock, share):
    running = gateway(replace(EAGER, gateway=GatewaySettings(stake_share=share)))
    agent = Agent(running.url)
    agent.ask("Read the files.")
    clock.advance(PAUSE_SECONDS)
    agent.ask("Read them again.")
    total = running.planner.stats()["totals"]
    assert total["billed_usd"] <= (1 + share) * total["shadow_usd"] + 1e-9
