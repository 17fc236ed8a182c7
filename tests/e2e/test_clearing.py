"""Clearing over HTTP with the official SDK: cache edits, and clearing by the server, also after the
cache expired, the session was resumed, or the provider ignored an edit."""

import re
from contextlib import ExitStack
from dataclasses import replace

import pytest

from longhold.core.log.entries import CacheBroke, Cleared, Failed, Replied
from longhold.core.log.stores import default_store
from longhold.core.messages import ToolUse
from longhold.core.models.anthropic import AnthropicModel
from longhold.core.models.protocol import collect
from longhold.core.request.server_side import deleted_tokens
from longhold.core.settings import CacheSettings, ClearSettings, CostSettings, Settings
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, SimulatorClock, SimulatorSettings, run_simulator
from longhold.simulator.brains import text, tool_use

MODEL = "simulated/claude-opus-5"
TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("Read", "Ask", "History")]
SYSTEM = "Be careful with what you read. " * 200
FREE = CostSettings(need_weight=0.0)
"""Information has no price here: how results are cleared is shown, not when that pays."""
EDITS = Settings(
    cache=CacheSettings(lifetime="5m", diagnose=False),
    clear=ClearSettings(warm_share=0.0),
    cost=FREE,
)
SERVER = replace(
    EDITS,
    clear=ClearSettings(
        server=True,
        edits=False,
        paid=False,
        server_trigger_tokens=9_000,
        server_target_tokens=6_000,
    ),
)


class Reader:
    """Reads one file after the other, and keeps what it was shown."""

    def __init__(self):
        self.seen = []

    def answer(self, request):
        self.seen.append(request.messages)
        calls = sum(m["role"] == "assistant" for m in request.messages)
        use = tool_use("Read", {"file_path": f"/shop/{calls}.py"})
        return BrainAnswer(blocks=(text("next"), use))


class Work:
    """A session, and a model that answers it through the SDK."""

    def __init__(self, simulator, brain, store, settings):
        self.simulator, self.brain, self.store, self.settings = simulator, brain, store, settings
        self.model = AnthropicModel(MODEL, base_url=simulator.url, api_key="none")
        self.told = []
        self.session = Session.open(
            model=MODEL,
            system=SYSTEM,
            tools=TOOLS,
            store=store,
            settings=settings,
            notify=self.told.append,
            clock=simulator.simulation.clock.now,
        )
        self.session.user("Read everything.")
        self.usages = []

    @property
    def cleared(self):
        return [e for e in self.session.view.history if isinstance(e, Cleared)]

    @property
    def alarms(self):
        history = self.session.view.history
        return [e for e in history if isinstance(e, CacheBroke) and not e.expected]

    async def prepare(self):
        stages = self.session._layers.stages
        return await self.session._engine.prepare(stages, max_output_tokens=500)

    async def call(self):
        """Send what there is, and give back what the tool says."""
        request = await self.prepare()
        reply = await collect(self.model.stream(request))
        self.session._engine.record_reply(reply)
        self.usages.append(reply.usage)
        for block in reply.content:
            if isinstance(block, ToolUse):
                self.session.tool_result(block.id, f"{block.input} " + "some words of code " * 150)
        return request

    async def calls(self, count):
        for _ in range(count):
            request = await self.call()
        return request

    def resumed(self, settings=None):
        """Close the session and take it up again, as another process would."""
        self.session.close()
        self.session = Session.resume(
            self.session.id,
            store=self.store,
            settings=settings or self.settings,
            clock=self.simulator.simulation.clock.now,
        )

    async def close(self):
        self.session.close()
        await self.model.close()


@pytest.fixture
async def work(tmp_path):
    """Start work against a simulator of its own; all of it ends with the test."""
    with ExitStack() as simulators:
        made = []

        def start(settings=EDITS, **simulated):
            brain = Reader()
            context = run_simulator(
                brain=brain,
                settings=SimulatorSettings(**simulated),
                clock=SimulatorClock(is_frozen=True),
            )
            simulator = simulators.enter_context(context)
            made.append(Work(simulator, brain, default_store(), settings))
            return made[-1]

        yield start
        for one in made:
            await one.close()


def edits_in(request):
    """List the ids that a request deletes."""
    return [
        edit["cache_reference"]
        for message in request.kwargs["messages"]
        for block in message["content"]
        if block["type"] == "cache_edits"
        for edit in block["edits"]
    ]


async def test_edits_delete_inside_the_cache_and_break_nothing(work):
    one = work()
    await one.calls(12)
    assert one.cleared == []
    request = await one.call()
    [entry] = one.cleared
    assert entry.how == "edited" and len(entry.ids) == 7
    assert edits_in(request) == list(entry.ids)
    before, after = one.usages[-2:]
    assert deleted_tokens(after) > 3_000
    kept = before.cache_read_tokens + before.cache_write_tokens - deleted_tokens(after)
    assert after.cache_read_tokens == kept
    assert one.alarms == []
    assert one.session.fullness().used_tokens < before.prompt_tokens


async def test_edits_are_sent_again_at_their_place_and_join_later_ones(work):
    one = work()
    await one.calls(13)
    first = deleted_tokens(one.usages[-1])
    await one.calls(3)
    assert {deleted_tokens(usage) for usage in one.usages[-3:]} == {first}
    request = await one.calls(6)
    assert len(one.cleared) == 2
    assert edits_in(request) == [id for entry in one.cleared for id in entry.ids]
    assert deleted_tokens(one.usages[-1]) > first
    assert one.alarms == []


async def test_when_the_cache_dies_edits_become_text(work):
    one = work()
    await one.calls(13)
    one.simulator.simulation.clock.advance(600)
    request = await one.call()
    edited, rewritten = one.cleared
    assert rewritten.how == "rewritten" and edited.ids == rewritten.ids
    assert rewritten.texts[:7] == edited.texts
    assert edits_in(request) == []
    shown = one.brain.seen[-1][2]["content"][0]["content"]
    assert shown.startswith("[Read /shop/0.py: ") and "History #" in shown
    assert one.usages[-1].cache_read_tokens == 0
    await one.call()
    assert one.usages[-1].cache_read_tokens > 5_000
    assert [alarm.cause for alarm in one.alarms] == ["lifetime_5m"]


async def test_a_session_taken_up_again_sends_its_pins(work):
    one = work()
    await one.calls(13)
    ids, deleted = one.cleared[0].ids, deleted_tokens(one.usages[-1])
    one.resumed()
    request = await one.call()
    assert tuple(edits_in(request)) == ids
    assert deleted_tokens(one.usages[-1]) == deleted
    assert one.usages[-1].cache_read_tokens > 3_000


async def test_pins_stay_when_clearing_is_turned_off(work):
    one = work()
    await one.calls(13)
    ids = one.cleared[0].ids
    one.resumed(replace(EDITS, clear=ClearSettings(on=False)))
    assert tuple(edits_in(await one.call())) == ids


async def test_pins_that_a_lost_cache_no_longer_honours_are_dropped(work):
    one = work()
    await one.calls(13)
    one.simulator.simulation.cache.clear()
    await one.call()
    assert deleted_tokens(one.usages[-1]) == 0
    request = await one.call()
    edited, rewritten = one.cleared
    assert rewritten.how == "rewritten" and rewritten.ids == edited.ids
    assert edits_in(request) == []
    assert not any(isinstance(e, Failed) for e in one.session.view.history)


async def test_a_provider_that_ignores_edits_is_not_asked_again(work):
    one = work(acts_on_cache_edits=False)
    await one.calls(14)
    edited, rewritten = one.cleared
    assert (edited.how, rewritten.how) == ("edited", "rewritten")
    assert [e.what for e in one.session.view.history if isinstance(e, Failed)] == ["cache edits"]
    one.resumed()
    request = await one.calls(12)
    assert all(entry.how == "rewritten" for entry in one.cleared[1:])
    assert edits_in(request) == []


async def test_a_fork_shares_the_pins(work):
    one = work()
    request = await one.calls(13)
    prefix = one.session._engine.prefix()
    unmarked = [
        [{k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]]
        for message in request.kwargs["messages"]
    ]
    assert [message["content"] for message in prefix.messages][: len(unmarked)] == unmarked
    assert edits_in(request)


async def test_what_the_server_cleared_is_read_back(work):
    one = work(SERVER)
    await one.calls(18)
    assert {entry.how for entry in one.cleared} == {"server"}
    assert all(entry.inferred for entry in one.cleared)
    shown = [
        block["content"] == "[tool result cleared]"
        for message in one.brain.seen[-1]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]
    await one.prepare()  # takes in the last word
    gone = [
        result.cleared is not None
        for item in one.session.view.items
        for result in getattr(item, "results", ())
    ]
    assert gone[: len(shown)] == shown and any(shown)
    assert one.alarms == []


async def test_what_the_server_cleared_is_told_with_tokens_and_money_once(work):
    one = work(SERVER)
    await one.calls(18)
    await one.prepare()  # takes in the last word
    figures = [
        re.match(r"the provider cleared (\d+) results? on its side, ([\d,]+)", t) for t in one.told
    ]
    answers = [e for e in one.session.view.history if isinstance(e, Replied) and e.applied]
    last = answers[-1].applied[-1]
    assert sum(int(f[1]) for f in figures) == last["cleared_tool_uses"]
    assert sum(int(f[2].replace(",", "")) for f in figures) == last["cleared_input_tokens"]
    assert all("each call costs $0.0" in line for line in one.told)
    lines = len(one.told)
    for _ in range(3):
        await one.prepare()
    assert len(one.told) == lines


async def test_the_gauge_knows_what_the_server_cleared(work):
    one = work(SERVER)
    await one.calls(18)
    await one.prepare()  # takes in the last word
    gained = one.session.fullness().used_tokens - one.usages[-1].prompt_tokens
    assert 300 < gained < 1_500, "an answer and a result"


async def test_a_server_that_does_not_clear_changes_nothing(work):
    one = work(SERVER, acts_on_context_management=False)
    await one.calls(18)
    assert one.cleared == [] and one.usages[-1].prompt_tokens > 9_000
