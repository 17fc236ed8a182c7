"""Every session has all stages, in the order of the path."""

from longhold.core.stages.clear.clear import Clearing
from longhold.core.stages.compact.owner import CompactionStage
from longhold.core.stages.layers import CollapseIfOn
from longhold.core.stages.snip import Snip


def test_the_order_is_that_of_the_path(talk):
    first, *rest = talk().session.layers.stages
    assert first.__qualname__ == "Spill.stage"
    assert [type(stage) for stage in rest] == [Snip, Clearing, CollapseIfOn, CompactionStage]


def test_a_session_that_may_compact_can_make_room(talk):
    for one, can in ((talk(), True), (talk(on=False), False)):
        assert one.engine.makes_room is can
