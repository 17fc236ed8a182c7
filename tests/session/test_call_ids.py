"""Servers that reuse the same tool call ids in every answer."""

from longhold import Session
from longhold.core.messages import message_to_wire
from longhold.core.messages.rules import violations

MODEL = "claude-opus-4-6"


def call(id="call_0", n=0):
    use = {"type": "tool_use", "id": id, "name": "add", "input": {"n": n}}
    return {"role": "assistant", "content": [use]}


def result(text, id="call_0"):
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id, "content": text}],
    }


def settled(n):
    usage = {"input_tokens": 10, "output_tokens": 2}
    more = {"id": f"r{n}", "model": MODEL, "stop_reason": "tool_use", "usage": usage}
    return call(n=n) | more


def results(session):
    wires = [message_to_wire(message) for message in session.view.messages()]
    blocks = [block for wire in wires for block in wire["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


async def test_a_list_with_repeated_ids_keeps_every_call_and_result(tmp_path):
    messages = [{"role": "user", "content": "go"}]
    session = Session.open(model=MODEL, directory=tmp_path)
    for n in range(4):
        messages += [call(n=n), result(f"result {n}")]
        await session.follow(messages)
        session._engine.log.close()
        session = Session.resume(session.id)
    assert results(session) == [f"result {n}" for n in range(4)]
    assert violations(session.view.messages()) == []
    session.close()


async def test_settled_answers_with_repeated_ids_are_told_apart(tmp_path):
    with Session.open(model=MODEL, directory=tmp_path) as session:
        session.user("go")
        for n in range(3):
            await session.prepare()
            await session.record(settled(n))
            session.tool_result("call_0", f"result {n}")
        assert results(session) == ["result 0", "result 1", "result 2"]
