"""Unmodified clients through the gateway: the requests sent upstream, and their stability."""

import time
from dataclasses import replace

import anthropic
import httpx2
import msgspec
import pytest

from gateway_parts import (
    EAGER,
    MODEL,
    SYSTEM,
    TOOLS,
    Agent,
    gateway_process,
    gateway_to,
    listing,
    marked,
)
from longhold.core.log import load
from longhold.core.log.entries import CacheBroke, Cleared, Failed, Replied, Said, Spilled
from longhold.core.messages import Text
from longhold.core.settings import WindowSettings, home
from longhold.insight.explain import explain
from longhold.insight.pages import session_data
from longhold.insight.read_session import read_session

SHELL = [{**TOOLS[0], "name": "Bash"}, *TOOLS]
BUILT = [
    {"role": "user", "content": "Build it."},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": listing("make", 4_000)}
        ],
    },
]
"""A build that said more than a result may."""


def logs():
    return sorted(home().glob("projects/*/gw-*.jsonl"))


def entries(kind):
    return [entry for log in logs() for entry in load(log).entries if isinstance(entry, kind)]


def without_marks(messages):
    """Give messages as the cache compares them."""
    blocks = [
        [{"type": "text", "text": m["content"]}] if isinstance(m["content"], str) else m["content"]
        for m in messages
    ]
    return [
        (m["role"], [{k: v for k, v in block.items() if k != "cache_control"} for block in content])
        for m, content in zip(messages, blocks, strict=True)
    ]


def results(messages):
    """Give the text of each result by its call."""
    return {
        block["tool_use_id"]: block["content"]
        for message in messages
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    }


def test_a_short_conversation_goes_upstream_byte_for_byte(gateway, upstream):
    agent = Agent(gateway().url)
    upstream.simulation.brain.files = 2
    agent.ask("Read two files.")
    direct = Agent(upstream.url)
    direct.messages = agent.messages[:3]
    through, upstream.bodies[:] = upstream.bodies[1], []
    direct.call()
    assert through == upstream.bodies[0]
    assert [a.content[-1].type for a in agent.answers] == ["tool_use", "tool_use", "text"]
    assert not entries(Failed)


def test_old_results_are_cleared_once_the_cache_is_cold(gateway, upstream, clock):
    agent = Agent(gateway().url)
    agent.ask("Read a dozen files.")
    clock.advance(600)
    agent.ask("Again.")
    [cleared, *_] = entries(Cleared)
    given, sent = results(agent.messages), results(upstream.requests[-1]["messages"])
    assert cleared.how == "rewritten"
    assert len(cleared.ids) >= 5
    gone = {id for entry in entries(Cleared) for id in entry.ids}
    for id, text in sent.items():
        assert (text != given[id]) == (id in gone)
        assert len(text) <= len(given[id])
    assert all("x-longhold-passed" not in headers for headers in agent.headers)


def test_what_was_sent_is_sent_again(gateway, upstream, clock):
    agent = Agent(gateway().url)
    agent.ask("Read a dozen files.")
    clock.advance(600)
    agent.ask("Again.")
    agent.ask("And again.")
    sent = [without_marks(request["messages"]) for request in upstream.requests]
    moved = [i for i in range(1, len(sent)) if sent[i][: len(sent[i - 1])] != sent[i - 1]]
    assert len(moved) == len(entries(Cleared)) > 0


def marks_in(value):
    """List every cache mark of a request."""
    if isinstance(value, list):
        return [mark for one in value for mark in marks_in(one)]
    if not isinstance(value, dict):
        return []
    own = [value["cache_control"]] if "cache_control" in value else []
    return own + [mark for one in value.values() for mark in marks_in(one)]


SMALL = replace(EAGER, window=WindowSettings(limit_tokens=64_000))


@pytest.mark.parametrize("marked_blocks", [1, 3])
def test_a_clearing_reads_what_was_cleared_before_it(gateway, upstream, marked_blocks):
    system = [*SYSTEM * marked_blocks]
    agent = Agent(gateway(SMALL).url)
    upstream.simulation.brain.files = 50
    agent.ask("Read many files.", system=system)
    [log] = logs()
    history = load(log).entries
    answers = [entry for entry in history if isinstance(entry, Replied)]
    cleared = [entry.n for entry in history if isinstance(entry, Cleared)]
    read = [next(a for a in answers if a.n > n).usage.cache_read_tokens for n in cleared]
    sent = [marks_in(request) for request in upstream.requests]
    assert len(read) >= 3
    assert max(map(len, sent)) == 4
    if marked_blocks == 3:
        assert max(read) - min(read) < 20, "the system prompt, and a short message behind it"
    else:
        assert read[0] < read[1] < read[2]


def test_a_clearing_reads_all_that_it_leaves_unchanged(gateway, upstream):
    agent = Agent(gateway(SMALL).url)
    upstream.simulation.brain.files = 50
    agent.ask("Read many files.")
    raw = [request["messages"] for request in upstream.requests]
    sent = [without_marks(messages) for messages in raw]
    moved = [i for i in range(1, len(sent)) if sent[i][: len(sent[i - 1])] != sent[i - 1]]
    assert moved
    for i in moved:
        pairs = zip(sent[i], sent[i - 1], strict=False)
        unchanged = next(at for at, (new, old) in enumerate(pairs) if new != old)
        assert marks_in(raw[i][unchanged - 1]), "the provider looks back only a few blocks"


class Rewriter(Agent):
    """A client that changes each answer before it sends it back."""

    def call(self, **more):
        answer = super().call(**more)
        for block in answer.content:
            if block.type == "tool_use":
                block.input = block.input | {"limit": 500}
        return answer


def test_for_a_client_that_changes_answers_a_live_cache_is_not_taken_for_an_empty_one(
    gateway, upstream
):
    agent = Rewriter(gateway(SMALL).url)
    upstream.simulation.brain.files = 50
    agent.ask("Read many files.")
    cleared = entries(Cleared)
    assert cleared
    assert all(one.cost_usd > 0 for one in cleared), [one.why for one in cleared]


def test_a_restarted_gateway_sends_the_same_prefix(upstream, clock):
    with gateway_to(upstream.url, clock=clock) as first:
        agent = Agent(first.url)
        agent.ask("Read a dozen files.")
        clock.advance(600)
        agent.ask("Again.")
    before = without_marks(upstream.requests[-1]["messages"])
    with gateway_to(upstream.url, clock=clock) as second:
        agent.move(second.url)
        agent.messages.append({"role": "user", "content": "Go on."})
        agent.call()
    after = without_marks(upstream.requests[-1]["messages"])
    assert after[: len(before)] == before
    assert agent.answers[-1].usage.cache_read_input_tokens > 0
    assert len(logs()) == 1


def test_killed_and_started_again_the_prefix_is_byte_equal(upstream, tmp_path):
    agent = Agent("")
    agent.messages = list(BUILT)
    with gateway_process(upstream.url) as (url, process, _):
        agent.move(url)
        agent.call(tools=SHELL)
        before = without_marks(upstream.requests[-1]["messages"])
        process.kill()
        process.wait()
    with gateway_process(upstream.url) as (url, _, _):
        agent.move(url)
        agent.messages += [{"role": "assistant", "content": "It is built."}]
        agent.messages += [{"role": "user", "content": "Test it."}]
        agent.call(tools=SHELL)
    after = without_marks(upstream.requests[-1]["messages"])
    assert len(str(before)) < len(BUILT[-1]["content"][0]["content"])
    assert after[: len(before)] == before
    assert agent.answers[-1].usage.cache_read_input_tokens > 0


def test_a_large_result_is_spilled_before_it_is_ever_sent(gateway, upstream):
    agent = Agent(gateway().url)
    agent.messages = list(BUILT)
    agent.call(tools=SHELL)
    [spilled] = entries(Spilled)
    [block] = upstream.requests[-1]["messages"][-1]["content"]
    assert len(block["content"]) < len(BUILT[-1]["content"][0]["content"]) / 2
    assert spilled.file in block["content"]
    assert block["cache_control"] == {"type": "ephemeral"}


def test_messages_of_the_system_within_the_list_pass_as_they_are(gateway, upstream):
    agent = Agent(gateway().url)
    agent.messages = [
        {"role": "user", "content": "Hello."},
        {"role": "system", "content": "The user may be in a hurry."},
    ]
    agent.call(tools=[])
    assert upstream.requests[-1]["messages"][-1]["role"] == "system"
    assert "x-longhold-passed" not in agent.headers[-1]


def test_counting_tokens_counts_what_is_sent(gateway, upstream, clock):
    agent = Agent(gateway().url)
    agent.ask("Read a dozen files.")
    clock.advance(600)
    agent.ask("Again.")
    given = {"model": MODEL, "system": SYSTEM, "tools": TOOLS, "messages": agent.messages[:-1]}
    counted = agent.client.messages.count_tokens(**given).input_tokens
    plain = agent.client.messages.count_tokens(
        **given, extra_headers={"x-longhold-bypass": "1"}
    ).input_tokens
    usage = agent.answers[-1].usage
    read = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
    assert counted == pytest.approx(read, rel=0.01)
    assert counted < 0.8 * plain


def test_the_shadow_says_what_direct_calls_would_have_cost(gateway, upstream, clock):
    running = gateway()
    agent = Agent(running.url)
    for words in ("Read a dozen files.", "Again.", "And again."):
        agent.ask(words)
        clock.advance(600)
    stats = running.planner.stats()["totals"]
    billed = upstream.simulation.stats.to_json()["totals"]["cost_usd"]["total"]
    assert stats["billed_usd"] == pytest.approx(billed, rel=1e-6)
    assert stats["saved_usd"] > 0.1 * billed
    assert stats["unpriced_calls"] == 0


def test_each_decision_has_what_it_was_to_save_beside_what_it_did(gateway, upstream, clock):
    running = gateway()
    agent = Agent(running.url)
    agent.messages = list(BUILT)
    agent.call(tools=SHELL)
    agent.messages.append({"role": "assistant", "content": "It is built."})
    agent.ask("Read a dozen files.", tools=SHELL)
    clock.advance(600)
    agent.ask("Again.", tools=SHELL)
    [session] = running.planner.stats()["sessions"]
    first, *more = session["decisions"]
    assert first["kinds"] == ["spilled"]
    assert first["predicted_usd"] == pytest.approx(first["saved_usd"], rel=0.3)
    assert any("cleared" in one["kinds"] for one in more)
    assert sum(one["saved_usd"] for one in (first, *more)) == pytest.approx(session["saved_usd"])
    predicted = sum(one["predicted_usd"] for one in (first, *more))
    assert predicted == pytest.approx(session["saved_usd"], rel=0.5)
    assert sum(one["calls"] for one in (first, *more)) == session["calls"]


@pytest.mark.parametrize("is_stream", [False, True])
async def test_the_asynchronous_client_works(gateway, upstream, is_stream):
    url = gateway().url
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
        given = {
            "model": MODEL,
            "max_tokens": 100,
            "messages": [{"role": "user", "content": "Hello"}],
        }
        if is_stream:
            async with client.messages.stream(**given) as stream:
                answer = await stream.get_final_message()
        else:
            answer = await client.messages.create(**given)
    assert answer.content[0].text == "Done after 0."


def test_streams_arrive_as_upstream_sent_them(gateway, upstream):
    agent = Agent(gateway().url)
    agent.messages = [{"role": "user", "content": "Hello"}]
    given = {"model": MODEL, "max_tokens": 50, "messages": marked(agent.messages)}
    with agent.client.messages.stream(**given) as stream:
        kinds = [event.type for event in stream]
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert msgspec.json.decode(upstream.bodies[-1])["stream"] is True


def test_what_the_simulator_bills_is_no_money_in_reports(gateway, upstream):
    upstream.simulation.brain.files = 2
    Agent(gateway().url).ask("Read two files.")
    [log] = home().glob("projects/*/gw-*.jsonl")
    found = read_session(log)
    assert found.agent == "Anthropic", "what the client calls itself"
    assert len(found.calls) == 3
    assert sum(call.tally.usd for call in found.calls) == 0
    assert {call.model for call in found.calls} == {f"simulated/{MODEL}"}


def test_what_a_provider_bills_is_money_in_reports(gateway, upstream, monkeypatch):
    """The same answers, without the simulator's word for it."""
    monkeypatch.setattr("longhold.simulator.server.SIMULATED", "x-nothing")
    upstream.simulation.brain.files = 2
    Agent(gateway().url).ask("Read two files.")
    [log] = home().glob("projects/*/gw-*.jsonl")
    found = read_session(log)
    assert sum(call.tally.usd for call in found.calls) > 0
    assert {call.model for call in found.calls} == {MODEL}


def test_the_list_has_titles_before_a_row_is_opened(upstream):
    upstream.simulation.brain.files = 0
    with gateway_process(upstream.url) as (url, _, pages):
        Agent(url).ask("Count the sheep.")
        for _ in range(50):
            if "Count the sheep." in httpx2.get(pages).text:
                break
            time.sleep(0.2)
        else:
            pytest.fail("a live session has no title")
    with gateway_process(upstream.url) as (_, _, again):
        assert "Count the sheep." in httpx2.get(again).text
    assert pages.rpartition("sessions/")[2] == again.rpartition("sessions/")[2]


def test_a_break_by_our_own_clearing_is_shown_as_expected():
    history = [
        Said(n=1, content=(Text(text="Hello"),)),
        CacheBroke(n=2, cause="message", detail="cleared", expected="cleared", lost_tokens=9_000),
        CacheBroke(n=3, cause="provider", detail="lost", lost_tokens=9_000),
    ]
    rows = session_data._change_columns(explain(history), history)
    assert (rows["n"], rows["is_expected"]) == ([2, 3], [True, False])
