"""Undeclared changes, seen through the simulator's cache: each is found and named.

The official SDK sends the session's own requests over HTTP. A change is made without an entry, as a
bug would make it. The break must name this change and no other.
"""

from pathlib import Path

import msgspec
import pytest

from longhold.core.log.entries import CacheBroke, Compacted, Framed, Switched
from longhold.core.messages import Text
from longhold.core.models.protocol import Request
from longhold.core.request.cache.monitor import CacheMonitor

from ..conftest import SECTIONS, TOOLS, prose


def shown(broke: CacheBroke) -> str:
    """Read the diff that an entry links."""
    return Path(broke.diff).read_text()


@pytest.fixture(autouse=True)
def _let_changes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """The net over all tests would catch what is changed here on purpose."""
    monkeypatch.delenv("LONGHOLD_STRICT")


def reframe(chat, **changes):
    """Change the frame without an entry."""
    chat.view.frame = msgspec.structs.replace(chat.view.frame, **changes)


def changed_tools(name, **changes):
    """Give the tools with one of them changed."""
    return tuple(tool | changes if tool["name"] == name else tool for tool in TOOLS)


async def warm(chat, **options):
    """Begin a chat and warm its cache."""
    one = chat(**options)
    for _ in range(3):
        await one.ask()
    assert one.breaks == []
    return one


async def one_break(chat):
    """Ask once more and give the break that this shows."""
    await chat.ask()
    [broke] = chat.breaks
    await chat.ask()
    assert len(chat.breaks) == 1, "a break is told once"
    return broke


@pytest.mark.parametrize("name", ["Read", "Write", "Bash"])
async def test_a_tools_description_is_named(chat, name):
    one = await warm(chat)
    reframe(one, tools=changed_tools(name, description="now it says something else"))
    broke = await one_break(one)
    assert (broke.cause, broke.first_moved) == ("tool", f"tool {name}")
    assert broke.detail == f"the description of tool {name} changed"
    assert "+now it says something else" in shown(broke)
    assert broke.lost_tokens > 5_000
    assert broke.usd > 0


@pytest.mark.parametrize("name", ["Read", "Write", "Bash"])
async def test_a_tools_schema_is_named(chat, name):
    one = await warm(chat)
    reframe(one, tools=changed_tools(name, input_schema={"type": "object", "properties": {}}))
    broke = await one_break(one)
    assert broke.detail == f"the input_schema of tool {name} changed"


async def test_a_tool_that_came_and_one_that_went_are_named(chat):
    one = await warm(chat)
    reframe(one, tools=tuple(TOOLS[:2]))
    assert (await one_break(one)).detail == "tool Bash is gone"
    other = await warm(chat)
    reframe(other, tools=(*TOOLS, TOOLS[0] | {"name": "Extra"}))
    assert (await one_break(other)).detail == "tool Extra is new"


@pytest.mark.parametrize("i", [0, 1], ids=["rules", "environment"])
async def test_a_section_is_named(chat, i):
    one = await warm(chat)
    other = msgspec.structs.replace(SECTIONS[i], text=f"Changed. {SECTIONS[i].text}")
    reframe(one, sections=tuple(other if s is SECTIONS[i] else s for s in SECTIONS))
    broke = await one_break(one)
    assert (broke.cause, broke.first_moved) == ("section", f"system section {SECTIONS[i].name}")


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_an_early_message_is_named(chat, place):
    one = await warm(chat)
    item = one.view.items[place]
    one.view._list.put(
        place, msgspec.structs.replace(item, content=(Text(text="rewritten history"),))
    )
    broke = await one_break(one)
    assert (broke.cause, broke.first_moved) == ("message", f"message {place + 1}")
    assert "+rewritten history" in shown(broke)


async def test_the_model_is_named(chat):
    one = await warm(chat)
    one.view.model = "claude-opus-5"
    broke = await one_break(one)
    assert broke.cause == "model"
    assert broke.detail == "claude-opus-5 was called instead of claude-sonnet-5-5"


async def test_the_effort_is_named(chat):
    one = await warm(chat)
    reframe(one, options={"output_config": {"effort": "low"}})
    broke = await one_break(one)
    assert (broke.cause, broke.first_moved) == ("effort", "effort")
    assert broke.detail == 'effort changed from none to "low"'


async def test_the_thinking_config_is_named(chat):
    one = await warm(chat, model="claude-opus-5", options={"thinking": {"type": "adaptive"}})
    reframe(one, options={"thinking": {"type": "disabled"}})
    assert (await one_break(one)).cause == "thinking"


async def test_another_option_is_named_by_its_key(chat):
    one = await warm(chat)
    reframe(one, options={"tool_choice": {"type": "none"}})
    assert (await one_break(one)).first_moved == "option tool_choice"


async def test_a_beta_header_is_named(chat):
    one = await warm(chat)
    reframe(one, betas=("context-management-2025-06-27",))
    one.simulator.simulation.cache.clear()
    broke = await one_break(one)
    assert broke.cause == "beta"
    assert broke.first_moved == "beta header context-management-2025-06-27"


async def test_six_idle_minutes_are_named(chat):
    one = await warm(chat)
    one.wait(minutes=6)
    broke = await one_break(one)
    assert (broke.cause, broke.first_moved) == ("lifetime_5m", "")
    assert broke.detail == "the cache lasts 5 minutes, and the call came after 6 minutes"


async def test_four_idle_minutes_break_nothing(chat):
    one = await warm(chat)
    for _ in range(3):
        one.wait(minutes=4)
        await one.ask()
    assert one.breaks == []


async def test_a_cache_lost_for_no_visible_reason_is_the_providers(chat):
    one = await warm(chat)
    one.simulator.simulation.cache.clear()
    assert (await one_break(one)).cause == "provider"


def for_an_hour(request):
    """Let every marker hold for an hour."""
    wire = msgspec.json.encode(request.kwargs)
    wire = wire.replace(b'{"type":"ephemeral"}', b'{"type":"ephemeral","ttl":"1h"}')
    return Request(kwargs=msgspec.json.decode(wire), betas=request.betas)


def without_message_markers(request):
    """Take the markers off all messages."""
    kwargs = msgspec.json.decode(msgspec.json.encode(request.kwargs))
    for message in kwargs["messages"]:
        for block in message["content"]:
            block.pop("cache_control", None)
    return Request(kwargs=kwargs, betas=request.betas)


class Wired:
    """A chat whose requests are changed on their way out, and monitored there."""

    def __init__(self, chat, change=lambda request: request):
        self.chat, self.change = chat, change
        self.monitor = CacheMonitor(clock=chat.simulator.simulation.clock.now)

    async def ask(self):
        self.chat.session.user(prose(len(self.chat.view.history), 1_000))
        request = self.change(await self.chat.session.prepare())
        history = self.chat.view.history
        self.monitor.track_request(request, history)
        await self.chat.session.record(await self.chat.send(request))
        return self.monitor.observe_reply(self.chat.view.history)


async def test_sixty_one_idle_minutes_are_named(chat):
    wired = Wired(chat(), for_an_hour)
    for _ in range(3):
        assert await wired.ask() is None
        wired.chat.wait(minutes=6)
    wired.chat.wait(minutes=61)
    broke = await wired.ask()
    assert broke.cause == "lifetime_1h"
    assert await wired.ask() is None


async def test_a_lost_marker_is_named(chat):
    wired = Wired(chat())
    for _ in range(4):
        assert await wired.ask() is None
    wired.change = without_message_markers
    broke = await wired.ask()
    assert (broke.cause, broke.first_moved) == ("marker", "marker on the last message (5m)")


async def test_a_change_behind_our_back_is_the_providers_for_all_we_know(chat):
    wired = Wired(chat())
    for _ in range(4):
        await wired.ask()
    wired.change = without_message_markers
    await wired.ask()
    assert [broke.cause for broke in wired.chat.breaks] == ["provider"]


async def test_announced_drops_are_told_but_are_no_alarm(chat):
    one = await warm(chat)
    record = one.session._engine.record
    record(Switched(model="claude-opus-5", reason="asked for"))
    await one.ask()
    record(Framed(sections=tuple(SECTIONS), tools=tuple(TOOLS[:2])))
    await one.ask()
    first, last = one.view.items[0].order, one.view.items[-3].order
    record(Compacted(first=first, last=last, summary=(Text(text=prose("summary", 50)),)))
    await one.ask()
    told = [(broke.cause, broke.expected) for broke in one.breaks]
    assert told == [("model", "switched"), ("frame", "framed"), ("compaction", "compacted")]
    assert one.alarms == []


async def test_an_announcement_does_not_excuse_another_change(chat):
    one = await warm(chat)
    first, last = one.view.items[0].order, one.view.items[-3].order
    one.session._engine.record(Compacted(first=first, last=last, summary=(Text(text="short"),)))
    reframe(one, tools=changed_tools("Bash", description="else"))
    await one.ask()
    [broke] = one.alarms
    assert (broke.cause, broke.detail) == (
        "tool",
        "the description of tool Bash changed; also message 1",
    )
