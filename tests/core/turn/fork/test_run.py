"""A fork: its message, turns, tools and end, and what its parent records."""

import asyncio
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from casting import idle, until
from longhold.core.log import Header, Log, load
from longhold.core.log.entries import Began, Framed, Ran, Replied, Said, Section, Spilled
from longhold.core.log.log import agent_log
from longhold.core.log.spending import Budget, FileLedger, sum_spending
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.models.protocol import Started, TextDelta
from longhold.core.settings import BudgetSettings
from longhold.core.turn.fork.asking import NO_TOOLS, ForkRequest, check_may_fork
from longhold.core.turn.fork.prefix import Prefix
from longhold.core.turn.repair import INTERRUPTED, NOT_RUN
from longhold.core.turn.round import Allowed, Denied, ToolRan
from longhold.core.view import fold
from longhold.errors import BudgetSpent, ModelUnavailable, PromptTooLong, RequestRejected
from wire_checks import marked, said

SUM_UP = ForkRequest(say="Sum up.", source="notes")
READ = 'tool: Read {"file_path": "a.txt"}'


def messages_of(entries):
    return [message.role for message in fold(entries).messages()]


async def let_read(use, tool):
    return Allowed(input=use.input) if tool.name == "Read" else Denied(reason="Only reading.")


async def test_an_answer_comes_back_and_the_parent_stays_as_it_was(talk):
    one = talk("text: Fixed.\n---\ntext: A bug was fixed.\n---\ntext: Done.")
    await one.turn()
    before = one.view.messages()
    reply = await one.forks.ask(SUM_UP)
    assert (reply.text, reply.reason, reply.turns) == ("A bug was fixed.", "completed", 1)
    assert one.view.messages() == before
    await one.turn("And the tests?")
    assert said(one.sent) == [
        ("user", ["Fix the login bug"]),
        ("assistant", ["Fixed."]),
        ("user", ["And the tests?"]),
    ]


async def test_the_parents_request_is_sent_with_the_words_behind_it(talk):
    one = talk("text: Fixed.\n---\ntext: Yes.")
    await one.turn()
    parent = one.sent
    await one.forks.ask(SUM_UP)
    fork = one.sent
    assert said(fork)[-1] == ("user", ["Sum up."])
    assert marked(fork) == marked(parent) == [(0, 0)]
    for key in ("model", "max_tokens", "system", "tools"):
        assert fork[key] == parent[key]


async def test_words_after_a_user_message_are_appended_to_it(talk):
    one = talk("text: Fixed.\n---\ntext: Yes.")
    await one.turn()
    one.session.user("And the tests?")
    await one.forks.ask(SUM_UP)
    assert said(one.sent)[-1] == ("user", ["And the tests?", "Sum up."])


async def test_what_a_call_cost_is_recorded_with_the_parent(talk):
    one = talk("text: Fixed.\n---\ntext: Yes.")
    await one.turn()
    await one.forks.ask(SUM_UP)
    (entry,) = one.forked
    assert (entry.source, entry.model, entry.turn) == ("notes", "claude-opus-5-5", 1)
    assert entry.usage.prompt_tokens > 0
    assert entry.stop_reason == "end_turn"
    answers = [e for e in one.view.history if isinstance(e, Replied)]
    assert sum_spending(one.view.history).calls == len(answers) + 1


async def test_a_denied_tool_is_read_and_the_fork_goes_on(talk):
    one = talk(f"text: Fixed.\n---\n{READ}\n---\ntext: Without it, then.")
    await one.turn()
    reply = await one.forks.ask(ForkRequest(say="Sum up.", source="notes", turns=2))
    assert (reply.text, reply.turns, len(reply.calls)) == ("Without it, then.", 2, 2)
    assert said(one.sent)[-1] == ("user", [NO_TOOLS])
    assert [entry.turn for entry in one.forked] == [1, 2]


async def test_the_list_of_tools_never_changes(talk):
    one = talk(f"text: Fixed.\n---\n{READ}\n---\ntext: Yes.")
    await one.turn()
    listed = one.sent["tools"]
    await one.forks.ask(ForkRequest(say="Sum up.", source="notes", turns=2))
    assert one.sent["tools"] == listed


async def test_turns_run_out(talk):
    one = talk(f"text: Fixed.\n---\ntext: Let me look.\n{READ}")
    await one.turn()
    reply = await one.forks.ask(SUM_UP)
    assert (reply.reason, reply.text, reply.stop_reason) == (
        "max_turns",
        "Let me look.",
        "tool_use",
    )


async def test_a_predicate_lets_some_tools_run_on_a_state_of_its_own(talk, tmp_path):
    (tmp_path / "a.txt").write_text("alpha\n")
    one = talk(f"text: Fixed.\n---\n{READ}\n---\ntext: Alpha.")
    await one.turn()
    ran = []
    request = ForkRequest(
        say="Look.", source="memory", turns=3, permit=let_read, on_event=ran.append
    )
    assert (await one.forks.ask(request)).text == "Alpha."
    (tool,) = [event for event in ran if isinstance(event, ToolRan)]
    assert "alpha" in str(tool.outcome.content)
    assert one.tool_context.files.of(tmp_path / "a.txt") is None


async def test_a_denial_can_end_the_fork(talk):
    async def stop(use, tool):
        return Denied(reason="No more.", ends_turn=True)

    one = talk(f"text: Fixed.\n---\n{READ}")
    await one.turn()
    request = ForkRequest(say="Look.", source="memory", turns=3, permit=stop)
    assert (await one.forks.ask(request)).reason == "denied"


async def test_progress_is_told_as_it_happens(talk):
    one = talk("text: Fixed.\n---\ntext: Yes.")
    await one.turn()
    told = []
    await one.forks.ask(ForkRequest(say="Sum up.", source="notes", on_event=told.append))
    assert isinstance(told[0], Started)
    assert any(isinstance(event, TextDelta) and event.text == "Yes." for event in told)


async def test_the_parents_abort_ends_a_fork(talk):
    one = talk("text: Fixed.\n---\ntext: So far\nerror: stalled")
    await one.turn()
    going = await half_way(one)
    one.forks.abort.set()
    reply = await going
    assert (reply.reason, reply.text) == ("aborted", "")
    assert [entry.stop_reason for entry in one.forked] == ["aborted"]


async def test_after_an_abort_no_call_is_made(talk):
    one = talk("text: Fixed.\n---\ntext: Yes.")
    await one.turn()
    one.forks.abort.set()
    reply = await one.forks.ask(SUM_UP)
    assert (reply.reason, reply.turns, len(one.model.requests)) == ("aborted", 0, 1)


async def test_cancelling_the_one_who_waits_ends_a_fork(talk):
    one = talk("text: Fixed.\n---\ntext: So far\nerror: stalled")
    await one.turn()
    going = await half_way(one)
    going.cancel()
    with suppress(asyncio.CancelledError):
        await going
    assert going.cancelled()
    assert [entry.stop_reason for entry in one.forked] == ["aborted"]


async def half_way(one):
    """Start a fork and wait until its answer has begun."""
    begun = asyncio.Event()

    def take(event):
        if isinstance(event, TextDelta):
            begun.set()

    request = ForkRequest(say="Sum up.", source="notes", on_event=take)
    going = asyncio.create_task(one.forks.ask(request))
    await begun.wait()
    return going


async def test_a_failure_is_raised_and_leaves_the_parent_as_it_was(talk):
    one = talk("text: Fixed.\n---\nerror: 529")
    await one.turn()
    before = one.view.messages()
    with pytest.raises(ModelUnavailable):
        await one.forks.ask(SUM_UP)
    assert one.view.messages() == before
    assert one.forked == []


async def test_an_attempt_that_broke_is_paid_too(talk):
    one = talk("text: Fixed.\n---\ntext: So f\nerror: broken\n---\ntext: So far.", retries=2)
    await one.turn()
    reply = await one.forks.ask(SUM_UP)
    assert reply.text == "So far."
    assert [entry.stop_reason for entry in one.forked] == ["broken", "end_turn"]
    assert reply.usage.input_tokens == sum(call.input_tokens for call in reply.calls) > 0


async def test_a_window_that_the_answer_fills_is_too_long(talk):
    one = talk("text: Fixed.\n---\ntext: So\nstop: model_context_window_exceeded")
    await one.turn()
    with pytest.raises(PromptTooLong):
        await one.forks.ask(SUM_UP)
    assert len(one.forked) == 1


@pytest.mark.parametrize(("stop", "reason"), [("max_tokens", "cut_off"), ("refusal", "refused")])
async def test_why_an_answer_ended_is_told(talk, stop, reason):
    one = talk(f"text: Fixed.\n---\ntext: So\nstop: {stop}")
    await one.turn()
    assert (await one.forks.ask(SUM_UP)).reason == reason


async def test_a_pause_of_the_provider_is_gone_on_from(talk):
    one = talk("text: Fixed.\n---\ntext: Searching\nstop: pause_turn\n---\ntext: Found.")
    await one.turn()
    reply = await one.forks.ask(ForkRequest(say="Search.", source="memory", turns=2))
    assert (reply.text, reply.reason) == ("Found.", "completed")
    assert said(one.sent)[-1] == ("assistant", ["Searching"])


async def test_without_money_no_call_is_made(talk, tmp_path):
    budget = Budget(BudgetSettings(max_tokens=10), ledger=FileLedger(tmp_path / "spent"))
    budget.pay("claude-opus-5-5", Usage(input_tokens=50))
    one = talk("text: Fixed.\n---\ntext: Yes.", budget=budget)
    await one.turn()
    with pytest.raises(
        BudgetSpent, match="no call was made: the session's limit of 10 tokens is reached"
    ):
        await one.forks.ask(SUM_UP)
    assert len(one.model.requests) == 1


async def test_past_the_engines_share_only_the_user_is_answered(talk):
    one = talk("text: Fixed.\n---\ntext: Yes.")
    one.forks = replace(one.forks, refuses=lambda source: f"{source} has had its share")
    await one.turn()
    with pytest.raises(BudgetSpent, match="no call was made: notes has had its share"):
        await one.forks.ask(SUM_UP)
    assert len(one.model.requests) == 1
    assert (await one.forks.ask(replace(SUM_UP, is_wanted=True))).text == "Yes."


async def test_a_forks_calls_are_paid_from_the_purse(talk, tmp_path):
    budget = Budget(BudgetSettings(), ledger=FileLedger(tmp_path / "spent"))
    one = talk("text: Fixed.\n---\ntext: Yes.", budget=budget)
    await one.turn()
    reply = await one.forks.ask(SUM_UP)
    assert budget.session.input_tokens == reply.usage.input_tokens > 0


async def test_a_transcript_of_its_own_names_its_parent(talk, tmp_path):
    one = talk(f"text: Fixed.\n---\n{READ}\n---\ntext: Without.")
    await one.turn()
    path = tmp_path / "agents" / "a1.jsonl"
    await one.forks.ask(
        ForkRequest(say="Look.", source="agent:a1", turns=2, keeps_log=agent_log(path))
    )
    kept = load(path)
    assert (kept.header.session, kept.header.parent) == ("a1", one.session.id)
    assert messages_of(kept.entries) == ["user", "assistant", "user", "assistant"]


async def test_a_fork_that_goes_on_is_told_what_began_and_what_did_not(talk, tmp_path):
    one = talk("text: Fixed.\n---\ntext: I will see.")
    await one.turn()
    path = tmp_path / "agents" / "a1.jsonl"
    path.parent.mkdir()
    uses = tuple(ToolUse(id=id, name="Read", input={}) for id in ("t1", "t2"))
    with Log.create(path, Header(session="a1")) as log:
        log.append(Said(content=(Text(text="Look."),)))
        log.append(Replied(response_id="r", content=uses, stop_reason="tool_use"))
        log.append(Began(tool_use_id="t1", tool="Read"))
    await one.forks.ask(ForkRequest(say="Go on.", source="agent:a1", keeps_log=agent_log(path)))
    told = [entry.content for entry in load(path).entries if isinstance(entry, Ran)]
    assert told == [INTERRUPTED, NOT_RUN]


async def test_by_default_no_transcript_is_kept(talk, tmp_path):
    one = talk("text: Fixed.\n---\ntext: Yes.")
    await one.turn()
    before = sorted(tmp_path.rglob("*"))
    await one.forks.ask(SUM_UP)
    assert sorted(tmp_path.rglob("*")) == before


async def test_a_fork_may_not_fork(talk):
    one = talk("text: Fixed.\n---\ntext: Yes.")
    await one.turn()
    one.tool_context.is_fork = True
    with pytest.raises(RequestRejected, match="a fork may not fork"):
        await one.forks.ask(SUM_UP)
    with pytest.raises(RequestRejected):
        check_may_fork(one.tool_context.fork())


async def test_a_prefix_taken_earlier_can_be_forked_later(talk):
    one = talk("text: Fixed.\n---\ntext: Tested.\n---\ntext: Yes.")
    await one.turn()
    then = one.engine.prefix()
    await one.turn("And the tests?")
    await one.forks.ask(ForkRequest(say="Sum up.", source="notes", prefix=then))
    assert [words for _, words in said(one.sent)] == [
        ["Fix the login bug"],
        ["Fixed."],
        ["Sum up."],
    ]


async def test_a_frame_of_its_own_can_be_asked(talk):
    one = talk("text: Yes.")
    own = Prefix(
        frame=Framed(sections=(Section(name="role", text="You choose."),)),
        model="claude-opus-5-5",
        max_output_tokens=100,
    )
    reply = await one.forks.ask(ForkRequest(say="Which?", source="recall", prefix=own))
    assert reply.text == "Yes."
    assert one.sent["system"][0]["text"] == "You choose."
    assert "tools" not in one.sent


async def test_content_may_be_said_instead_of_words(talk):
    one = talk("text: Yes.")
    one.session.user("hello")
    use = ToolUse(id="x", name="y", input={})
    await one.forks.ask(ForkRequest(say=(Text(text="a"), use), source="notes"))
    assert [block["type"] for block in one.sent["messages"][-1]["content"]] == ["text"] * 3


async def test_decisions_about_the_history_are_taken_over(talk):
    one = talk(f"{READ}\n---\ntext: Yes.")
    reply = await one.turn()
    use = reply.content[0].id
    one.session.tool_result(use, "a very long result")
    one.engine.record(Spilled(tool_use_id=use, text="a preview", file="f"))
    await one.forks.ask(SUM_UP)
    assert said(one.sent)[-1] == ("user", ["a preview", "Sum up."])


async def test_a_whole_answer_is_told_from_one_that_still_comes(talk):
    one = talk("text: Fixed.")
    one.session.user("go")
    use = ToolUse(id="x", name="Read", input={})
    one.engine.record(Replied(response_id="r", content=(use,)))
    assert not one.engine.prefix().is_whole
    one.engine.record(Replied(response_id="r", content=(), stop_reason="tool_use"))
    assert one.engine.prefix().is_whole


async def test_a_session_can_be_closed_while_a_fork_runs(talk):
    one = talk("text: Fixed.\n---\ntext: So far\nerror: stalled")
    await one.turn()
    going = await half_way(one)
    one.session.close()
    going.cancel()
    with suppress(asyncio.CancelledError):
        await going
    assert going.cancelled()


@pytest.mark.parametrize("words", ["", "  \n", (), (Text(text=" "),)])
async def test_a_fork_without_words_is_refused_before_it_costs_anything(talk, words):
    one = talk("text: Fixed.")
    await one.turn()
    with pytest.raises(RequestRejected, match="needs something to say"):
        await one.forks.ask(ForkRequest(say=words, source="notes"))
    assert len(one.model.requests) == 1


async def test_a_closed_session_is_not_forked(talk):
    one = talk("text: Fixed.\n---\ntext: Never said.")
    await one.turn()
    one.session.close()
    with pytest.raises(RequestRejected, match="closed"):
        await one.forks.ask(SUM_UP)
    assert len(one.model.requests) == 1


async def test_a_calls_time_counts_from_when_it_went_out(talk):
    one = talk("text: Fixed.\n---\ntext: Yes.")
    await one.turn()
    model, waited = one.model, []

    class Slow:
        name, capabilities = model.name, model.capabilities

        async def stream(self, request):
            begun = time.monotonic()
            await asyncio.sleep(0.02)
            waited.append(time.monotonic() - begun)
            async for event in model.stream(request):
                yield event

    one.model = Slow()
    await one.forks.ask(SUM_UP)
    one.model = model
    assert one.forked[0].seconds >= round(waited[0], 3) > 0


async def test_on_a_warm_prefix_nobody_waits_for_a_sibling(talk):
    one = talk("text: Fixed.")
    await one.turn()
    one.seconds_later = 20
    first = asyncio.create_task(held(one))
    second = asyncio.create_task(held(one))
    await until(lambda: isinstance(one.model, Held) and len(one.model.asked) == 2)
    for task in (first, second):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_on_a_prefix_whose_time_is_over_siblings_wait(talk):
    one = talk("text: Fixed.\n---\ntext: Yes.")
    await one.turn()
    one.seconds_later = 600
    tasks = [asyncio.create_task(held(one)) for _ in range(2)]
    await idle()
    assert len(one.model.asked) == 1
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def held(one):
    """Ask a model that never begins to answer."""
    if not isinstance(one.model, Held):
        one.model = Held(one.model)
    await one.forks.ask(SUM_UP)


class Held:
    """A model that is asked and says nothing."""

    def __init__(self, like):
        self.name, self.capabilities = like.name, like.capabilities
        self.asked = []

    async def stream(self, request):
        self.asked.append(request)
        await asyncio.Event().wait()
        yield
