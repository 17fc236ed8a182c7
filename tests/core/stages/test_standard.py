"""Every session has all layers, in the order of the table of rules."""

from longhold.core.policy.decide import RULES
from longhold.core.stages.clear.clear import Clearing
from longhold.core.stages.compact.owner import CompactionStage
from longhold.core.stages.layers import Collapsing
from longhold.core.stages.snip import Snip
from longhold.core.stages.spill.spill import Spill


def test_the_order_is_that_of_the_path(talk):
    parts = talk().session._layers.parts
    assert [type(part) for part in parts] == [Spill, Snip, Clearing, Collapsing, CompactionStage]
    steps = [step for part in parts for step in part.steps]
    assert steps == list(dict.fromkeys(rule.step for rule in RULES))


def test_a_session_that_may_compact_can_make_room(talk):
    for one, can in ((talk(), True), (talk(on=False), False)):
        assert one.engine.makes_room is can
