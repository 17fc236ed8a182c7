"""Providers with odd answers, over HTTP: the agent continues."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from longhold.agent.build import build_agent
from longhold.core.log.entries import Compacted, Ran, Replied
from longhold.core.log.spending import answers_of
from longhold.core.messages import ToolUse, text_of
from longhold.core.messages.rules import violations
from longhold.core.models.openai import OpenAIModel
from longhold.core.settings import Settings, WindowSettings
from longhold.core.turn.loop import Stopped
from longhold.core.view import fold
from longhold.session.session import Session
from raw_server import Say, serving

USAGE = {"prompt_tokens": 900, "completion_tokens": 5}


def chat(delta, reason, *, id="chatcmpl-A1", usage=USAGE):
    """One answer of a chat endpoint; it always has the same id."""
    head = {"id": id, "model": "m", "object": "chat.completion.chunk"}
    return Say.whole(
        head | {"choices": [{"index": 0, "delta": delta}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
        name=False,
        done=True,
    )


def text(words, **more):
    return chat({"content": words}, "stop", **more)


def calls(*arguments, **more):
    """Tool calls that all have the id `call_0`, as some servers number them."""
    uses = [
        {"index": i, "id": "call_0", "function": {"name": "Bash", "arguments": one}}
        for i, one in enumerate(arguments)
    ]
    return chat({"tool_calls": uses}, "tool_calls", **more)


@asynccontextmanager
async def working(tmp_path, *acts, **options):
    async with serving(*acts) as wire, asyncio.timeout(30):
        model = OpenAIModel("openai/gpt-test", base_url=f"{wire.url}/v1", api_key="k")
        known = Settings(window=WindowSettings(limit_tokens=200_000))  # so that nobody asks for it
        options = {"settings": known} | options
        agent = await build_agent(model, directory=tmp_path, mode="bypass", **options)
        try:
            yield agent, wire
        finally:
            await agent.close()


async def ask(agent, prompt):
    end = [event async for event in agent.work(prompt)][-1]
    assert violations(agent.session.view.messages()) == []
    return end


async def test_a_server_that_repeats_its_answer_id_is_asked_once_per_message(tmp_path):
    async with working(tmp_path, text("hello")) as (agent, wire):
        for turn in range(1, 4):
            end = await ask(agent, f"question {turn}")
            assert end == Stopped(reason="completed", text="hello")
            assert len(wire.bodies) == turn
        history = agent.session.view.history
        assert [message.role for message in agent.session.view.messages()][-6:] == [
            "user",
            "assistant",
        ] * 3
        assert len(answers_of(history)) == 3
        assert agent.budget.session.calls == 3
        assert fold(history).messages() == agent.session.view.messages()


async def test_every_call_runs_though_all_have_the_same_id(tmp_path):
    acts = [calls(f'{{"command": "echo run-{n}"}}') for n in range(3)]
    async with working(tmp_path, *acts, text("done")) as (agent, wire):
        assert (await ask(agent, "go")).text == "done"
        history = agent.session.view.history
        uses = [
            b.id
            for e in history
            if isinstance(e, Replied)
            for b in e.content
            if isinstance(b, ToolUse)
        ]
        ran = [entry for entry in history if isinstance(entry, Ran)]
        assert len(set(uses)) == 3
        assert [entry.tool_use_id for entry in ran] == uses
        assert [text_of(e.content).strip()[:5] for e in ran] == ["run-0", "run-1", "run-2"]
        sent = wire.requests[-1]["messages"]
        assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == uses


async def test_two_calls_of_one_answer_with_one_id_both_run(tmp_path):
    same = '{"command": "echo twice >> out.txt; echo same"}'
    async with working(tmp_path, calls(same, same), text("done")) as (agent, _):
        await ask(agent, "go")
        ran = [entry for entry in agent.session.view.history if isinstance(entry, Ran)]
        assert len({entry.tool_use_id for entry in ran}) == 2
        assert (tmp_path / "out.txt").read_text() == "twice\ntwice\n"


async def test_a_callers_results_go_to_the_calls_they_are_for(tmp_path):
    answer = {
        "id": "chatcmpl-A1",
        "model": "m",
        "choices": [
            {
                "finish_reason": "tool_calls",
                "message": {
                    "tool_calls": [
                        {"id": "call_0", "function": {"name": "Bash", "arguments": "{}"}},
                        {"id": "call_0", "function": {"name": "Bash", "arguments": "{}"}},
                    ]
                },
            }
        ],
        "usage": USAGE,
    }
    with Session.open(model="gpt-test", window=32_000, directory=tmp_path) as session:
        session.user("go")
        for n in range(2):
            await session.prepare()
            await session.record(answer)
            await session.record(answer)  # handed in twice: it is one answer
            session.tool_result("call_0", f"first {n}")
            session.tool_result("call_0", f"second {n}")
        ran = [entry for entry in session.view.history if isinstance(entry, Ran)]
        assert len({entry.tool_use_id for entry in ran}) == 4
        assert session.view.open_round() is None
        rounds = [item for item in session.view.items if hasattr(item, "results")]
        shown = [[text_of(result.content) for result in item.results] for item in rounds]
        assert shown == [["first 0", "second 0"], ["first 1", "second 1"]]
        assert violations(session.view.messages()) == []


@pytest.mark.parametrize("limit", [200_000, 64_000, 32_000])
@pytest.mark.parametrize("reported", [190_000, 10**9, 10**40, 1])
async def test_a_wrong_size_reported_once_does_not_end_a_session(tmp_path, limit, reported):
    settings = Settings(window=WindowSettings(limit_tokens=limit))
    wrong = {"prompt_tokens": reported, "completion_tokens": reported}
    answers = [text("one", usage=wrong, id="a"), text("two", usage=wrong, id="b")]
    async with working(tmp_path, *answers, settings=settings) as (agent, _):
        assert (await ask(agent, "first")).reason == "completed"
        assert (await ask(agent, "second")) == Stopped(reason="completed", text="two")
        id = agent.session.id
    async with working(tmp_path, text("three", id="c"), settings=settings, resume=id) as (agent, _):
        assert (await ask(agent, "third")) == Stopped(reason="completed", text="three")
        assert not any(isinstance(entry, Compacted) for entry in agent.session.view.history)
        assert agent.session.fullness().used_tokens < limit / 2


async def test_a_wrong_size_does_not_keep_the_user_from_compacting(tmp_path):
    settings = Settings(window=WindowSettings(limit_tokens=32_000))
    wrong = {"prompt_tokens": 190_000, "completion_tokens": 5}
    long = text("one " * 4_000, usage=wrong)
    async with working(tmp_path, long, settings=settings) as (agent, _):
        for n in range(3):
            await ask(agent, f"question {n} " + "with some words to it " * 100)
        await agent.compact()
        assert any(isinstance(entry, Compacted) for entry in agent.session.view.history)
