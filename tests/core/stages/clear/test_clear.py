"""Layer 2 on a log: what is cleared and when, the reports, and undo."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from longhold.core.log import Log
from longhold.core.log.entries import Pinned, Redone, Spilled, Undone
from longhold.core.messages import Image, Text, Thinking
from longhold.core.request.server_side import EDITS_BETA
from longhold.core.settings import (
    ClearSettings,
    CostSettings,
    GaugeSettings,
    Settings,
    WindowSettings,
)

from .reading import PAGE, Reading

PLAIN = Settings(
    gauge=GaugeSettings(calibrate=False),
    clear=ClearSettings(warm_share=0.0, line_room=0.1),
    cost=CostSettings(need_weight=0.0),
    window=WindowSettings(auto_line=""),
)
"""Nothing has a price but tokens: the methods themselves are tried here."""
YEAR_SECONDS = 31_557_600.0
FREE = replace(PLAIN, clear=replace(PLAIN.clear, paid=False))
"""Only what costs nothing."""


@pytest.fixture
def reading(tmp_path):
    """Make sessions that read, and close them."""
    made = []

    def make(settings=FREE, **options):
        made.append(Reading(tmp_path / f"{len(made)}.jsonl", settings, **options))
        made[-1].engine.say("Read everything.")
        return made[-1]

    yield make
    for one in made:
        one.close()


async def test_nothing_is_cleared_while_the_cache_lives(reading):
    one = reading()
    await one.read(20)
    assert one.cleared == []


async def test_a_dead_cache_makes_it_free(reading):
    one = reading()
    await one.read(12)
    one.now += 300
    await one.send()
    [entry] = one.cleared
    assert entry.ids == tuple(f"t{i}" for i in range(7)) and entry.how == "rewritten"
    assert [id for id, text in one.shown().items() if PAGE in text] == [
        f"t{i}" for i in range(7, 12)
    ]


async def test_the_first_image_makes_it_free_because_the_prompt_is_cached_anew(reading):
    one, image = reading(), Image(source={"type": "base64", "media_type": "image/png", "data": "="})
    await one.read(12)
    assert one.cleared == []
    one.engine.say((Text(text="Look."), image))
    await one.send()
    [entry] = one.cleared
    assert "cached separately" in entry.why
    one.call()
    await one.read(12, first=12)
    one.engine.say((Text(text="And this."), image))
    await one.send()
    assert len(one.cleared) == 1, "a prompt that has an image already stays cached"


async def test_a_clock_set_forward_costs_one_rewrite_and_is_forgotten(reading):
    one = reading()
    await one.read(12)
    one.now += 10 * YEAR_SECONDS
    await one.send()
    one.now -= 10 * YEAR_SECONDS
    await one.read(12, first=12)
    assert len(one.cleared) == 1
    one.now -= YEAR_SECONDS
    await one.read(2, first=24)
    assert len(one.cleared) == 1, "a clock set back leaves the cache alive"
    one.now += 300
    await one.send()
    assert len(one.cleared) == 2, "and the next pause counts as before"


async def test_the_lifetime_that_counts_is_the_one_that_was_latched(reading):
    one = reading(lifetime="1h")
    await one.read(12)
    one.now += 1_800
    await one.send()
    assert one.cleared == []
    one.now += 3_600
    await one.send()
    assert len(one.cleared) == 1


async def test_time_counts_from_the_start_of_the_last_request(reading):
    one = reading()
    await one.read(12)
    one.now += 269
    await one.send()
    assert one.cleared == []


async def test_the_user_is_told_in_one_line(reading):
    one = reading()
    await one.read(12)
    one.now += 300
    await one.send()
    [line] = one.told
    assert line == one.cleared[0].why
    assert line.startswith("cleared 7 old results, about ") and "tokens for free" in line
    assert "the next call costs $0.0" in line and "\n" not in line


async def test_the_model_is_told_what_it_was_and_how_to_have_it_again(reading):
    one = reading()
    await one.read(12)
    one.now += 300
    await one.send()
    n = one.view.round_of("t0").result_of("t0").id
    assert one.shown()["t0"].startswith(f"[Read /p/0.py: {len(PAGE) + 3:,} characters, ")
    assert one.shown()["t0"].endswith(f"Read it again, or History #{n} has it.]")


async def test_a_name_is_kept_once_and_only_if_it_left_the_view(reading):
    one = reading()
    await one.read(2, page=PAGE + "lost_name kept_name")
    await one.read(10, first=2, page=PAGE + "kept_name")
    one.now += 300
    await one.send()
    [entry] = one.cleared
    assert entry.texts[0].endswith("It names lost_name.]")
    assert not any("_name" in text for text in entry.texts[1:])


async def test_a_cleared_read_is_forgotten(reading):
    one = reading()
    await one.read(12)
    one.now += 300
    await one.send()
    assert one.forgotten == [f"/p/{i}.py" for i in range(7)]


async def test_results_that_nobody_has_read_stay(reading):
    one = reading()
    await one.send()
    one.call(*((f"t{i}", "Read", {"file_path": f"/p/{i}.py"}) for i in range(10)))
    for i in range(10):
        one.engine.take_result(f"t{i}", f"{i}: {PAGE}")
    one.now += 300
    await one.send()
    assert one.cleared == []


@pytest.mark.parametrize(
    "name", ["AskUserQuestion", "Skill", "TodoWrite", "mcp__db__query", "BashOutput"]
)
async def test_what_cannot_be_had_again_stays(reading, name):
    one = reading()
    for i in range(8):
        await one.send()
        one.call((f"t{i}", name, {}))
        one.engine.take_result(f"t{i}", PAGE)
    one.now += 300
    await one.send()
    assert one.cleared == []


async def test_a_declared_tool_is_cleared(reading):
    clear = ClearSettings(paid=False, also="mcp__db__query=fetch, Other=search")
    one = reading(replace(PLAIN, clear=clear))
    for i in range(12):
        await one.send()
        one.call((f"t{i}", "mcp__db__query", {"sql": "select secret"}))
        one.engine.take_result(f"t{i}", PAGE)
    one.now += 300
    await one.send()
    assert len(one.cleared[0].ids) == 7
    assert "secret" not in one.shown()["t0"]


async def test_memories_stay(reading):
    one = reading()
    memory = one.engine.log.path.parent / "memory"
    for i, path in enumerate([memory / f"{i}.md" for i in range(5)] + [Path("/x/MEMORY.md")] * 5):
        await one.send()
        one.call((f"t{i}", "Read", {"file_path": str(path)}))
        one.engine.take_result(f"t{i}", PAGE)
    one.now += 300
    await one.send()
    assert one.cleared == []


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Read", {"file_path": "~no-such-user/x"}),
        ("Read", {"file_path": "\0"}),
        ("WebFetch", {"url": "http://[bad"}),
        ("WebFetch", {"url": "http://\u2100.com"}),
        ("Bash", {"command": 5}),
        ("Bash", {"command": {"a": [1]}}),
        ("Bash", {"command": True}),
    ],
)
async def test_no_input_of_a_call_stops_the_stage(reading, name, given):
    one = reading()
    await one.send()
    one.call(("odd", name, given))
    one.engine.take_result("odd", PAGE)
    await one.read(11)
    one.now += 300
    await one.stage(one.engine)
    assert one.cleared[0].ids[0] == "odd"


async def test_short_results_stay_and_count_among_the_newest(reading):
    one = reading()
    await one.read(8)
    await one.read(5, first=8, page="short")
    one.now += 300
    await one.send()
    assert one.cleared[0].ids == tuple(f"t{i}" for i in range(8))


async def read_again(one, name="Read"):
    """Let a call bring once more what the first one brought; the view refers to that."""
    await one.send()
    one.call(("again", name, {"file_path": "/p/0.py"}))
    one.engine.take_result("again", f"0: {PAGE}")
    one.engine.record(Spilled(tool_use_id="again", text="[the same as t0]", same_as="t0"))


@pytest.mark.parametrize("after", [0, 1, 4])
async def test_a_file_just_read_again_stays_where_it_stands(reading, after):
    one = reading()
    await one.read(10)
    await read_again(one)
    await one.read(after, first=10)
    one.now += 300
    await one.send()
    kept = {"t0", "again", *(f"t{i}" for i in range(6 + after, 10 + after))}
    assert set(one.cleared[0].ids) == {f"t{i}" for i in range(10 + after)} - kept


async def test_what_only_old_results_refer_to_goes(reading):
    one = reading()
    await one.read(10)
    await read_again(one)
    await one.read(5, first=10)
    one.now += 300
    await one.send()
    assert one.cleared[0].ids == tuple(f"t{i}" for i in range(10))


async def test_what_a_result_refers_to_that_never_goes_stays(reading):
    one = reading()
    await one.read(8)
    await read_again(one, "AskUserQuestion")
    await one.read(6, first=8)
    one.now += 300
    await one.send()
    assert "t0" not in one.cleared[0].ids and "t1" in one.cleared[0].ids


async def test_a_stand_in_that_would_be_longer_is_not_used(reading):
    clear = ClearSettings(paid=False, smallest_tokens=0)
    one = reading(replace(PLAIN, clear=clear))
    await one.read(9, page="tiny")
    await one.read(1, first=9, page=PAGE * 6)
    await one.read(5, first=10)
    one.now += 300
    await one.send()
    assert one.cleared[0].ids == ("t9",)


async def test_what_the_user_took_back_is_not_cleared_again(reading):
    one = reading()
    await one.read(12)
    before = one.shown()
    one.now += 300
    await one.send()
    one.engine.record(Undone(target=one.cleared[0].n))
    assert one.shown() == before
    one.now += 300
    await one.send()
    assert len(one.cleared) == 1
    one.engine.record(Redone(target=one.cleared[0].n))
    assert PAGE not in one.shown()["t0"]


async def test_a_full_window_overrules_the_veto(reading):
    window = WindowSettings(auto_line="", limit_tokens=14_000)
    one = reading(replace(FREE, window=window))
    await one.read(6)
    one.now += 300
    await one.send()
    [first] = one.cleared
    one.engine.record(Undone(target=first.n))
    await one.read(6, first=6)
    while not one.engine.fullness().is_blocked:
        one.engine.say("more " * 300)
    await one.send()
    assert set(first.ids) < set(one.cleared[-1].ids)


async def test_pinned_messages_keep_their_results(reading):
    one = reading()
    await one.read(12)
    one.engine.record(Pinned(targets=(one.view.round_of("t0").id,)))
    one.now += 300
    await one.send()
    assert one.cleared[0].ids == tuple(f"t{i}" for i in range(1, 7))


async def test_another_model_has_nothing_cached(reading):
    one = reading()
    await one.read(12)
    one.engine.switch("claude-opus-4-8", "asked for")
    await one.send()
    assert "another model answers" in one.cleared[0].why


async def test_a_model_without_edits_and_back(reading):
    one = reading(model="simulated/claude-opus-5", betas=(EDITS_BETA,))
    await one.read(3)
    for model in ("claude-opus-4-6", "simulated/claude-opus-5"):
        one.engine.switch(model, "asked for")
        request = await one.send()
        one.call()
        one.engine.say("go on")
        blocks = [block for message in request.kwargs["messages"] for block in message["content"]]
        assert any("cache_reference" in block for block in blocks) == ("simulated" in model)


async def test_bound_thinking_is_not_dropped_inside_a_loop(reading):
    one = reading(model="claude-opus-5-5")
    await one.read(12, thinks=True)
    one.now += 300
    await one.send()
    assert one.cleared == []
    one.call()
    one.now += 300
    await one.ask("and now?")
    assert one.cleared[0].drops_thinking
    thoughts = [
        block
        for message in one.view.messages()
        for block in message.content
        if isinstance(block, Thinking)
    ]
    assert len(thoughts) == 1, "only what was thought before the first change is still bound to it"


async def test_what_pays_is_cleared_as_soon_as_the_loop_ends(reading):
    one = reading(PLAIN, model="claude-opus-5-5")
    await one.read(90, thinks=True)
    assert one.cleared == []
    await one.send()
    one.call()
    await one.ask("and now?")
    assert "it costs $" in one.cleared[0].why


async def test_at_the_line_bound_thinking_does_not_hold_clearing_up(reading):
    one = reading(
        replace(FREE, window=WindowSettings(auto_line="", limit_tokens=30_000)),
        model="claude-opus-5-5",
    )
    i = 0
    while not one.cleared and i < 60:
        await one.read(1, first=i, thinks=True)
        i += 1
    assert "nothing needs to be compacted yet" in one.cleared[0].why


async def test_without_a_price_clearing_waits_for_the_line(reading):
    one = reading(
        replace(PLAIN, window=WindowSettings(auto_line="", limit_tokens=30_000)),
        model="my-own-model",
    )
    i = 0
    while not one.cleared and i < 60:
        await one.read(1, first=i)
        i += 1
    assert "$" not in one.cleared[0].why and "compacted yet" in one.cleared[0].why
    assert one.engine.fullness().used_tokens < 0.9 * one.engine.fullness().window.auto_tokens


async def test_a_batch_is_cleared_when_it_pays(reading):
    one = reading(PLAIN)
    await one.read(60)
    assert one.cleared and all("it costs $" in entry.why for entry in one.cleared)
    assert all(len(entry.ids) >= 5 for entry in one.cleared), "in batches"


async def test_it_can_be_turned_off(reading):
    one = reading(replace(PLAIN, clear=ClearSettings(on=False)))
    await one.read(12)
    one.now += 3_600
    await one.send()
    assert one.cleared == []


async def test_without_a_cache_batches_go_as_soon_as_they_are_worth_it(reading):
    one = reading(PLAIN, cached=False)
    await one.read(40)
    assert one.cleared and "the next call costs $" in one.cleared[0].why


async def test_what_was_spilled_can_be_cleared_too(reading):
    one = reading()
    await one.read(7)
    one.engine.record(Spilled(tool_use_id="t0", text=f"preview {PAGE}", file="tool-results/t0"))
    await one.read(5, first=7)
    one.now += 300
    await one.send()
    assert one.shown()["t0"].startswith("[Read /p/0.py: ")


async def test_running_twice_adds_nothing(reading):
    one = reading()
    await one.read(12)
    one.now += 300
    await one.send()
    entries = len(one.view.history)
    await one.stage(one.engine)
    assert len(one.view.history) == entries


async def test_a_resumed_session_shows_the_same_and_goes_on_clearing(reading):
    one = reading()
    await one.read(12)
    one.now += 300
    await one.send()
    shown, path = one.shown(), one.engine.log.path
    one.close()
    again = Reading(path, FREE, log=Log.open(path))
    again.now = one.now
    assert again.shown() == shown
    await again.read(8, first=12)
    again.now += 300
    await again.send()
    assert again.cleared[-1].ids == tuple(f"t{i}" for i in range(7, 15))
    again.close()


async def test_an_imported_session_is_cleared_on_its_first_call(reading):
    one = reading()
    for i in range(12):
        one.call((f"t{i}", "Read", {"file_path": f"/p/{i}.py"}))
        one.engine.take_result(f"t{i}", PAGE)
    one.now = time.time() + 7_200
    await one.send()
    assert len(one.cleared[0].ids) == 7


async def test_pictures_go_with_their_result(reading):
    one = reading()
    picture = Image(source={"type": "base64", "media_type": "image/png", "data": "AA=="})
    await one.send()
    one.call(("p", "Read", {"file_path": "/p/a.png"}))
    one.engine.take_result("p", (Text(text="a picture"), picture, picture))
    await one.read(9)
    one.now += 300
    await one.send()
    assert one.shown()["p"].startswith("[Read /p/a.png: 9 characters, 2 images, ")
