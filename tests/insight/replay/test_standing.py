"""Which policies beat Longhold's, and by how much."""

from longhold.core.messages.usage import Tally
from longhold.insight.replay.result import PolicyFigures, ReplayResult, standings, total


def figures(usd, *, context=100_000, regret=10, over=0, stopped=""):
    result = ReplayResult(
        prompts=[context], main=Tally(usd=usd), over_window_calls=over, stopped=stopped
    )
    result.needed["result"] = regret
    found = total([result])
    assert isinstance(found, PolicyFigures) and found.regret == regret
    return found


def test_cheaper_counts_only_what_stays_under_the_window_and_comes_to_its_end():
    policies = {
        "ours": figures(10.0),
        "cheap": figures(9.0),
        "over": figures(8.0, over=1),
        "stopped": figures(7.0, stopped="full"),
        "dear": figures(11.0),
    }
    found = standings(policies)["ours"]
    assert found.fitting == 2 and found.cheaper == ("cheap",)


def test_less_regret_counts_only_at_the_same_size_of_context():
    policies = {
        "ours": figures(10.0),
        "same_size": figures(20.0, context=104_000, regret=9),
        "same_regret": figures(20.0, context=100_000, regret=10),
        "larger": figures(20.0, context=110_000, regret=1),
    }
    assert standings(policies)["ours"].less_regret == ("same_size",)


def test_ours_are_compared_with_others_and_not_among_themselves():
    policies = {
        "ours": figures(10.0, regret=5),
        "ours_lean": figures(8.0, regret=20),
        "theirs": figures(9.0, regret=9),
    }
    found = standings(policies)
    assert found["ours"].list_losses("theirs") == ("cost",)
    assert found["ours_lean"].list_losses("theirs") == ("regret",)
    assert found["ours"].list_losses("ours_lean") == ()
