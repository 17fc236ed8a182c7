"""A caller's own client as a model: both SDKs, sync and async, over HTTP."""

import anthropic
import openai
import pytest

from longhold.core.messages import text_of
from longhold.core.models.anthropic import AnthropicModel
from longhold.core.models.clients import wrap_client
from longhold.core.models.openai import OpenAIModel
from longhold.core.models.protocol import Request, collect
from longhold.core.models.scripted import ScriptedModel
from longhold.errors import ConfigError, ModelUnavailable
from longhold.simulator import run_simulator
from longhold.simulator.brains import ScriptedBrain

USER = {"role": "user", "content": [{"type": "text", "text": "2 + 3?"}]}
CLAUDE = Request(kwargs={"model": "claude-sonnet-5-5", "max_tokens": 64_000, "messages": [USER]})
GPT = Request(kwargs={"model": "gpt-6-sol", "max_tokens": 900, "messages": [USER]})


@pytest.fixture
def simulator():
    with run_simulator(ScriptedBrain("text: 5\n---\nerror: 529")) as one:
        yield one


def made(kind, simulator):
    path = "/v1" if kind.__module__.startswith("openai") else ""
    return kind(base_url=simulator.url + path, api_key="none", max_retries=0)


async def test_an_asynchronous_client_streams(simulator):
    async with made(anthropic.AsyncAnthropic, simulator) as client:
        model = wrap_client(client, "claude-sonnet-5-5")
        assert type(model) is AnthropicModel
        assert text_of((await collect(model.stream(CLAUDE))).content) == "5"
        await model.close()
        assert not client.is_closed()


async def test_a_blocking_client_is_called_beside_the_loop(simulator):
    with made(anthropic.Anthropic, simulator) as client:
        model = wrap_client(client, "claude-sonnet-5-5")
        reply = await collect(model.stream(CLAUDE))
        assert (text_of(reply.content), reply.stop_reason) == ("5", "end_turn")
        assert reply.usage.prompt_tokens > 0
        with pytest.raises(ModelUnavailable):
            await collect(model.stream(CLAUDE))
        assert await model.count(CLAUDE) is None
        await model.close()
        assert not client.is_closed()


@pytest.mark.parametrize("kind", [openai.AsyncOpenAI, openai.OpenAI])
async def test_a_chat_client_answers_too(simulator, kind):
    client = made(kind, simulator)
    model = wrap_client(client, "gpt-6-sol")
    assert isinstance(model, OpenAIModel)
    assert text_of((await collect(model.stream(GPT))).content) == "5"
    await model.close()
    assert not client.is_closed()
    closing = client.close()
    if closing is not None:
        await closing


def test_a_model_passes_as_it_is():
    model = ScriptedModel("text: hi")
    assert wrap_client(model, "anything") is model


def test_anything_else_is_refused_with_what_is_wanted():
    with pytest.raises(ConfigError, match="client is a dict; pass a client of"):
        wrap_client({}, "claude-sonnet-5-5")
