"""The cost of recordings under policies."""

import pytest

from longhold.core.models.prices import prices
from longhold.insight.replay.run import ReplayOptions, replay_file

COARSE, FINE = "claude-opus-4-6", "claude-opus-4-8"


def test_a_recording_priced_as_another_model_is_counted_in_its_tokens(long_file):
    assert prices(COARSE) == prices(FINE)
    paid = [replay_file(long_file, (), ReplayOptions(model=model)) for model in (COARSE, FINE)]
    output = paid[0].recorded.output_tokens * prices(COARSE).output / 1e6
    prompts = [one.recorded.usd - output for one in paid]
    assert prompts[1] == pytest.approx(1.3 * prompts[0], rel=0.001)
