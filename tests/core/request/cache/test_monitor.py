"""The cache monitor: which calls it compares, and what it records."""

import pytest
from msgspec.structs import replace

from longhold.core.log.entries import (
    Cleared,
    Compacted,
    Pinned,
    Ran,
    Replied,
    Said,
    Spilled,
    Switched,
)
from longhold.core.messages import Text, Usage
from longhold.core.models.protocol import Request
from longhold.core.request.cache.monitor import SOURCES, CacheMonitor, list_announced


@pytest.fixture(autouse=True)
def _let_changes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """The net over all tests would catch what is changed here on purpose."""
    monkeypatch.delenv("LONGHOLD_STRICT")


class Talk:
    """A monitor, a fixed clock and a history."""

    def __init__(self):
        self.now, self.history = 1_000.0, []
        self.monitor = CacheMonitor(clock=lambda: self.now)

    def ask(self, read=0, write=0, *, source="main", diagnostics=None, **kwargs):
        """Send something and have it answered; without usage the call failed."""
        request = Request(kwargs={"model": "claude-opus-5", "messages": [], **kwargs})
        asked = self.monitor.track_request(request, self.history, source=source)
        self.history.append(asked)
        usage = Usage(cache_read_tokens=read, cache_write_tokens=write)
        if read or write:
            self.history.append(Replied(response_id="r", content=(), usage=usage))
        broke = self.monitor.observe_reply(self.history, source=source, diagnostics=diagnostics)
        return asked, broke


def test_the_first_call_breaks_nothing():
    assert Talk().ask(write=50_000)[1] is None


def test_a_break_is_told_once_with_its_source_and_the_providers_word():
    talk = Talk()
    talk.ask(write=50_000, system="a")
    said = {"cache_miss_reason": {"type": "system_changed", "cache_missed_input_tokens": 1}}
    broke = talk.ask(write=50_000, system="b", diagnostics=said)[1]
    assert (broke.source, broke.cause, broke.provider) == ("main", "section", "system_changed")
    assert talk.ask(read=50_000, system="b")[1] is None


def test_a_call_that_failed_is_no_baseline():
    talk = Talk()
    talk.ask(write=50_000, system="a")
    talk.ask(system="b")
    assert talk.ask(read=50_000, system="a")[1] is None
    talk.ask(system="b")
    assert talk.ask(write=50_000, system="c")[1].first_moved == "system section block 1"


def test_sources_are_compared_with_themselves():
    talk = Talk()
    talk.ask(write=50_000, system="a")
    assert talk.ask(write=9_000, system="b", source="notes")[1] is None
    assert talk.ask(read=50_000, system="a")[1] is None
    assert talk.ask(write=9_000, system="c", source="notes")[1].source == "notes"


def test_only_so_many_sources_are_watched():
    talk = Talk()
    for i in range(SOURCES + 1):
        talk.ask(write=50_000, system="a", source=f"s{i}")
    assert talk.ask(write=50_000, system="b", source="s0")[1] is None
    assert talk.ask(write=50_000, system="b", source=f"s{SOURCES}")[1] is not None
    assert len(talk.monitor._answered) == SOURCES


def test_hashes_are_written_down_when_they_change():
    talk = Talk()
    tools = [{"name": "A"}, {"name": "B"}]
    first = talk.ask(read=1, tools=tools, system="s")[0]
    assert list(first.tool_hashes) == ["A", "B"]
    assert list(first.section_hashes) == ["block 1"]
    again = talk.ask(read=1, tools=tools, system="s")[0]
    assert (again.tool_hashes, again.section_hashes) == ({}, {})
    assert again.options_hash == first.options_hash
    changed = talk.ask(read=1, tools=[{"name": "A", "x": 1}, tools[1]], system="s")[0]
    assert list(changed.tool_hashes) == ["A", "B"]


def test_which_entries_announce_a_move():
    entries = [
        Said(content=()),
        Cleared(ids=("a",), texts=("",)),
        Ran(tool_use_id="b", content="long"),
        Spilled(tool_use_id="b", text="short", file="f"),
        Pinned(targets=(1,)),
        Compacted(first=1, last=2, summary=(Text(text="s"),)),
        Switched(model="m"),
    ]
    assert list_announced(entries) == ["switched", "compacted", "cleared"]
    assert list_announced([Spilled(tool_use_id="old", text="", file="f")]) == ["spilled"]


def beside(talk, read, *, at=0.0, source="notes", **kwargs):
    """Make a fork's call on the last call of the conversation; give what broke."""
    talk.now += at
    before = talk.monitor.last()
    request = Request(kwargs={"model": "claude-opus-5", "messages": [], **kwargs})
    call = talk.monitor.track_fork(request, talk.history, before=before)
    call = replace(call, usage=Usage(cache_read_tokens=read))
    return talk.monitor.observe_fork_reply(call, talk.history, before=before, source=source)


def test_a_fork_is_compared_with_its_parents_last_call():
    talk = Talk()
    talk.ask(write=50_000, system="a")
    assert beside(talk, 50_000, system="a") is None
    broke = beside(talk, 0, system="b")
    assert (broke.source, broke.cause) == ("notes", "section")


def test_a_fork_is_no_baseline():
    talk = Talk()
    talk.ask(write=50_000, system="a")
    beside(talk, 0, system="b")
    assert beside(talk, 50_000, system="a") is None
    assert talk.ask(read=50_000, system="a")[1] is None
    assert beside(Talk(), 0, system="a") is None


def test_a_fork_renews_what_it_reads():
    talk = Talk()
    talk.ask(write=50_000, system="a")
    beside(talk, 50_000, at=240.0, system="a")
    talk.now += 240.0
    assert talk.ask(write=50_000, system="a")[1].cause == "provider"
    beside(talk, 0, at=240.0, system="a")
    talk.now += 240.0
    assert talk.ask(write=50_000, system="a")[1].cause == "lifetime_5m"


def test_a_marker_further_back_in_a_longer_request_is_no_move():
    mark = {"cache_control": {"type": "ephemeral"}}
    said = {"role": "user", "content": [{"type": "text", "text": "a"} | mark]}
    more = {"role": "assistant", "content": [{"type": "text", "text": "b"}]}
    talk = Talk()
    talk.ask(write=50_000, messages=[said])
    assert beside(talk, 0, messages=[said, more]).cause == "provider"
    long = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    said = {"role": "user", "content": [{"type": "text", "text": "a"} | long]}
    assert beside(talk, 0, messages=[said, more]).cause == "marker"
