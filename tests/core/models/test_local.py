"""The local model. Tests that run it need the extra and the weights."""

from contextlib import asynccontextmanager

import pytest

from local_model import LocalEngine, LocalModel, install
from longhold.core.models.protocol import Request, collect
from longhold.errors import ConfigError, ModelError, PromptTooLong


def real(test):
    return pytest.mark.optional(pytest.mark.timeout(600)(test))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Install the model once, in a home that outlives the single test's."""
    pytest.importorskip("xllamacpp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGHOLD_HOME", str(tmp_path_factory.mktemp("weights")))
        return install("smollm2")


@asynccontextmanager
async def smollm2(path):
    model = LocalModel("local/smollm2", path=path, engine=LocalEngine(context_tokens=2_048))
    try:
        yield model
    finally:
        await model.close()


def request(*messages):
    kwargs = {"model": "local/smollm2", "max_tokens": 8, "system": "Answer briefly."}
    return Request(kwargs={**kwargs, "messages": list(messages)})


def said(role, text):
    return {"role": role, "content": [{"type": "text", "text": text}]}


QUESTION = said(
    "user", " ".join(f"Item {n} is in box {n % 7}." for n in range(40)) + " Where is 4?"
)


def test_a_model_that_is_not_installed_says_how_to(monkeypatch, tmp_path):
    monkeypatch.setenv("LONGHOLD_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match=r"local_model\.install"):
        LocalModel("local/smollm2")


@real
async def test_the_second_turn_evaluates_only_what_is_new(path):
    async with smollm2(path) as model:
        first = await collect(model.stream(request(QUESTION)))
        answer = said("assistant", first.content[0].text)
        second = await collect(model.stream(request(QUESTION, answer, said("user", "And 5?"))))
    known = first.usage.prompt_tokens + first.usage.output_tokens
    assert first.usage.input_tokens > 400
    assert second.usage.cache_read_tokens >= known - 2
    assert second.usage.input_tokens < 40


@real
async def test_a_file_that_is_no_model_is_a_model_error(tmp_path):
    pytest.importorskip("xllamacpp")
    junk = tmp_path / "junk.gguf"
    junk.write_bytes(b"junk")
    model = LocalModel("local/smollm2", path=junk)
    with pytest.raises(ModelError, match=r"junk\.gguf"):
        await collect(model.stream(request(QUESTION)))
    await model.close()


@real
async def test_a_prompt_over_the_window_has_its_numbers(path):
    async with smollm2(path) as model:
        with pytest.raises(PromptTooLong) as caught:
            await collect(model.stream(request(said("user", "word " * 3000))))
    assert caught.value.needed_tokens > caught.value.allowed_tokens == 2_048


@real
async def test_the_model_counts_with_its_own_tokenizer(path):
    async with smollm2(path) as model:
        asked = request(QUESTION)
        counted = await model.count(asked)
        reply = await collect(model.stream(asked))
    assert counted == reply.usage.prompt_tokens
