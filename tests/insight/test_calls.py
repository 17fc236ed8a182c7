"""Every call by its usage, and why it missed the cache according to the log."""

import pytest
from msgspec import structs

from longhold.core.log.entries import (
    Asked,
    CacheBroke,
    Cleared,
    Compacted,
    Failed,
    Forked,
    Framed,
    Ran,
    Replied,
    Said,
    Snipped,
)
from longhold.core.messages import Text, Thinking, Usage
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import price_call
from longhold.insight.calls import (
    expires_at,
    explain_calls,
    last_of_conversation,
    sum_calls,
    totals,
)
from longhold.insight.cost import bill, kinds_json

START = 1_780_000_000.0
OPUS = "claude-opus-4-5"


class Story:
    """A history told call by call, ten seconds between things unless said otherwise."""

    def __init__(self, model=OPUS):
        self.entries, self.now, self.model = [], START, model

    def add(self, entry_type, **fields):
        self.now += 10
        self.entries.append(entry_type(n=len(self.entries) + 1, at=self.now, **fields))
        return self

    def said(self, text="go on", **fields):
        return self.add(Said, content=(Text(text=text),), **fields)

    def replied(
        self, read=0, write=0, plain=10, *, long=False, thinks=True, level="", model="", id=""
    ):
        usage = Usage(
            input_tokens=plain,
            output_tokens=100,
            cache_read_tokens=read,
            cache_write_tokens=write,
            cache_write_5m_tokens=0 if long else write,
            cache_write_1h_tokens=write if long else 0,
        )
        thought = (Thinking(thinking="hm"),) if thinks else ()
        return self.add(
            Replied,
            response_id=id or f"r{len(self.entries)}",
            model=model or self.model,
            content=(*thought, Text(text="done")),
            usage=usage,
            thinking=level,
        )

    def call(self, *args, **options):
        return self.said().replied(*args, **options)

    def wait(self, minutes):
        self.now += 60 * minutes
        return self

    def calls(self):
        return explain_calls(self.entries)


def warm(**options):
    """Two calls, the second of which reads what the first wrote."""
    return Story().call(0, 50_000, **options).call(50_000, 1_000, **options)


def cause_of(story):
    """Give the cause of the last call."""
    return story.calls()[-1].cause


def test_a_call_is_told_by_its_usage():
    first, second = warm().calls()
    tally = first.tally
    assert (tally.cache_read_tokens, tally.cache_write_tokens, tally.input_tokens) == (
        0,
        50_000,
        10,
    )
    assert first.seconds_since is None
    assert second.tally.hit_share == pytest.approx(50_000 / 51_010)
    assert second.seconds_since == 20
    assert second.tally.usd == pytest.approx(
        (50_000 * 0.5 + 1_000 * 6.25 + 10 * 5 + 100 * 25) / 1e6
    )
    assert second.tally.bare_usd == pytest.approx((51_010 * 5 + 100 * 25) / 1e6)
    assert not first.is_cold
    assert not second.is_cold


def test_an_answer_in_pieces_is_one_call():
    story = Story().said().replied(0, 9_000, id="r").replied(0, 9_000, id="r")
    assert len(story.calls()) == 1


def test_the_first_call_is_not_cold():
    [call] = Story().call(0, 90_000).calls()
    assert (call.is_cold, call.cause) == (False, "")


@pytest.mark.parametrize(("read", "is_cold"), [(25_499, True), (25_500, False)])
def test_cold_is_under_half_of_what_could_be_read(read, is_cold):
    story = warm().call(read, 51_000 - read)
    assert story.calls()[-1].is_cold == is_cold


@pytest.mark.parametrize(
    ("long", "minutes", "cause"),
    [
        (False, 4, "provider"),
        (False, 6, "lifetime_5m"),
        (True, 6, "provider"),
        (True, 61, "lifetime_1h"),
    ],
)
def test_idle_time_counts_by_the_lifetime_that_was_written(long, minutes, cause):
    assert cause_of(warm(long=long).wait(minutes).call(0, 52_000, long=long)) == cause


def test_idle_time_runs_from_question_to_question():
    story = warm()
    story.said().wait(4)
    story.replied(51_000, 500).wait(2).said().replied(0, 52_000)
    assert cause_of(story) == "lifetime_5m"


@pytest.mark.parametrize(
    ("entry", "fields", "cause"),
    [
        (Compacted, {"first": 1, "last": 3, "summary": ()}, "compaction"),
        (Snipped, {"targets": (1,)}, "snip"),
    ],
)
def test_what_was_done_to_the_history_is_expected(entry, fields, cause):
    call = warm().wait(6).add(entry, **fields).call(0, 20_000).calls()[-1]
    assert (call.cause, call.is_expected) == (cause, True)
    assert call.ideal_usd == call.tally.usd


def test_clearing_a_dead_cache_is_booked_as_the_expiry():
    emptied = {"ids": ("a",), "texts": ("",)}
    idle = warm().wait(6).add(Cleared, **emptied).call(0, 20_000).calls()[-1]
    assert (idle.cause, idle.is_expected) == ("lifetime_5m", False)
    prompt = warm().wait(1).add(Cleared, **emptied).call(0, 20_000).calls()[-1]
    assert (prompt.cause, prompt.is_expected) == ("clearing", True)


def test_another_model_has_a_cache_of_its_own():
    assert cause_of(warm().call(0, 52_000, model="claude-haiku-4-5")) == "model"
    assert cause_of(warm().call(0, 52_000, model="claude-opus-4-5-20251101")) == "provider"


def test_leaving_the_agent_and_coming_back_is_a_resume():
    story = warm().said("<command-name>/exit</command-name>").call(0, 52_000)
    assert cause_of(story) == "resume"


def test_thinking_that_was_switched_is_a_cause_where_the_transcript_records_it():
    story = Story().call(0, 50_000, level="high").call(50_000, 10, level="high")
    assert cause_of(story.call(9_000, 42_000, level="off")) == "thinking"
    assert story.calls()[-1].detail == "thinking was switched from high to off"


def test_an_answer_without_thinking_does_not_show_that_it_was_off():
    assert cause_of(warm().call(20_000, 32_000, thinks=False)) == "provider"
    story = Story().call(0, 50_000, level="high").call(50_000, 10, level="high")
    assert cause_of(story.call(9_000, 42_000, thinks=False, level="high")) == "provider"


def test_thinking_that_is_no_longer_sent_is_expected():
    story = Story("claude-haiku-4-5").call(0, 50_000).call(50_000, 1_000).call(9_000, 41_000)
    call = story.calls()[-1]
    assert (call.cause, call.is_expected) == ("thinking", True)


def test_a_prompt_that_shrank_had_something_taken_out():
    story = warm().add(Ran, tool_use_id="t", content="x").replied(5_000, 20_000)
    assert cause_of(story) == "history"


def test_without_a_reason_it_was_the_provider():
    story = warm().add(Failed, what="api", error="529").call(0, 52_000)
    call = story.calls()[-1]
    assert call.cause == "provider"
    assert "1 calls failed in between" in call.detail


def test_what_was_found_at_the_time_counts_more_than_guesses():
    story = warm().wait(6).call(20_000, 32_000)
    story.add(CacheBroke, cause="tool", detail="the description of tool X changed")
    call = story.calls()[-1]
    assert (call.cause, call.detail) == ("tool", "the description of tool X changed")


def test_requests_before_and_after_a_restart_are_compared_by_their_hashes():
    story = Story().add(Asked, tool_hashes={"A": "1", "B": "2"}, options_hash="o")
    story.replied(0, 50_000).add(Asked, options_hash="o").replied(50_000, 100)
    story.add(Asked, tool_hashes={"A": "1", "B": "9"}, options_hash="o").replied(0, 51_000)
    assert story.calls()[-1].detail == "tool B changed"


def test_an_ideal_cache_reads_all_that_was_sent_before():
    call = warm().wait(6).call(0, 52_000).calls()[-1]
    assert call.tally.lost_tokens == 51_000
    new = 52_010 - 51_010
    ideal = (51_010 * 0.5 + new * 6.25 + 100 * 25) / 1e6
    assert call.ideal_usd == pytest.approx(ideal)
    assert call.tally.lost_usd == pytest.approx(51_000 * (6.25 - 0.5) / 1e6)


def test_what_edits_deleted_in_the_cache_is_no_loss():
    story = Story("simulated/claude-opus-5").call(write=100_000)
    for read, deleted in ((47_000, 53_000), (47_000, 53_000), (0, 0)):
        story.call(read=read, write=1_000)
        extra = {"cache_deleted_input_tokens": deleted}
        last = story.entries[-1]
        story.entries[-1] = structs.replace(last, usage=structs.replace(last.usage, extra=extra))
    _, deleting, after, lost = story.calls()
    assert (deleting.is_cold, deleting.cause, deleting.tally.lost_tokens) == (False, "", 0)
    assert (after.is_cold, after.tally.lost_tokens) == (False, 0)
    assert deleting.ideal_usd == pytest.approx(deleting.tally.usd, rel=0.01)
    assert (lost.is_cold, lost.tally.lost_tokens) == (True, 48_000)


def test_totals_add_up():
    calls = warm().call(51_000, 10, model="nobody-knows").calls()
    total = totals(calls)
    assert (total["calls"], total["cold_calls"], total["unpriced_calls"]) == (3, 0, 1)
    assert total["usd"] == pytest.approx(sum(call.tally.usd for call in calls))
    assert sum_calls(calls).hit_share == pytest.approx(101_000 / (50_010 + 51_010 + 51_020))


def test_when_the_cache_dies():
    calls = warm(long=True).calls()
    assert expires_at(calls[-1]) == START + 30 + 3_600


def test_times_that_make_no_sense_are_no_idle_time():
    story = warm()
    story.now -= 90_000
    call = story.call(0, 52_000).calls()[-1]
    assert (call.seconds_since, call.cause) == (None, "provider")


def test_every_cold_call_on_record_has_a_cause(recorded):
    from longhold.insight.transcripts.formats import open_transcript

    with open_transcript(recorded) as transcript:
        calls = explain_calls(transcript.entries)
    assert all(call.cause and call.detail for call in calls if call.is_cold)


def forked(story, read, *, source="notes", write=0):
    """A fork's call, two seconds long."""
    usage = Usage(input_tokens=50, cache_read_tokens=read, cache_write_tokens=write)
    return story.add(Forked, source=source, model=OPUS, usage=usage, seconds=2.0)


def test_calls_of_forks_stand_among_the_others_under_their_source():
    story = forked(Story().call(0, 50_000), 50_000).call(50_000, 200)
    calls = explain_calls(story.entries)
    assert [call.source for call in calls] == ["main", "notes", "main"]
    assert [call.is_cold for call in calls] == [False, False, False]
    assert totals(calls)["calls"] == 3
    assert calls[1].tally.usd > 0
    assert calls[1].at == story.entries[2].at - 2.0


def test_a_fork_that_reads_nothing_makes_nobody_cold():
    calls = explain_calls(forked(Story().call(0, 50_000), 0).call(50_000, 200).entries)
    assert [call.cause for call in calls] == ["", "", ""]


def test_a_break_of_a_fork_is_told_at_the_fork():
    story = forked(Story().call(0, 50_000).call(20_000, 30_000), 10_000)
    story.add(CacheBroke, source="notes", cause="provider", detail="f", lost_tokens=40_000, usd=0.2)
    story.add(CacheBroke, cause="tool", detail="m", lost_tokens=30_000)
    calls = explain_calls(story.entries)
    assert [(call.source, call.cause) for call in calls] == [
        ("main", ""),
        ("main", "tool"),
        ("notes", "provider"),
    ]
    assert (calls[2].tally.lost_tokens, calls[2].tally.lost_usd, calls[2].is_cold) == (
        40_000,
        0.2,
        True,
    )


def test_a_fork_that_reads_the_prefix_renews_it():
    story = forked(Story().call(0, 50_000).wait(4.5), 50_000).wait(4.5).call(0, 50_000)
    (cold,) = [call for call in explain_calls(story.entries) if call.is_cold]
    assert cold.cause == "provider"
    late = Story().call(0, 50_000).wait(9).call(0, 50_000)
    assert explain_calls(late.entries)[-1].cause == "lifetime_5m"


def test_a_break_of_a_fork_counts_against_the_ideal():
    story = forked(Story().call(0, 50_000), 10_000, write=40_000)
    story.add(CacheBroke, source="notes", cause="provider", lost_tokens=40_000, usd=0.1)
    fork = story.calls()[1]
    assert fork.ideal_usd == pytest.approx(fork.tally.usd - 0.1)
    story = forked(Story().call(0, 50_000), 10_000, write=40_000)
    story.add(CacheBroke, source="notes", cause="clearing", expected="cleared", usd=0.1)
    assert story.calls()[1].ideal_usd == story.calls()[1].tally.usd


def test_the_cache_that_counts_is_the_conversations():
    story = forked(warm(long=True), 100, write=500)
    last = last_of_conversation(story.calls())
    assert (last.source, last.lifetime, expires_at(last)) == ("main", "1h", START + 30 + 3_600)
    renewed = last_of_conversation(forked(warm(long=True).wait(30), 51_000).calls())
    assert expires_at(renewed) == START + 40 + 30 * 60 + 8 + 3_600


def test_a_frame_tells_the_lifetime_where_no_usage_does():
    story = Story().add(Framed, lifetime="1h").call(50_000, 0)
    assert story.calls()[0].lifetime == "1h"


def test_a_provider_with_a_lifetime_of_its_own_is_taken_at_that():
    story = Story("gpt-6-sol").call(0, 50_000).wait(20).call(0, 51_000)
    assert cause_of(story) == "provider"
    assert cause_of(story.wait(31).call(0, 52_000)) == "lifetime_30m"


def test_markers_that_are_gone_after_a_restart_are_a_cause():
    story = Story().add(Asked, options_hash="o", markers=(0,)).replied(0, 50_000)
    story.add(Asked, options_hash="o").replied(0, 0, 50_500)
    assert cause_of(story) == "marker"


def test_a_split_that_exceeds_the_total_is_cut_to_it():
    usage = Usage(cache_write_tokens=100, cache_write_1h_tokens=5_000)
    entries = [Replied(n=1, response_id="r", model=OPUS, content=(), usage=usage)]
    total = bill(entries).total
    assert kinds_json(total.tally) == kinds_json(Tally()) | {"write_1h": 100}
    assert total.cost.total == total.tally.usd == explain_calls(entries)[0].tally.usd > 0
    assert price_call(OPUS, usage).usd > 0
