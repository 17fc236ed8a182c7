"""Which class a model name selects."""

import pytest

from longhold.core.models import open_model
from longhold.errors import ConfigError

URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("claude-sonnet-5-5", "AnthropicModel"),
        ("claude-sonnet-5-5[1m]", "AnthropicModel"),
        ("anthropic/claude-opus-5-5", "AnthropicModel"),
        ("opus", "AnthropicModel"),
        ("simulated/claude-opus-5-5", "AnthropicModel"),
        ("gpt-6-sol", "OpenAIModel"),
        ("o4-mini", "OpenAIModel"),
        ("openai/whatever", "OpenAIModel"),
        ("qwen3:8b", "OpenAIModel"),
    ],
)
async def test_a_name_finds_its_class(name, kind):
    model = open_model(name, base_url=URL, api_key="k", is_typed=True)
    assert type(model).__name__ == kind
    assert model.name == name
    await model.close()


def test_a_script_is_opened_by_its_path(tmp_path):
    path = tmp_path / "talk.txt"
    path.write_text("text: hi")
    assert open_model(f"scripted:{path}", is_typed=True).name == f"scripted:{path}"


@pytest.mark.parametrize(
    "name",
    [
        "mystery",
        "simulated/claude-opus-5-5",
    ],
)
def test_a_name_nobody_answers_to_is_a_config_error(name):
    with pytest.raises(ConfigError):
        open_model(name, is_typed=True)


@pytest.mark.parametrize("name", ["scripted:{}", "Scripted:{}", "replay:{}"])
def test_only_a_name_that_the_user_typed_plays_prepared_answers(tmp_path, name):
    path = tmp_path / "answers.txt"
    path.write_text("text: prepared")
    with pytest.raises(ConfigError, match="only --model can name it"):
        open_model(name.format(path))


async def test_capabilities_can_be_overridden():
    model = open_model("qwen", base_url=URL, overrides={"window_tokens": 4_096})
    assert model.capabilities.window_tokens == 4_096
    await model.close()
