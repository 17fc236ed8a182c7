"""Layer 1 on a log: what goes to disk, what is shown, and that this never changes."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from weakref import WeakKeyDictionary

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log import Header, Log, load
from longhold.core.log.entries import (
    Asked,
    Cleared,
    Failed,
    Framed,
    Ran,
    Spilled,
    Swept,
    Switched,
    Undone,
)
from longhold.core.log.store import FileStore
from longhold.core.messages import Image, Text, Thinking, ToolUse, Usage, text_of
from longhold.core.messages.rules import violations
from longhold.core.models.protocol import Reply
from longhold.core.settings import LogSettings, Settings, SpillSettings, WindowSettings
from longhold.core.stages.spill.spill import Spill
from longhold.core.turn.engine import Engine, keep_long
from longhold.core.view.tokens import default_weights, weigh

MODEL = "claude-opus-5-5"
FRAME = Framed(tools=({"name": "Bash"}, {"name": "History"}, {"name": "Read"}))
PICTURE = Image(source={"type": "base64", "media_type": "image/png", "data": "AA=="})
LINES = "".join(f"line {n} of a long output\n" for n in range(2_000))  # 51 KB
NUMBERS = iter(range(10_000_000))
STAGES = WeakKeyDictionary()
"""The stage of each engine."""


def opened(log, settings=None):
    spill = Spill()
    engine = Engine(log, settings or Settings(), on_result=spill.arrive)
    STAGES[engine] = spill
    return engine


@pytest.fixture
def engine(tmp_path):
    """An engine with layer 1, a model that binds its thinking, and a question."""
    made = begun(opened(Log.create(tmp_path / "s.jsonl", Header(session="s"))))
    yield made
    made.close()


def begun(engine):
    engine.record(Switched(model=MODEL))
    engine.record(FRAME)
    engine.say("go")
    return engine


def call(engine, *calls):
    """Let the model think and call tools, each a pair of id and name."""
    uses = [ToolUse(id=id, name=name, input={}) for id, name in calls]
    content = (Thinking(thinking="hm", signature="c2ln"), *uses)
    usage = Usage(input_tokens=1_000, output_tokens=7)
    reply = Reply(
        response_id=f"r{next(NUMBERS)}",
        model=MODEL,
        content=content,
        stop_reason="tool_use",
        usage=usage,
    )
    engine.record_reply(reply)


def take(engine, content, id="a", tool="Bash", **fields):
    """Let the model call a tool and take in its result."""
    call(engine, (id, tool))
    engine.take_result(id, content, **fields)


def entries(engine, kind):
    return [entry for entry in engine.view.history if isinstance(entry, kind)]


def shown(engine, id="a"):
    return engine.view.round_of(id).result_of(id).block("sent").content


def stored(engine):
    return sorted(file.name for file in engine.results.list_stored())


async def prepare(engine):
    return (await engine.prepare((STAGES[engine],), max_output_tokens=9)).kwargs["messages"]


def test_a_long_result_goes_to_disk_the_moment_it_comes(engine):
    take(engine, LINES)
    (spilled,) = entries(engine, Spilled)
    assert Path(spilled.file) == engine.log.path.parent / "s" / "tool-results" / "a.txt"
    assert Path(spilled.file).read_bytes() == LINES.encode()
    assert spilled.sha256 == hashlib.sha256(LINES.encode()).hexdigest()
    assert shown(engine) == spilled.text
    assert len(shown(engine)) < 3_000
    assert entries(engine, Ran)[0].content == LINES
    assert spilled.why == (
        "Bash gave 52.9 KB, over its 30,000 characters: "
        f"{len(spilled.text.encode()) / 1000:.1f} KB of it are shown"
    )


async def test_the_users_reason_for_a_refusal_is_never_shortened(engine):
    call(engine, ("a", "Bash"), ("b", "Bash"))
    why = f"Not allowed: {LINES * 5}"
    engine.take(Ran(tool_use_id="a", content=why, is_error=True, refused=LINES * 5))
    engine.take_result("b", "word " * 5_000)
    await prepare(engine)
    assert shown(engine, "a") == why
    assert entries(engine, Spilled) == []


@pytest.mark.parametrize(
    ("tool", "chars", "is_spilled"),
    [
        ("Bash", 30_000, False),
        ("Bash", 30_001, True),
        ("Grep", 20_001, True),
        ("WebFetch", 50_000, False),
        ("mcp__db__query", 100_000, False),
        ("mcp__db__query", 100_001, True),
        ("Read", 399_000, False),
        ("History", 399_000, False),
    ],
)
def test_each_tool_has_its_limit(engine, tool, chars, is_spilled):
    take(engine, ("word " * chars)[:chars], tool=tool)
    assert bool(entries(engine, Spilled)) is is_spilled


def test_blocks_are_kept_as_json_and_pictures_stay(engine):
    take(engine, (Text(text=LINES), PICTURE))
    (spilled,) = entries(engine, Spilled)
    assert Path(spilled.file).name == "a.json"
    assert engine.results.read("a.json") == (Text(text=LINES), PICTURE)
    assert shown(engine) == (Text(text=spilled.text), PICTURE)
    assert spilled.measure.media_tokens == 1_600


def test_a_picture_is_left_alone_however_large(engine):
    large = Image(source={"type": "base64", "media_type": "image/png", "data": "A" * 900_000})
    take(engine, (large,))
    assert entries(engine, Spilled) == []


def test_an_empty_result_names_its_tool(engine):
    take(engine, "")
    (message,) = [m for m in engine.view.messages() if m.role == "user"][1:]
    assert message.content[0].content == "Bash finished without output."


def test_a_failed_commands_preview_has_its_exit_status_and_errors(engine):
    text = LINES[:9_000] + "src/a.c:3: error: no such field\n" + LINES[:9_000]
    engine.take(Ran(tool_use_id="nobody", content="an orphan is let in and shown nowhere"))
    call(engine, ("a", "Bash"))
    engine.take(Ran(tool_use_id="a", content=text, is_error=True, exit_status=2))
    told = shown(engine)
    assert 'exit-status="2"' in told
    assert "src/a.c:3: error: no such field" in told
    assert told.endswith(LINES[:9_000][-40:] + "\n</spilled>")


def test_secrets_are_masked_in_the_preview_only(engine):
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    take(engine, f"token={key}\n{LINES}")
    (spilled,) = entries(engine, Spilled)
    assert key not in shown(engine)
    assert key in Path(spilled.file).read_text()


def test_the_same_result_again_is_named_instead(engine):
    take(engine, LINES[:5_000], id="a", tool="Read")
    take(engine, LINES[:5_000], id="b", tool="Read")
    assert shown(engine, "a") == LINES[:5_000]
    assert shown(engine, "b") == (
        "[The same, byte for byte, as the result of a: 5.0 KB; "
        'should that be gone, History has it by id "b".]'
    )
    assert entries(engine, Spilled)[0].why == "Read gave the same 5.0 KB as a: not shown twice"
    assert entries(engine, Ran)[1].content == LINES[:5_000]


def test_a_repetition_of_a_spilled_result_names_it_and_needs_no_file(engine):
    take(engine, LINES, id="a")
    take(engine, LINES, id="b")
    assert shown(engine, "b").startswith("[The same, byte for byte, as the result of a:")
    assert stored(engine) == ["a.txt"]


@pytest.mark.parametrize("text", ["x" * 255, "y" * 200])
def test_short_repetitions_are_shown_again(engine, text):
    take(engine, text, id="a")
    take(engine, text, id="b")
    assert shown(engine, "b") == text


def test_what_is_no_longer_shown_is_not_referred_to(engine):
    text = LINES[:5_000]
    take(engine, text, id="a")
    engine.record(Cleared(ids=("a",), texts=("gone",)))
    take(engine, text, id="b")
    assert shown(engine, "b") == text
    take(engine, text, id="c", is_error=True)
    assert shown(engine, "c") == text
    take(engine, text, id="d")
    assert "as the result of b:" in shown(engine, "d")


@pytest.mark.parametrize(("tool", "is_named"), [("Read", True), ("Bash", False)])
def test_a_repetition_is_named_only_if_there_is_a_way_back_to_it(engine, tool, is_named):
    engine.record(Framed(tools=({"name": "Read"}, {"name": "Bash"})))
    take(engine, LINES[:5_000], id="a", tool=tool)
    take(engine, LINES[:5_000], id="b", tool=tool)
    assert shown(engine, "b").startswith("[The same") is is_named


@pytest.mark.parametrize("body_limit_bytes", [1 << 20, 40_000])
def test_a_result_that_comes_twice_is_decided_once(tmp_path, body_limit_bytes):
    settings = Settings(log=LogSettings(body_limit_bytes=body_limit_bytes))
    engine = begun(opened(Log.create(tmp_path / "s.jsonl", Header(session="s")), settings))
    take(engine, LINES)
    before = engine.view.messages()
    engine.settings = replace(settings, spill=SpillSettings(result_chars=1_000))
    engine.take_result("a", LINES)
    assert engine.view.messages() == before
    assert len(entries(engine, Spilled)) == 1
    engine.close()


def test_repetitions_are_found_after_a_resume(engine):
    take(engine, LINES[:5_000], id="a")
    engine.close()
    again = opened(Log.open(engine.log.path))
    take(again, LINES[:5_000], id="b")
    assert "as the result of a:" in shown(again, "b")
    again.close()


async def test_one_messages_results_are_brought_within_their_sum(engine):
    sizes = {"a": 49_000, "b": 45_000, "c": 48_000, "d": 47_000, "e": 46_000}
    call(engine, *((id, "WebFetch") for id in sizes))
    for id, size in sizes.items():
        engine.take_result(id, (f"{id} page " * size)[:size])
    assert entries(engine, Spilled) == []
    await prepare(engine)
    assert [entry.tool_use_id for entry in entries(engine, Spilled)] == ["a"]
    assert entries(engine, Spilled)[0].why.startswith(
        "WebFetch gave 49.0 KB, and one message's results came to 235,000 characters, "
        "over 200,000: "
    )


async def test_what_a_reader_gave_does_not_push_others_out(engine):
    engine.limits_chars["Read"] = None
    call(engine, ("a", "Read"), ("b", "Read"), ("c", "WebFetch"))
    for id in "abc":
        engine.take_result(id, f"{id} word " * 7_000)
    await prepare(engine)
    assert entries(engine, Spilled) == []


async def test_what_was_sent_stays_as_it_was_sent(engine):
    take(engine, LINES[:20_000])
    before = await prepare(engine)
    engine.settings = replace(engine.settings, spill=SpillSettings(result_chars=1_000))
    after = await prepare(engine)
    assert before == after
    assert entries(engine, Spilled) == []


async def test_the_calls_of_others_do_not_make_a_result_sent(engine):
    call(engine, *((id, "WebFetch") for id in "abcde"))
    for id in "abcde":
        engine.take_result(id, f"{id} word " * 6_000)
    engine.record(Asked(source="notes"))
    await prepare(engine)
    assert len(entries(engine, Spilled)) == 1


async def test_a_preview_that_a_crash_prevented_is_made_before_the_call(engine):
    call(engine, ("a", "Bash"))
    engine.record(Ran(tool_use_id="a", content=LINES))
    await prepare(engine)
    assert shown(engine).startswith('<spilled tool="Bash" id="a"')
    assert engine.results.read("a.txt") == LINES


async def test_a_body_too_large_for_the_log_is_one_file(tmp_path):
    settings = Settings(log=LogSettings(body_limit_bytes=40_000))
    engine = begun(opened(Log.create(tmp_path / "s.jsonl", Header(session="s")), settings))
    take(engine, LINES)
    (ran,), (spilled,) = entries(engine, Ran), entries(engine, Spilled)
    assert ran.file == spilled.file
    assert engine.results.read("a.txt") == LINES
    assert "line 1999 of a long output" in shown(engine)
    engine.close()
    lines = engine.log.path.read_bytes().splitlines(keepends=True)
    engine.log.path.write_bytes(b"".join(lines[:-1]))
    again = opened(Log.open(engine.log.path), settings)
    await prepare(again)
    assert shown(again) == spilled.text
    again.close()


async def test_a_body_that_vanished_before_its_preview_is_said_to_have(tmp_path):
    settings = Settings(log=LogSettings(body_limit_bytes=40_000))
    engine = begun(opened(Log.create(tmp_path / "s.jsonl", Header(session="s")), settings))
    call(engine, ("a", "Bash"))
    ran, _ = keep_long(engine, Ran(tool_use_id="a", content=LINES))
    engine.record(ran)
    engine.results.remove(engine.results.list_stored())
    await prepare(engine)
    await prepare(engine)
    (failed,) = entries(engine, Failed)
    assert "a.txt: No such file or directory" in failed.error
    assert shown(engine).startswith(LINES[:30_000])
    engine.close()


def test_a_late_result_is_spilled_where_it_is_told(engine):
    take(engine, "short")
    engine.take_result("a", LINES)
    told = text_of(engine.view.messages()[-1].content)
    assert "A result came late for tool use a:" in told
    assert "<spilled" in told
    assert len(told) < 4_000
    assert shown(engine) == "short"


async def test_what_the_user_undid_stays_undone(engine):
    take(engine, LINES)
    engine.record(Undone(target=entries(engine, Spilled)[0].n))
    assert shown(engine) == LINES
    await prepare(engine)
    assert shown(engine) == LINES


def test_spilling_can_be_switched_off(tmp_path):
    settings = Settings(spill=SpillSettings(on=False))
    engine = begun(opened(Log.create(tmp_path / "s.jsonl", Header(session="s")), settings))
    take(engine, LINES)
    assert shown(engine) == LINES
    assert not engine.results.place.exists()
    engine.close()


def test_budgets_shrink_with_a_small_window(tmp_path):
    settings = Settings(window=WindowSettings(limit_tokens=8_000))
    engine = begun(opened(Log.create(tmp_path / "s.jsonl", Header(session="s")), settings))
    take(engine, LINES[:2_500])
    assert entries(engine, Spilled)
    assert len(shown(engine)) < 1_200
    engine.close()


@pytest.mark.parametrize("fault", ["file in the way", "link", "other content"])
async def test_what_the_disk_refuses_stays_whole_and_that_is_said(engine, tmp_path, fault):
    directory = tmp_path / "s"
    if fault == "file in the way":
        directory.write_text("")
    elif fault == "link":
        directory.mkdir()
        (tmp_path / "elsewhere").mkdir()
        (directory / "tool-results").symlink_to(tmp_path / "elsewhere")
    else:
        (directory / "tool-results").mkdir(parents=True)
        (directory / "tool-results" / "a.txt").write_text("somebody else's")
    take(engine, LINES)
    await prepare(engine)
    assert shown(engine) == LINES
    assert entries(engine, Spilled) == []
    (failed,) = entries(engine, Failed)
    assert failed.what == "spill"
    assert failed.error.endswith("; the whole result of Bash (52.9 KB) stays in the context")
    assert list((tmp_path / "elsewhere").iterdir() if fault == "link" else ()) == []


async def test_old_bodies_are_swept_once_and_that_is_said(engine):
    take(engine, LINES)
    file = Path(entries(engine, Spilled)[0].file)
    os.utime(file, (1, 1))
    told = shown(engine)
    await prepare(engine)
    (swept,) = entries(engine, Swept)
    assert (swept.files, swept.why) == (("tool-results/a.txt",), "older than 30 days")
    assert stored(engine) == []
    assert shown(engine) == told
    await prepare(engine)
    assert len(entries(engine, Swept)) == 1


async def test_a_sessions_bodies_stay_within_their_cap(tmp_path):
    settings = Settings(spill=SpillSettings(session_bytes=1 << 20))
    engine = begun(opened(Log.create(tmp_path / "s.jsonl", Header(session="s")), settings))
    await prepare(engine)
    for id in ("a", "b", "c"):
        take(engine, f"{id}{'word ' * 80_000}", id=id)
        os.utime(engine.results.place / f"{id}.txt", (ord(id), ord(id)))
    engine.settings = replace(settings, spill=replace(settings.spill, retention_days=0))
    await prepare(engine)
    assert stored(engine) == ["b.txt", "c.txt"]
    engine.close()


async def test_decisions_survive_resume_branch_and_other_settings(tmp_path):
    store = FileStore(tmp_path)
    engine = begun(opened(store.create(directory=tmp_path, session="one")))
    take(engine, LINES, id="a")
    take(engine, LINES[:5_000], id="b", tool="Read")
    take(engine, LINES[:5_000], id="c", tool="Read")
    before = engine.view.messages()
    engine.close()
    others = Settings(
        spill=SpillSettings(on=False, result_chars=1_000),
        window=WindowSettings(limit_tokens=8_000),
    )
    for log in (store.open("one"), store.branch("one")):
        again = opened(log, others)
        await STAGES[again](again)
        assert again.view.messages() == before
        assert (again.results.place / "a.txt").read_text() == LINES
        again.close()


async def test_thinking_is_never_dropped(engine):
    for round in range(3):
        ids = [f"{round}{n}" for n in range(6)]
        call(engine, *((id, "WebFetch") for id in ids))
        for id in ids:
            engine.take_result(id, f"{id} word " * 5_500)
        await prepare(engine)
    assert len(entries(engine, Spilled)) >= 6
    assert not any(entry.drops_thinking for entry in entries(engine, Spilled))
    thoughts = [
        block
        for message in engine.view.messages()
        for block in message.content
        if isinstance(block, Thinking)
    ]
    assert len(thoughts) == 3


CONTENTS = (
    "", " ", "ok", LINES, LINES[:5_000], " " * 40_000, "ü" * 31_000, (PICTURE,),
    (Text(text=LINES), PICTURE), (Text(text=LINES[:3_000]),),
)  # fmt: skip
drawn = st.lists(
    st.tuples(
        st.sampled_from(["Bash", "Read", "WebFetch", "mcp__x__y", ""]),
        st.integers(0, len(CONTENTS) - 1),  # a place, because the contents are too long to print
        st.booleans(),
    ),
    max_size=7,
)


@given(drawn, st.sampled_from([8_000, 200_000]))
async def test_layer_1_keeps_the_rules_adds_nothing_twice_and_never_enlarges(
    tmp_path_factory, drawn, window_tokens
):
    results = [(tool, CONTENTS[at], is_error) for tool, at, is_error in drawn]
    settings = Settings(window=WindowSettings(limit_tokens=window_tokens))
    place = tmp_path_factory.mktemp("any")
    engine = begun(opened(Log.create(place / "s.jsonl", Header(session="s")), settings))
    plain = begun(Engine(Log.create(place / "p.jsonl", Header(session="p")), settings))
    for one in (engine, plain):
        call(one, *((str(n), tool) for n, (tool, _, _) in enumerate(results)))
        for n, (_, content, is_error) in enumerate(results):
            one.take_result(str(n), content, is_error=is_error)
    stage = STAGES[engine]
    await stage(engine)
    count = len(engine.view.history)
    await stage(engine)
    assert len(engine.view.history) == count
    assert violations(engine.view.messages()) == []
    weights = default_weights(MODEL)
    assert weigh(engine.view.total, weights) <= weigh(plain.view.total, weights)
    assert load(engine.log.path).entries == engine.view.history
    for entry in entries(engine, Spilled):
        content = results[int(entry.tool_use_id)][1]
        if entry.file:
            assert engine.results.read(Path(entry.file).name) == content
    engine.close()
    plain.close()
