"""What a stage promises: `longhold.core.turn.engine.Stage`, an async function of the engine."""

from longhold import Session
from longhold.core.log.stores import default_store
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.messages.rules import violations
from longhold.core.models.protocol import Reply
from longhold.core.view import fold

WINDOW_TOKENS = 20_000
ROUNDS, CHARS_PER_TOKEN = 20, 4


def begin(project, id="s"):
    tools = [{"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}]
    return Session.open(
        "claude-sonnet-5-5", id=id, tools=tools, directory=project, window=WINDOW_TOKENS
    )


def reply(number, sent, *content, stop="end_turn"):
    return Reply(
        response_id=f"r{number}",
        model="claude-sonnet-5-5",
        content=content,
        stop_reason=stop,
        usage=Usage(input_tokens=len(str(sent)) // CHARS_PER_TOKEN, output_tokens=10),
    )


async def ask(session, stage):
    """Prepare a call with this stage alone; return the messages."""
    engine = session._engine
    request = await engine.prepare((stage(session._layers),), max_output_tokens=1_000)
    assert not [one for one in engine.view.history if type(one).__name__ == "Failed"]
    assert not violations(engine.view.messages())
    return request.kwargs["messages"]


async def talk(session, stage, rounds=ROUNDS):
    """Hold a conversation with tool calls that fills the window."""
    engine = session._engine
    for number in range(rounds):
        session.user(f"Read file {number}.")
        sent = await ask(session, stage)
        use = ToolUse(id=f"u{number}", name="Read", input={"file_path": f"f{number}.py"})
        engine.record_reply(reply(2 * number, sent, use, stop="tool_use"))
        session.tool_result(f"u{number}", f"line {number}\n" * 300)
        sent = await ask(session, stage)
        engine.record_reply(reply(2 * number + 1, sent, Text(text=f"File {number} is read.")))


async def test_it_runs_in_a_new_session(stage, project):
    async with begin(project) as session:
        session.user("Hello.")
        assert await ask(session, stage)


async def test_the_request_is_valid_while_the_window_fills(stage, project):
    async with begin(project) as session:
        await talk(session, stage)


async def test_the_log_gives_the_same_view_again(stage, project):
    async with begin(project) as session:
        await talk(session, stage)
        shown = session._engine.view.messages()
    assert fold(default_store().load("s").entries).messages() == shown


async def test_it_keeps_the_users_words(stage, project):
    """A stage may shorten and replace, but it may not remove the newest message."""
    async with begin(project) as session:
        await talk(session, stage)
        session.user("Now answer THE QUESTION.")
        assert "THE QUESTION" in str(await ask(session, stage))


async def test_it_goes_on_in_a_resumed_session(stage, project):
    async with begin(project) as session:
        await talk(session, stage)
    async with Session.resume("s", directory=project) as session:
        session.user("Go on.")
        assert "Go on." in str(await ask(session, stage))


async def test_sessions_do_not_share_its_state(stage, project):
    async with begin(project, "a") as one, begin(project, "b") as other:
        await talk(one, stage, 3)
        other.user("Hello.")
        shown = str(await ask(other, stage))
        assert "file 1" not in shown
        assert "Read file" not in shown
