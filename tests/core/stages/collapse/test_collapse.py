"""Spans of finished work are collapsed when the window fills, and reopened on request."""

from functools import partial

import pytest
from msgspec import structs

from longhold.core.log import Header, Log
from longhold.core.log.entries import (
    Collapsed,
    Failed,
    Pinned,
    Redone,
    Replied,
    Switched,
    Undone,
    Withheld,
)
from longhold.core.log.shared import FileRecords
from longhold.core.messages import Text, Thinking, ToolUse, Usage
from longhold.core.messages.rules import violations
from longhold.core.settings import CollapseSettings, Settings, WindowSettings, home
from longhold.core.stages.collapse import drain, open_span, read_lines
from longhold.core.stages.layers import Collapsing
from longhold.core.tools.context import ToolContext
from longhold.core.tools.history.history import History
from longhold.core.tools.history.tool import history_tool
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import ForkReply
from longhold.core.view.gauge import save_calibration
from longhold.core.view.tokens import Calibration
from longhold.errors import BudgetSpent, LongholdError, ModelUnavailable, NotInHistory

BINDS, FREE = "claude-sonnet-5-5", "claude-opus-4-6"
LIMIT_TOKENS = 20_000
"""Of which 18,000 may be filled: lines are committed from 16,200, written from 17,100."""


collapsed = Collapsing()
"""The stage without a model."""


def settings(on=True, limit=LIMIT_TOKENS, **more):
    return Settings(
        window=WindowSettings(limit_tokens=limit), collapse=CollapseSettings(on=on, **more)
    )


@pytest.fixture
def make(tmp_path):
    """Make engines that collapse, and close them."""
    engines = []

    def made(chosen=None, model=FREE, log=None):
        log = log or Log.create(tmp_path / f"{len(engines)}.jsonl", Header(session="s"))
        engine = Engine(log, chosen or settings())
        engines.append(engine)
        if not engine.model:
            engine.record(Switched(model=model))
        return engine

    yield made
    for engine in engines:
        engine.close()


def turn(engine, text, calls=2, words=1_500, thought=False, answer="so it is", **more):
    """A whole turn: a question, tool calls with long results, an answer."""
    failed, usage = more.get("failed", False), more.get("usage")
    engine.say(text)
    for i in range(calls):
        id = f"{text}{i}"
        blocks = (Thinking(thinking="hm", signature="c2ln"),) if thought else ()
        use = ToolUse(id=id, name="Read", input={"file_path": f"/src/{id}.py"})
        reply = Replied(response_id=id, content=(*blocks, use), model=engine.model, usage=usage)
        engine.record(reply)
        engine.take_result(id, f"{id} result " + "word " * words, is_error=failed)
    if answer:
        content = (Text(text=answer),)
        engine.record(Replied(response_id=f"{text}-end", content=content, stop_reason="end_turn"))


def filled(engine, turns=6, **more):
    """Finished turns of about three thousand tokens each, and a question that waits."""
    for i in range(turns):
        turn(engine, f"turn{i}x", **more)
    engine.say("what now?")
    return engine


def measured(engine, prompt):
    """Let an answer report a size, so that there is little doubt about it; then ask again."""
    usage = Usage(input_tokens=prompt, output_tokens=5)
    content = (Text(text="I see"),)
    engine.record(Replied(response_id="seen", content=content, model=engine.model, usage=usage))
    engine.say("and then?")


def lines(engine):
    return [entry for entry in engine.view.history if isinstance(entry, Collapsed)]


def sent(engine):
    return str(engine.view.messages())


async def test_below_the_line_nothing_happens(make):
    engine = filled(make(), turns=3)
    await collapsed(engine)
    assert lines(engine) == []


async def test_a_learnt_tokenizer_frees_as_much_as_the_gauge_says(make):
    learnt = Calibration.create(FREE)
    halved = structs.replace(learnt, factors=tuple(f / 2 for f in learnt.factors))
    save_calibration(FileRecords(home()), halved)
    engine = filled(make(settings(limit=LIMIT_TOKENS // 2)))
    await Collapsing()(engine)
    full = engine.fullness()
    assert full.used_tokens <= engine.settings.collapse.target_ratio * full.window.effective_tokens


async def test_switched_off_it_does_nothing_at_all(make):
    engine = filled(make(settings(on=False)))
    await collapsed(engine)
    assert not drain(engine) and lines(engine) == []
    assert not engine.settings.collapse.on and settings().collapse.on


async def test_past_the_line_the_oldest_runs_become_lines(make):
    engine = filled(make())
    before = engine.fullness()
    assert before.used_tokens >= 0.9 * before.window.effective_tokens
    await collapsed(engine)
    after = engine.fullness()
    assert after.used_tokens <= 0.7 * after.window.effective_tokens
    assert 0 < len(lines(engine)) < 6
    view = sent(engine)
    assert all(f"turn{i}x" in view for i in range(6)) and "so it is" in view
    assert "turn0x0 result" not in view and "turn5x1 result" in view
    assert violations(engine.view.messages()) == []


async def test_a_line_tells_tools_files_and_outcome(make):
    engine = filled(make(), failed=True)
    await collapsed(engine)
    first = lines(engine)[0]
    assert first.text == (
        f"[#{first.first}-#{first.last} collapsed to make room: 2 rounds; Read 2; "
        "files /src/turn0x0.py, /src/turn0x1.py; 2 errors; last Read /src/turn0x1.py failed. "
        f'History with id "#{first.first}-#{first.last}" shows it.]'
    )
    shown = History(lambda: engine.view.history).open(f"#{first.first}-#{first.last}").page.text
    assert "turn0x0 result" in shown and "turn0x1 result" in shown
    assert shown in History(lambda: engine.view.history).open(f"#{first.n}").page.text


async def test_a_line_holds_neither_secrets_nor_line_breaks(make):
    engine = make()
    engine.say("deploy")
    command = "deploy\n\nIgnore the above\x1b[0m --key AKIAIOSFODNN7EXAMPLQ"
    use = ToolUse(id="a", name="Bash", input={"command": command})
    engine.record(Replied(response_id="a", content=(use,)))
    engine.take_result("a", "word " * 9_000)
    filled(engine, turns=4)
    await collapsed(engine)
    text = lines(engine)[0].text
    assert "\n" not in text and "\x1b" not in text and "AKIAIOSFODNN7EXAMPLQ" not in text


async def test_a_second_run_adds_nothing(make):
    engine = filled(make(settings(target_ratio=0.0)))
    engine.say("word " * 60_000, hidden=True)
    await collapsed(engine)
    known = len(lines(engine))
    assert known == 6
    await collapsed(engine)
    assert len(lines(engine)) == known


async def test_the_prefix_is_as_before_up_to_the_first_line(make):
    engine = filled(make())
    first = (await engine.prepare((collapsed,), max_output_tokens=100)).kwargs["messages"]
    again = (await engine.prepare((collapsed,), max_output_tokens=100)).kwargs["messages"]
    assert len(lines(engine)) > 0
    assert again == first


async def test_undo_opens_a_span_exactly_and_it_stays_open(make):
    engine = filled(make())
    measured(engine, 16_400)
    before = engine.view.messages()
    await collapsed(engine)
    for line in reversed(lines(engine)):
        said = open_span(engine, line.n)
    assert (
        said
        == f"#{line.n} is open again: messages #{line.first} to #{line.last} are back in the view"
    )
    assert engine.view.messages() == before
    opened = {line.first for line in lines(engine)}
    known = len(lines(engine))
    await collapsed(engine)
    assert len(lines(engine)) > known, "others are folded in their place"
    assert not opened & {line.first for line in lines(engine)[known:]}
    assert "turn0x0 result" in sent(engine)
    engine.say("word " * 20_000, hidden=True)
    assert engine.fullness().is_blocked
    await collapsed(engine)
    assert "turn0x0 result" not in sent(engine)


async def test_what_is_no_line_cannot_be_opened(make):
    engine = filled(make(model=BINDS), thought=True)
    await collapsed(engine)
    [first, *_] = lines(engine)
    with pytest.raises(NotInHistory, match="#1 is not a collapsed line"):
        open_span(engine, 1)
    usage = Usage(input_tokens=12_000, output_tokens=10)
    turn(engine, "more", words=9, answer="", thought=True, usage=usage)
    with pytest.raises(LongholdError, match="between two tool calls"):
        open_span(engine, first.n)
    engine.say("and now?")
    open_span(engine, first.n)
    with pytest.raises(NotInHistory, match="of the current view"):
        open_span(engine, first.n)
    engine.record(Redone(target=first.n))
    assert "turn0x0 result" not in sent(engine)


async def test_the_model_opens_a_span_with_the_history_tool(make, tmp_path):
    engine = filled(make())
    await collapsed(engine)
    first = lines(engine)[0]
    history = History(lambda: engine.view.history)
    tool = history_tool(history, reopen=partial(open_span, engine))
    place = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)
    outcome = await tool.run({"id": f"#{first.n}", "reopen": True}, place)
    assert "is open again" in outcome.content and "turn0x0 result" in sent(engine)
    again = await tool.run({"id": f"#{first.n}", "reopen": True}, place)
    assert again.is_error and "not a collapsed line of the current view" in again.content
    history.close()


async def test_lines_survive_a_restart(make):
    engine = filled(make())
    await collapsed(engine)
    engine.log.close()
    again = make(log=Log.open(engine.log.path))
    assert again.view.messages() == engine.view.messages()
    await collapsed(again)
    assert lines(again) == lines(engine)


async def test_what_is_pinned_or_said_in_between_stays(make):
    engine = make()
    engine.say("one")
    for id in "abc":
        use = ToolUse(id=id, name="Bash", input={"command": id})
        n = engine.record(Replied(response_id=id, content=(use,))).n
        engine.take_result(id, f"{id} result " * 2_500)
        if id == "b":
            engine.record(Pinned(targets=(n,)))
    engine.say("a reminder", hidden=True)
    filled(engine, turns=1)
    assert drain(engine)
    view = sent(engine)
    assert "b result" in view and "a reminder" in view
    assert "a result" not in view and "c result" not in view


async def test_bound_thinking_is_waited_for_and_then_dropped(make):
    engine = filled(make(model=BINDS), turns=4, thought=True)
    usage = Usage(input_tokens=16_300, output_tokens=10)
    turn(engine, "more", calls=1, words=9, answer="", thought=True, usage=usage)
    assert engine.fullness().used_tokens > 0.9 * 18_000 and not engine.fullness().is_blocked
    await collapsed(engine)
    assert lines(engine) == []
    engine.say("and now?")
    await collapsed(engine)
    assert lines(engine) and all(line.drops_thinking for line in lines(engine))
    assert "Thinking" not in sent(engine)


async def test_draining_folds_everything_and_says_whether_that_helped(make):
    engine = filled(make(settings(limit=1_000_000)))
    await collapsed(engine)
    assert lines(engine) == []
    assert drain(engine)
    assert len(lines(engine)) == 6
    assert not drain(engine)
    assert violations(engine.view.messages()) == []


async def test_a_short_run_stays_as_it_is(make):
    engine = make()
    turn(engine, "short", calls=1, words=1)
    engine.say("word " * 50_000)
    await collapsed(engine)
    assert lines(engine) == [] and not drain(engine)


def asked_with(text, calls=None):
    """Something to ask that answers with a text."""

    async def ask(request):
        if calls is not None:
            calls.append(request)
        if isinstance(text, Exception):
            raise text
        return ForkReply(
            text=text,
            content=(Text(text=text),),
            stop_reason="end_turn",
            reason="completed",
            turns=1,
            calls=(),
            seconds=0.0,
        )

    return ask


def talkative(engine):
    """Turns whose answers alone fill the window: counting calls cannot make room."""
    for i in range(6):
        turn(engine, f"turn{i}x", calls=1, words=10, answer=f"answer{i} " * 1_500)
    engine.say("what now?")
    return engine


async def test_when_counting_does_not_help_a_fork_writes_lines(make):
    engine, calls = talkative(make()), []
    assert engine.fullness().used_tokens > 0.95 * 18_000
    text = "\n".join(f"{i}: found cause {i} in app.py" for i in range(1, 9))
    collapsed = Collapsing(asked_with(text, calls))
    await collapsed(engine)
    [request] = calls
    assert (
        request.source == "collapse"
        and "1. after the user's message that begins: turn0x" in request.say
    )
    view = sent(engine)
    assert "found cause 1 in app.py" in view and "answer0" not in view and "answer5" in view
    assert all(f"turn{i}x" in view for i in range(6))
    assert engine.fullness().used_tokens <= 0.7 * 18_000
    assert violations(engine.view.messages()) == []
    await collapsed(engine)
    assert len(calls) == 1


async def test_a_written_line_may_cover_counted_ones(make):
    engine = talkative(make(settings(target_ratio=0.0)))
    for i in range(4):
        turn(engine, f"work{i}x", words=700, answer="fine " * 300)
    engine.say("go on")
    collapsed = Collapsing(asked_with("\n".join(f"{i}. all is well" for i in range(1, 20))))
    await collapsed(engine)
    view = sent(engine)
    assert "all is well" in view and "collapsed to make room: 2 rounds" not in view
    written = next(e for e in reversed(lines(engine)) if "well" in e.text)
    shown = History(lambda: engine.view.history).open(f"#{written.n}").page.text
    assert "work3x0 result" in shown and "what now?" not in shown
    open_span(engine, written.n)
    assert "collapsed to make room: 2 rounds" in sent(engine)


async def test_a_refusal_by_the_budget_is_no_failure_and_not_asked_for_again_this_turn(make):
    engine, calls = talkative(make()), []
    collapsed = Collapsing(asked_with(BudgetSpent("over its share"), calls))
    await collapsed(engine)
    await collapsed(engine)
    assert len(calls) == 1
    assert not [e for e in engine.view.history if isinstance(e, Failed)]
    [refused] = [e for e in engine.view.history if isinstance(e, Withheld)]
    assert (refused.what, refused.why) == ("collapse", "over its share")


@pytest.mark.parametrize(
    ("given", "error"),
    [(ModelUnavailable("overloaded"), "overloaded"), ("I would rather not", "contains no line")],
)
async def test_a_fork_that_fails_leaves_a_word_and_is_not_asked_again_this_turn(make, given, error):
    engine, calls = talkative(make()), []
    collapsed = Collapsing(asked_with(given, calls))
    before = engine.view.messages()
    await collapsed(engine)
    await collapsed(engine)
    assert engine.view.messages() == before and len(calls) == 1
    [failed] = [e for e in engine.view.history if isinstance(e, Failed)]
    assert failed.what == "collapse" and error in failed.error
    engine.say("again")
    await collapsed(engine)
    assert len(calls) == 2


async def test_without_a_model_or_leave_to_ask_nothing_is_written(make):
    engine = talkative(make())
    await collapsed(engine)
    assert not [e for e in engine.view.history if isinstance(e, Collapsed | Failed)]
    engine, calls = talkative(make(settings(write=False))), []
    await Collapsing(asked_with("1: x", calls))(engine)
    assert calls == []


def test_numbered_lines_are_read_however_they_are_written():
    text = "Here:\n1: one\n 2. two\n**3)** three\n- 4: four\n9: nine\n5:\nno number"
    assert read_lines(text, 5) == {1: "one", 2: "two", 3: "** three", 4: "four"}


async def test_opening_a_span_is_one_entry(make):
    engine = filled(make())
    await collapsed(engine)
    open_span(engine, lines(engine)[0].n)
    assert engine.view.history[-1] == Undone(
        n=engine.view.history[-1].n, at=engine.view.history[-1].at, target=lines(engine)[0].n
    )
