"""The Responses endpoint, as the official SDK reads it."""

import openai
import pytest

from longhold.simulator import BrainAnswer, run_simulator
from longhold.simulator.brains import text, tool_use

MODEL = "gpt-6-sol"
TOOLS = [
    {"type": "function", "name": "add", "parameters": {"type": "object"}},
    {
        "type": "namespace",
        "name": "functions",
        "description": "",
        "tools": [{"type": "custom", "name": "run"}],
    },
]


class Calling:
    """Calls what it is told to, then says what came of it."""

    def __init__(self) -> None:
        self.requests = []

    def answer(self, request):
        self.requests.append(request)
        last = request.messages[-1]["content"][-1]
        if last["type"] == "tool_result":
            return BrainAnswer(blocks=(text(f"It is {last['content']}."),))
        match last["text"]:
            case "add":
                return BrainAnswer(blocks=(text("Wait."), tool_use("add", {"a": 1})))
            case "run":
                return BrainAnswer(blocks=(tool_use("run", {"input": "one()\ntwo()"}),))
        return BrainAnswer(blocks=(text("word " * 400),))


@pytest.fixture
def brain():
    return Calling()


@pytest.fixture
def client(brain):
    with (
        run_simulator(brain) as simulator,
        openai.OpenAI(base_url=f"{simulator.url}/v1", api_key="k", max_retries=0) as made,
    ):
        yield made


@pytest.mark.parametrize(
    ("word", "kinds"), [("add", ["message", "function_call"]), ("run", ["custom_tool_call"])]
)
def test_a_call_is_streamed_and_its_result_is_read(client, brain, word, kinds):
    given = {"model": MODEL, "instructions": "Be brief.", "tools": TOOLS}
    items = [{"role": "user", "content": word}]
    with client.responses.stream(**given, input=items) as stream:
        answer = stream.get_final_response()
    assert [item.type for item in answer.output] == kinds
    call = answer.output[-1]
    result = {"type": f"{call.type}_output", "call_id": call.call_id, "output": "42"}
    items += [*(item.model_dump(exclude_unset=True) for item in answer.output), result]
    said = client.responses.create(**given, input=items)
    assert said.output_text == "It is 42."
    asked = brain.requests[-1]
    assert [block["text"] for block in asked.system] == ["Be brief."]
    assert [tool["name"] for tool in asked.tools] == ["add", "run"]
    assert [message["role"] for message in asked.messages] == ["user", "assistant", "user"]


def test_text_comes_in_pieces_and_is_cut_where_it_is_too_long(client):
    events = list(
        client.responses.create(model=MODEL, input="talk", max_output_tokens=50, stream=True)
    )
    words = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    last = events[-1].response
    assert (events[-1].type, last.incomplete_details.reason) == (
        "response.incomplete",
        "max_output_tokens",
    )
    assert words == last.output_text
    assert 0 < last.usage.output_tokens <= 50
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_the_same_beginning_is_read_from_the_cache(client):
    items = [{"role": "user", "content": "talk " * 2_000}]
    first = client.responses.create(model=MODEL, input=items)
    again = client.responses.create(model=MODEL, input=items)
    assert first.usage.input_tokens_details.cached_tokens == 0
    assert again.usage.input_tokens_details.cached_tokens > 1_024


def test_what_is_kept_by_the_provider_is_refused(client):
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        client.responses.create(model=MODEL, input="Hello", previous_response_id="resp_1")
