"""Decisions about space at the default settings, over HTTP with the official SDKs."""

import asyncio
import random
import re
from contextlib import asynccontextmanager

import anthropic
import openai
import pytest

from longhold import Tool
from longhold.agent.build import build_agent
from longhold.core.log.entries import Cleared, Compacted, Failed, Forked, Framed, Pinned, Withheld
from longhold.core.models.registry import open_model
from longhold.core.settings import Settings
from longhold.errors import LongholdError, RequestRejected
from longhold.insight.explain import explain
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, SimulatorClock, SimulatorSettings, run_simulator
from longhold.simulator.brains import text, thinking, tool_use

WORDS = [
    "anchor",
    "beam",
    "cleat",
    "davit",
    "fender",
    "keel",
    "ladder",
    "mast",
    "oar",
    "sail",
    "rudder",
    "winch",
]
TITLES = {
    1: "Request and intent",
    2: "Technical concepts",
    4: "Errors and fixes",
    5: "Problem solving",
    7: "Pending tasks",
    8: "Current work",
    9: "Next step",
}


WISH = "I would like to know since when, why, and who did it. "


def prose(seed, words):
    return " ".join(random.Random(str(seed)).choices(WORDS, k=words))


def summary(words=12):
    parts = (
        f"## {n}. {title}\n{prose(n, words)}, see src/mast.py.\n" for n, title in TITLES.items()
    )
    return f"<summary>{''.join(parts)}</summary>"


def tools(*names):
    return [
        {"name": name, "description": "d " * 20, "input_schema": {"type": "object"}}
        for name in names
    ]


class Brain:
    """Answers by `plan`, and writes a summary when one is asked for, unless it is to fail."""

    def __init__(self, plan=None, *, words=12, fails=False):
        self.plan, self.words, self.fails = plan, words, fails
        self.summaries = 0

    def answer(self, request):
        last = str(request.messages[-1])
        if "The work pauses here" in last:
            self.summaries += 1
            return BrainAnswer(blocks=(text("no" if self.fails else summary(self.words)),))
        if self.plan is not None:
            return self.plan(request)
        return BrainAnswer(blocks=(text(prose(last[-50:], 100)),))


def count_answers(request):
    return sum(message["role"] == "assistant" for message in request.messages)


@asynccontextmanager
async def opened(brain, model, **given):
    """Give a session at the default settings, a client, the clock and what the user is told."""
    clock, told = SimulatorClock(is_frozen=True), []
    with run_simulator(brain, clock=clock) as simulator:
        async with anthropic.AsyncAnthropic(
            base_url=simulator.url, api_key="k", max_retries=0
        ) as client:
            given.setdefault("client", client)
            with Session.open(
                model=model, clock=clock.now, notify=told.append, settings=Settings(), **given
            ) as session:
                yield session, client, clock, told


async def call(session, client):
    request = await session.prepare()
    extra = {"betas": list(request.betas)} if request.betas else {}
    where = client.beta.messages if request.betas else client.messages
    response = await where.create(**request.kwargs, **extra)
    await session.record(response)
    return request, response


def of(session, kind):
    return [entry for entry in session.view.history if isinstance(entry, kind)]


def prompt_tokens(response):
    usage = response.usage
    return usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens


def give_results(session, response, make):
    used = [block for block in response.content if block.type == "tool_use"]
    for block in used:
        session.tool_result(block.id, make(block))
    return used


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-5-5"])
async def test_five_files_read_in_one_answer_are_seen_whole(tmp_path, model):
    for f in range(5):
        lines = (f"value_{f}_{i:04d} = compute({i}, '{prose((f, i), 4)}')\n" for i in range(900))
        (tmp_path / f"m{f}.py").write_text("".join(lines))
    seen = []

    def plan(request):
        seen.append(len(set(re.findall(r"value_\d_\d{4} =", str(request.messages)))))
        if len(seen) == 1:
            reads = (tool_use("Read", {"file_path": f"m{f}.py"}) for f in range(5))
            return BrainAnswer(blocks=tuple(reads))
        return BrainAnswer(blocks=(text("reviewed"),))

    with run_simulator(Brain(plan)) as simulator:
        opened_model = open_model(model, base_url=simulator.url, api_key="k")
        agent = await build_agent(
            opened_model, directory=tmp_path, settings=Settings(), mode="bypass"
        )
        try:
            async for _ in agent.run("Review m0.py to m4.py against each other."):
                pass
            size = agent.engine.fullness()
        finally:
            await agent.close()
    assert seen[1] == 4_500
    assert size.used_tokens < size.window.full_tokens / 2


async def test_a_pasted_document_stays_whole_for_every_question():
    clauses = [
        f"Clause {i}: {prose(i, 22)}, agreed at {i * 13} as KX{i:05d}." for i in range(2_400)
    ]
    missing = []
    async with opened(Brain(), "claude-sonnet-5-5", source="chat") as (session, client, *_):
        for question in range(5):
            asked = f"Question {question}: what does clause {1_000 + question} say?"
            session.user("\n".join([asked, *clauses]) if question == 0 else asked)
            request, _ = await call(session, client)
            sent = str(request.kwargs["messages"])
            missing += [i for i in range(2_400) if f"KX{i:05d}" not in sent]
    assert missing == []


@pytest.mark.parametrize("fails", [False, True], ids=["model", "digest"])
async def test_no_compaction_removes_results_the_model_has_not_read(fails):
    contract = Tool(
        {"name": "get_contract", "description": "d", "input_schema": {"type": "object"}},
        kind="other",
    )

    def plan(request):
        last = request.messages[-1]["content"]
        if any(block.get("type") == "tool_result" for block in last):
            return BrainAnswer(blocks=(text("It is in there."),))
        return BrainAnswer(blocks=(tool_use("get_contract", {"n": count_answers(request)}),))

    unread_lost, compacted = 0, 0
    async with opened(
        Brain(plan, fails=fails), "claude-haiku-4-5", window=200_000, tools=[contract]
    ) as (session, client, *_):
        for turn in range(40):
            session.user(f"What is the notice period of contract C-{turn}?")
            _, response = await call(session, client)
            body = [f"Clause {turn}.{i}: {prose(i, 12)}" for i in range(300)]
            body[150] = f"The notice period of C-{turn} is {turn + 40} days."
            give_results(session, response, lambda _, body=body: "\n".join(body))
            request, _ = await call(session, client)
            unread_lost += f"of C-{turn} is {turn + 40} days" not in str(request.kwargs["messages"])
        compacted = len(of(session, Compacted))
    assert compacted >= 2
    assert unread_lost == 0


@pytest.mark.parametrize("by_model", [True, False], ids=["model", "digest"])
async def test_a_summary_keeps_every_call_of_the_open_turn(by_model):
    row = Tool(
        {"name": "write_row", "description": "d", "input_schema": {"type": "object"}}, kind="other"
    )
    booked = 0

    def plan(request):
        last = str(request.messages[-1])
        if "Question" in last:
            return BrainAnswer(blocks=(text("It was changed by the clerk. " * 5),))
        return BrainAnswer(blocks=(tool_use("write_row", {"invoice": f"INV-{booked + 1}"}),))

    unseen = []
    given = {} if by_model else {"client": None}
    async with opened(Brain(plan), "claude-sonnet-4-6", window=32_000, tools=[row], **given) as (
        session,
        client,
        *_,
    ):
        for k in range(130):
            session.user(f"Question {k}: what is the state of order O-{k}? {WISH * 4}")
            await call(session, client)
        before = len(of(session, Compacted))
        session.user("Book the invoices INV-1 to INV-60, each exactly once, with write_row.")
        for _ in range(60):
            request, response = await call(session, client)
            sent = str(request.kwargs["messages"])
            unseen += [i for i in range(1, booked + 1) if not re.search(rf"INV-{i}\b(?! to)", sent)]
            booked += 1
            give_results(
                session,
                response,
                lambda use: f"{use.input['invoice']} was booked. " + "ledger line " * 500,
            )
        texts = [str(entry.summary) for entry in of(session, Compacted)]
    assert len(texts) > before
    assert unseen == []
    assert not any("Nothing to tell" in each for each in texts)


async def test_every_call_of_a_very_long_turn_stays_visible():
    """More of them than a closed turn would carry over."""
    done, unseen = 0, set()

    def plan(request):
        nonlocal done
        sent = str(request.messages)
        unseen.update(i for i in range(done) if f"row-{i:04d}" not in sent)
        uses = [tool_use("book", {"row": f"row-{done + i:04d}"}) for i in range(10)]
        done += 10
        said = (text(f"Next {done}, {k}.") for k in range(10))
        return BrainAnswer(blocks=(*said, *uses))

    row = Tool({"name": "book", "description": "d", "input_schema": {"type": "object"}})
    async with opened(Brain(plan), "claude-sonnet-5-5", tools=[row]) as (session, client, *_):
        session.user("Book them all.")
        for _ in range(60):
            _, response = await call(session, client)
            give_results(session, response, lambda use: f"Booked. {prose(use.id, 500)}")
        assert len(of(session, Compacted)) >= 2
    assert unseen == set()


async def test_results_that_exceed_a_small_window_are_shortened_until_the_request_fits(tmp_path):
    for f in range(5):
        lines = (f"value_{f}_{i:04d} = compute({i}, '{prose((f, i), 4)}')\n" for i in range(900))
        (tmp_path / f"m{f}.py").write_text("".join(lines))
    sent = []

    def plan(request):
        if "The notes lie in" in str(request.messages[-1]):
            return BrainAnswer(blocks=(text("They are up to date."),))
        sent.append(str(request.messages))
        if len(sent) == 1:
            reads = (tool_use("Read", {"file_path": f"m{f}.py"}) for f in range(5))
            return BrainAnswer(blocks=tuple(reads))
        return BrainAnswer(blocks=(text("reviewed"),))

    settings = SimulatorSettings(accepts_unknown_models=True)
    with run_simulator(Brain(plan), settings) as simulator:
        limits = {"window_tokens": 8_192, "max_output_tokens": 2_048}
        model = open_model(
            "local-8k", base_url=f"{simulator.url}/v1", api_key="k", overrides=limits
        )
        agent = await build_agent(model, directory=tmp_path, settings=Settings(), mode="bypass")
        try:
            events = [event async for event in agent.run("Review m0.py to m4.py.")]
            assert of(agent.session, Compacted) == []  # they fit now
        finally:
            await agent.close()
    assert events[-1].reason == "completed"
    assert all(f"value_{f}_0000 =" in sent[1] for f in range(5))
    assert "do not fit into the context window" in sent[1]


async def test_thinking_delays_a_compaction_by_a_quarter_at_most():
    def plan(request):
        n = count_answers(request)
        blocks = (thinking(prose(n, 30)), text("next"), tool_use("mcp__db__query", {"n": n}))
        return BrainAnswer(blocks=blocks)

    beyond = 0
    async with opened(
        Brain(plan),
        "claude-sonnet-5-5",
        system=prose("s", 2_000),
        tools=tools("mcp__db__query"),
        options={"thinking": {"type": "adaptive"}},
    ) as (session, client, _, told):
        session.user("Do all of it.")
        for i in range(70):
            _, response = await call(session, client)
            full = session.fullness()
            beyond += prompt_tokens(response) > 1.25 * full.window.auto_tokens
            give_results(session, response, lambda _, i=i: f"{i} {prose(i, 4_000)}")
            await asyncio.sleep(0.02)
        made = of(session, Compacted)
    assert len(made) >= 2
    assert beyond <= 0.05 * 70
    assert any("waits" in line and "tokens at most" in line for line in told)


async def work(session, client, clock, turns=24):
    """Search and read, with an answer in every fourth call. Return the last response."""
    session.user("start")
    for i in range(turns):
        _, response = await call(session, client)
        if not give_results(session, response, lambda _, i=i: f"{i} {prose(i, 700)}"):
            session.user(f"request {i}")
        clock.advance(5)
    return response


def search(request):
    n, last = count_answers(request), request.messages[-1]["content"]
    if n % 4 == 3 and any(block.get("type") == "tool_result" for block in last):
        return BrainAnswer(blocks=(text(prose(n, 300)),))
    return BrainAnswer(blocks=(text("next"), tool_use("Grep", {"pattern": f"p{n}"})))


def searching():
    return opened(
        Brain(search),
        "claude-opus-5",
        system=prose("s", 2_000),
        tools=tools("Grep", "Read", "Bash", "Ask"),
    )


async def test_an_undone_compaction_leaves_the_cache_as_it_was():
    async with searching() as (session, client, clock, _):
        cached = prompt_tokens(await work(session, client, clock))
        await session.compact()
        session.undo()
        if session._engine.is_answered():
            session.user("and on")
        _, response = await call(session, client)
        assert of(session, Cleared) == []
    assert response.usage.cache_read_input_tokens >= 0.98 * cached


async def test_a_partial_compaction_leaves_the_part_before_it_cached():
    async with searching() as (session, client, clock, _):
        await work(session, client, clock)
        items = session.view.items
        at = next(
            i for i in range(len(items) * 2 // 3, len(items)) if "Spoken" in str(type(items[i]))
        )
        kept = session._engine.make_weigher()
        before = sum(kept(item.measure) for item in items[:at])
        await session.compact(start=items[at].id)
        if session._engine.is_answered():
            session.user("and on")
        _, response = await call(session, client)
        assert of(session, Cleared) == []
    assert response.usage.cache_read_input_tokens >= 0.9 * before


async def test_tools_in_another_order_are_the_same_tools():
    given = tools("Grep", "Read", "Bash", "Ask")
    fewer = []
    async with opened(Brain(search), "claude-opus-5", client=None) as (session, client, clock, _):
        messages, last = [{"role": "user", "content": "go"}], 0
        for i in range(24):
            order = given[::-1] if i % 8 == 7 else given
            request = await session.follow(messages, system=prose("s", 2_000), tools=order)
            response = await client.messages.create(**request.kwargs)
            await session.record(response)
            read = response.usage.cache_read_input_tokens
            fewer += [i] if read < last else []
            last = read
            content = [block.model_dump(exclude_none=True) for block in response.content]
            messages.append({"role": "assistant", "content": content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": f"{i} {prose(i, 900)}"}
                for block in response.content
                if block.type == "tool_use"
            ]
            messages.append({"role": "user", "content": results or "and on"})
            clock.advance(5)
        frames = of(session, Framed)
        assert of(session, Cleared) == []
    assert len(frames) == 2  # an empty one at the start, and the first list
    assert fewer == []


@pytest.mark.parametrize(("minutes", "is_cold"), [(6, False), (40, True)])
@pytest.mark.parametrize("source", ["run", "chat"])
async def test_the_cache_lives_as_long_as_its_provider_keeps_it(source, minutes, is_cold):
    clock = SimulatorClock(is_frozen=True)
    with run_simulator(Brain(search), clock=clock) as simulator:
        async with openai.AsyncOpenAI(
            base_url=f"{simulator.url}/v1", api_key="k", max_retries=0
        ) as client:
            with Session.open(
                model="gpt-6-sol",
                system=prose("s", 2_000),
                tools=tools("Grep", "Read"),
                settings=Settings(),
                source=source,
                clock=clock.now,
            ) as session:
                session.user("go")
                for i in range(30):
                    request = await session.prepare()
                    response = await client.chat.completions.create(**request.kwargs)
                    await session.record(response)
                    calls = response.choices[0].message.tool_calls or ()
                    for use in calls:
                        session.tool_result(use.id, f"{i} {prose(i, 1_400)}")
                    if not calls:
                        session.user(f"request {i}")
                    clock.advance(20)
                before = len(of(session, Cleared))
                clock.advance(minutes * 60)
                await session.prepare()
                after = of(session, Cleared)[before:]
    assert bool(after) == is_cold
    assert all("30 minutes" in entry.why for entry in after)


async def test_a_message_beyond_the_threshold_is_answered_if_the_window_holds_it():
    def plan(request):
        return BrainAnswer(blocks=(text(prose(count_answers(request), 2_500)),))

    async with opened(Brain(plan), "claude-haiku-4-5", system="rules") as (session, client, *_):
        while session.fullness().used_tokens < 86_000:
            session.user("go on")
            await call(session, client)
        document = prose("doc", 66_000)
        session.user(f"Now look at this: {document}")
        request, _ = await call(session, client)
        assert document in str(request.kwargs["messages"])


async def test_a_pinned_document_beyond_the_threshold_does_not_end_the_session():
    def plan(request):
        return BrainAnswer(blocks=(text(prose(count_answers(request), 2_500)),))

    async with opened(Brain(plan), "claude-haiku-4-5", system="rules") as (session, client, *_):
        document = f"Keep this in mind: {prose('doc', 66_000)}"
        session.user(document)
        await call(session, client)
        session._engine.record(Pinned(targets=(session.view.items[0].id,)))
        for turn in range(40):
            session.user(f"question {turn}")
            request, _ = await call(session, client)
        assert document in str(request.kwargs["messages"])
        assert of(session, Compacted)


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-5-5"])
async def test_a_model_writes_the_summaries_of_a_long_session(model):
    def plan(request):
        n = count_answers(request)
        return BrainAnswer(blocks=(text(prose(n, 60)), tool_use("Ask", {"question": f"q{n}"})))

    brain = Brain(plan, words=380)
    async with opened(brain, model, system=prose("s", 8_000), tools=tools("Read", "Ask")) as (
        session,
        client,
        *_,
    ):
        session.user("Do all of it.")
        for i in range(130):
            _, response = await call(session, client)
            give_results(session, response, lambda _, i=i: f"{i} {prose(i, 2_400)}")
            await asyncio.sleep(0.01)
        by = [entry.by for entry in of(session, Compacted)]
    assert len(by) >= 4
    assert by.count("model") >= 0.8 * len(by)


async def test_a_refusal_by_the_budget_is_no_failure_of_the_model_and_its_reason_is_told():
    def plan(request):
        n = count_answers(request)
        return BrainAnswer(blocks=(text("next"), tool_use("Ask", {"question": f"q{n}"})))

    async with opened(Brain(plan), "claude-opus-5", window=20_000, tools=tools("Read", "Ask")) as (
        session,
        client,
        _,
        told,
    ):
        settings = Settings()
        limits = type(settings.budget)(own_share=0.0001, own_floor_usd=0.0)
        from dataclasses import replace

        window = type(settings.window)(limit_tokens=20_000, auto_line="")
        session._engine.reconfigure(replace(settings, budget=limits, window=window))
        session.user("Do all of it.")
        while len(of(session, Compacted)) < 4:
            _, response = await call(session, client)
            give_results(session, response, lambda _: prose("x", 900))
        assert of(session, Failed) == []
        (refused, *_) = of(session, Withheld)
        assert refused.what.startswith("compact: ") and "budget.own_share" in refused.why
        acts = [act for turn in explain(session.view.history) for act in turn.acts]
        assert "withheld" in {act.kind for act in acts}
        assert sum("budget.own_share" in line for line in told) == 1
        session._engine.reconfigure(replace(settings, window=window))
        while len(of(session, Compacted)) < 5:
            _, response = await call(session, client)
            give_results(session, response, lambda _: prose("x", 900))
        assert of(session, Compacted)[-1].by == "model"


@pytest.mark.parametrize(("window", "requirements"), [(200_000, 100), (32_000, 100)])
async def test_a_specification_outlasts_long_chat_messages(window, requirements):
    listed = [
        f"{i}. The {WORDS[i % 12]} must be {WORDS[i * 5 % 12]} within {i * 7} ms, code HX{i:04d}."
        for i in range(requirements)
    ]
    missing, checked = [], 0
    async with opened(Brain(), "claude-haiku-4-5", window=window, system="rules " * 100) as (
        session,
        client,
        *_,
    ):
        session.user("\n".join(["Please build it so:", *listed]))
        await call(session, client)
        for step in range(300):
            session.user(f"step {step} {prose(step, window // 60)}")
            request, _ = await call(session, client)
            sent = str(request.kwargs["messages"])
            missing += [i for i in range(requirements) if f"HX{i:04d}" not in sent]
            if len(of(session, Compacted)) >= 3:
                break
        checked = str([entry.summary for entry in of(session, Compacted)])
    assert missing == []
    assert "left out" in checked  # of the chat, and said to be
    assert "in the message cited" not in checked  # the model has no tool that opens it
    assert "all in [#" not in checked


async def test_a_manual_compaction_that_cannot_help_is_refused_before_it_is_paid_for():
    brain = Brain(words=150)
    async with opened(brain, "claude-opus-5", system=prose("s", 3_000)) as (session, client, *_):
        for i in range(5):
            session.user(prose(i, 600))
            await call(session, client)
        with pytest.raises(RequestRejected, match="not be shorter"):
            await session.compact()
        assert of(session, Forked) == []


async def test_a_digest_that_is_shorter_is_made_on_request_although_it_is_small():
    given = {"client": None, "tools": tools("Grep", "Read")}
    async with opened(Brain(search), "claude-opus-5", **given) as (session, client, clock, _):
        await work(session, client, clock, turns=2)
        session.user("Thanks.")
        await call(session, client)
        before = session.fullness().used_tokens
        assert (await session.compact()).after_tokens < before


async def test_a_threshold_of_the_users_own_never_ends_a_session():
    from dataclasses import replace

    async with opened(Brain(), "claude-haiku-4-5", system="rules") as (session, client, *_):
        window = type(Settings().window)(auto_line="20000")
        session._engine.reconfigure(replace(Settings(), window=window))
        document = prose("doc", 30_000)
        session.user(document)
        for turn in range(6):
            request, _ = await call(session, client)
            assert document in str(request.kwargs["messages"])
            session.user(f"question {turn}")
        assert not [e for e in of(session, Failed) if isinstance(e, LongholdError)]
