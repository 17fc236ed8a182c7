"""llama.cpp's server and the simulator answer the same requests in the same shape.

They are two independent implementations of the Messages API. Where llama.cpp departs from the
published API, the departure is listed below with its reason. Any other difference fails. The
weights are those in LONGHOLD_HOME (`local_model.install("smollm2")`).
"""

import gc
import json
import os
from itertools import groupby
from types import SimpleNamespace

import anthropic
import pytest

from local_model import installed_path
from longhold.simulator import run_simulator

WEIGHTS = installed_path("smollm2")
"""Looked up now: while a test runs, the home is an empty one."""

pytestmark = [
    pytest.mark.optional,
    pytest.mark.skipif(
        WEIGHTS is None, reason="smollm2 is not installed; local_model.install does that"
    ),
    pytest.mark.timeout(600),
]

WINDOW_TOKENS = 2_048
"""Of the local model: small, so that too long a prompt is a short one."""
TOO_MANY_WORDS = 1_100_000
"""More tokens than the simulated model's window of a million, and than the local one's."""
MODEL = "claude-opus-5"

ONE_CACHE = "its cache fills by itself and costs nothing, so there are no writes to tell of"
ONE_TIER = "nobody pays for another tier"
NO_LOG = "there is no service that keeps requests by an id"
OLD_BODY = "errors keep the body of its other endpoints, with the status inside"

WRITES = (
    "usage.cache_creation_input_tokens: int",
    "usage.cache_creation.ephemeral_5m_input_tokens: int",
    "usage.cache_creation.ephemeral_1h_input_tokens: int",
)
LACKING = {
    "message": dict.fromkeys(WRITES, ONE_CACHE) | {"usage.service_tier: str": ONE_TIER},
    "stream": {
        "ping.type: str": "pings may come anywhere or nowhere; it sends none",
        **{f"message_start.message.{path}": ONE_CACHE for path in WRITES},
        "message_start.message.usage.service_tier: str": ONE_TIER,
        **{f"message_delta.{path}": ONE_CACHE for path in WRITES},
        "message_delta.usage.service_tier: str": ONE_TIER,
        "message_delta.usage.input_tokens: int": "the prompt is told at the start alone",
        "message_delta.usage.cache_read_input_tokens: int": "the prompt is told at the start alone",
    },
    "count": {},
    "error": {"type: str": OLD_BODY, "request_id: str": NO_LOG},
}
"""What the published API has and llama.cpp's server leaves out."""
ADDED = {"message": {}, "stream": {}, "count": {}, "error": {"error.code: int": OLD_BODY}}
"""What llama.cpp's server has beyond the published API."""
ADDED_TOO_LONG = {
    "error.n_prompt_tokens: int": "the numbers that the API puts into words",
    "error.n_ctx: int": "the numbers that the API puts into words",
}


@pytest.fixture(scope="module")
def servers():
    """Both servers, each with an official client."""
    runtime = pytest.importorskip("xllamacpp", reason="llama.cpp is the extra `local`")
    engine = _engine(runtime)
    with (
        run_simulator() as simulator,
        anthropic.Anthropic(base_url=simulator.url, api_key="any", max_retries=0) as simulated,
        anthropic.Anthropic(
            base_url=engine.listening_address, api_key="any", max_retries=0
        ) as local,
    ):
        yield SimpleNamespace(simulated=simulated, local=local)
    del engine
    gc.collect()  # the last reference stops its threads


def _engine(runtime):
    params = runtime.CommonParams()
    params.model.path = str(WEIGHTS)
    params.n_ctx = WINDOW_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = max(1, (os.cpu_count() or 1) // 2)
    params.api_keys = ["any"]
    params.ui = False
    params.verbosity = 0
    return runtime.Server(params)


def question(words="Say hello.", **options):
    return {
        "model": MODEL,
        "max_tokens": 8,
        "system": "Answer briefly.",
        "messages": [{"role": "user", "content": words}],
        **options,
    }


def paths(value, at=""):
    """List every place of a JSON value with its type."""
    match value:
        case dict():
            inner = [(f"{at}.{key}".lstrip("."), each) for key, each in value.items()]
            return {path for place, each in inner for path in paths(each, place)}
        case list():
            return {path for each in value for path in paths(each, f"{at}[]")}
        case _:
            return {f"{at}: {type(value).__name__}"}


def assert_alike(simulated, local, kind, more=()):
    """Demand the same shape but for the departures that are known."""
    assert simulated - local == set(LACKING[kind])
    assert local - simulated == {*ADDED[kind], *more}


def events(client):
    """Ask for a stream and read it off the wire, pings and all."""
    asked = client.messages.with_streaming_response.create(**question(), stream=True)
    with asked as response:
        lines = list(response.iter_lines())
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    return list(zip(names, data, strict=True))


def order(told):
    """Name the events in their order, a run of deltas once, pings left out."""
    return [name for name, _ in groupby(name for name, _ in told if name != "ping")]


def test_messages_have_the_same_fields(servers):
    simulated, local = (
        client.messages.with_raw_response.create(**question()).http_response.json()
        for client in (servers.simulated, servers.local)
    )
    assert_alike(paths(simulated), paths(local), "message")


def test_streams_tell_the_same_story(servers):
    simulated, local = events(servers.simulated), events(servers.local)
    assert order(simulated) == order(local)
    assert all(name == data["type"] for name, data in [*simulated, *local])
    one, other = (
        {path for name, data in told for path in paths(data, name)} for told in (simulated, local)
    )
    assert_alike(one, other, "stream")


def test_the_official_client_assembles_both_streams_alike(servers):
    for client in (servers.simulated, servers.local):
        with client.messages.stream(**question()) as stream:
            message = stream.get_final_message()
        assert [block.type for block in message.content] == ["text"]
        assert (message.role, message.stop_reason) == ("assistant", "max_tokens")
        assert message.usage.output_tokens == 8
        assert message.usage.input_tokens > 0


def test_counts_have_the_same_fields(servers):
    body = {name: value for name, value in question().items() if name != "max_tokens"}
    simulated, local = (
        client.messages.with_raw_response.count_tokens(**body).http_response.json()
        for client in (servers.simulated, servers.local)
    )
    assert_alike(paths(simulated), paths(local), "count")


def test_usage_means_the_same(servers):
    list_of_boxes = " ".join(f"Item {n} is in box {n % 7}." for n in range(60))
    block = {"type": "text", "text": list_of_boxes, "cache_control": {"type": "ephemeral"}}
    asked = question([block])
    body = {name: value for name, value in asked.items() if name != "max_tokens"}
    for client in (servers.simulated, servers.local):
        counted = client.messages.count_tokens(**body).input_tokens
        first, second = (client.messages.create(**asked).usage for _ in range(2))
        for usage in (first, second):
            written = usage.cache_creation_input_tokens or 0
            assert usage.input_tokens + usage.cache_read_input_tokens + written == counted
        assert second.cache_read_input_tokens > 0.9 * counted
        assert first.cache_read_input_tokens < 0.1 * counted


@pytest.mark.parametrize(
    ("send", "error", "types", "more"),
    [
        pytest.param(
            lambda client: client.messages.create(**question(max_tokens=-5)),
            anthropic.BadRequestError,
            ("invalid_request_error", "invalid_request_error"),
            (),
            id="a wrong value",
        ),
        pytest.param(
            lambda client: client.post("/v1/nowhere", cast_to=object),
            anthropic.NotFoundError,
            ("not_found_error", "not_found_error"),
            (),
            id="a wrong address",
        ),
        pytest.param(
            lambda client: client.messages.create(**question("word " * TOO_MANY_WORDS)),
            anthropic.BadRequestError,
            ("invalid_request_error", "exceed_context_size_error"),
            ADDED_TOO_LONG,
            id="too long a prompt",
        ),
    ],
)
def test_errors_have_the_same_fields(servers, send, error, types, more):
    bodies = []
    for client in (servers.simulated, servers.local):
        with pytest.raises(error) as caught:
            send(client)
        bodies.append(caught.value.body)
    assert tuple(body["error"]["type"] for body in bodies) == types
    assert_alike(*map(paths, bodies), "error", more)
