"""Longhold's overhead calls go through the program's own call function."""

from longhold import Session
from longhold.core.models.scripted import ScriptedModel
from longhold.core.turn.fork.asking import ForkRequest

ANSWER = {
    "id": "msg_1",
    "role": "assistant",
    "model": "claude-sonnet-4-6",
    "content": [{"type": "text", "text": "from the program"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 7, "output_tokens": 3},
}


async def test_a_fork_is_sent_as_the_program_sends_and_others_by_the_client(tmp_path):
    sent = []

    async def send(request):
        sent.append(request)
        return ANSWER

    client = ScriptedModel("text: from the client", name="claude-sonnet-4-6")
    session = Session.open(
        "claude-sonnet-4-6", system="Be careful.", client=client, directory=tmp_path
    )
    async with session:
        session.user("hello")
        ask = ForkRequest(say="and?", source="test")
        async with session._calls.through(send):
            assert (await session._ask(ask)).text == "from the program"
        [request] = sent
        assert request.kwargs["system"][0]["text"] == "Be careful."
        assert client.requests == []
        assert (await session._ask(ask)).text == "from the client"
