"""A session against a real llama.cpp server, through OpenAI's SDK; needs the extra and the weights."""

import pytest
from openai import AsyncOpenAI

from local_model import install
from longhold import Session
from longhold.core.messages import text_of

WINDOW = 2_048

pytestmark = [
    pytest.mark.optional,
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Start llama.cpp's server on loopback, with a small window."""
    runtime = pytest.importorskip("xllamacpp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGHOLD_HOME", str(tmp_path_factory.mktemp("weights")))
        path = install("smollm2")
    params = runtime.CommonParams()
    params.model.path = str(path)
    params.model_alias = {"smol"}
    params.n_ctx = WINDOW
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.verbosity = 0
    server = runtime.Server(params)
    yield server.listening_address
    del server


async def test_a_llama_server_says_its_window_and_a_list_is_followed(address, tmp_path):
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0) as client:
        with Session.open(model="smol", client=client, directory=tmp_path) as session:
            messages = [
                {"role": "system", "content": "Answer in a word."},
                {"role": "user", "content": "What colour is the sky?"},
            ]
            for question in ("And grass?", "And snow?"):
                request = await session.follow(messages)
                request.kwargs["max_tokens"] = 8
                response = await client.chat.completions.create(**request.kwargs)
                await session.record(response)
                messages.append(response.choices[0].message)
                messages.append({"role": "user", "content": question})
            assert session.fullness().window.limit_tokens == WINDOW
            assert "sky" in text_of(session.view.messages()[0].content)
            assert session.view.reported.usage.prompt_tokens > 20
