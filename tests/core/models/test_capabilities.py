"""The capability table, looked up by the names that people use."""

import pytest

from longhold.core.models.capabilities import canonical_name, capabilities, known_models


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("Claude-Opus-5.5", "claude-opus-5-5"),
        ("anthropic/claude-haiku-5-5", "claude-haiku-5-5"),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5"),
        ("claude-opus-4@20250514", "claude-opus-4"),
        ("claude-sonnet-5-5[1M]", "claude-sonnet-5-5"),
        ("claude-3-5-haiku-latest", "claude-haiku-3-5"),
        ("sonnet", "claude-sonnet-5-5"),
        ("gpt-6.1-sol-2026-10-01", "gpt-6.1-sol"),
    ],
)
def test_spellings_lead_to_one_name(spelling, name):
    assert canonical_name(spelling) == name


@pytest.mark.parametrize(
    ("model", "minimum"),
    [
        ("claude-opus-5-5", 512),
        ("claude-sonnet-5", 1_024),
        ("claude-sonnet-4-6", 1_024),
        ("claude-opus-4-8", 1_024),
        ("claude-opus-4-7", 2_048),
        ("claude-haiku-4-5", 4_096),
        ("claude-opus-4-6", 4_096),
        ("claude-mythos-preview", 2_048),
    ],
)
def test_cache_minimum_is_per_model(model, minimum):
    assert capabilities(model).cache_minimum_tokens == minimum


def test_a_current_model():
    found = capabilities("claude-sonnet-5-5")
    assert (found.window_tokens, found.max_output_tokens) == (1_000_000, 128_000)
    assert found.thinking_modes == {"adaptive", "between_tools"}
    assert found.binds_thinking and found.keeps_thinking
    assert found.compacts_on_demand and found.compacts_at_threshold
    assert not found.cache_edits and not found.global_scope
    assert found.tokenizer_scale == 1.3


def test_an_older_model():
    found = capabilities("claude-sonnet-4-5-20250929")
    assert (found.window_tokens, found.max_output_tokens) == (200_000, 64_000)
    assert found.thinking_modes == {"enabled", "disabled"}
    assert not found.keeps_thinking and found.prefill
    assert found.tokenizer_scale == 1.0


def test_the_long_suffix_widens_the_window():
    assert capabilities("claude-sonnet-4-5[1M]").window_tokens == 1_000_000
    assert capabilities("somebody-else[1m]").window_tokens == 1_000_000


def test_the_long_suffix_never_narrows():
    assert capabilities("gpt-6-sol[1m]").window_tokens == 1_050_000


def test_unknown_names_get_conservative_limits():
    found = capabilities("granite-9")
    assert (found.window_tokens, found.max_output_tokens) == (200_000, 32_000)
    assert (found.family, found.context_management) == ("unknown", False)
    assert capabilities("claude-next-9").family == "anthropic"


def test_simulated_models_declare_everything():
    found = capabilities("simulated/claude-haiku-4-5")
    assert (found.family, found.window_tokens) == ("simulator", 200_000)
    assert found.cache_edits and found.global_scope and found.context_management
    assert found.compacts_on_demand and found.compacts_at_threshold and found.system_messages


def test_overrides_replace_single_fields():
    found = capabilities("claude-opus-5", overrides={"window_tokens": 50_000})
    assert (found.window_tokens, found.max_output_tokens) == (50_000, 128_000)


@pytest.mark.parametrize("overrides", [{"windows": 1}, {"window_tokens": "many"}])
def test_wrong_overrides_are_refused(overrides):
    with pytest.raises(ValueError, match=next(iter(overrides))):
        capabilities("claude-opus-5", overrides=overrides)


def test_every_known_model_is_its_own_canonical_name():
    assert [canonical_name(name) for name in known_models()] == list(known_models())
