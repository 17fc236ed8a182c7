"""Every session has all stages, in the order of the path."""

from holdfast.stages.clear.clear import Clearing
from holdfast.stages.collapse.collapse import collapse
from holdfast.stages.compact.compact import Compaction
from holdfast.stages.snip import Snip


def test_the_order_is_that_of_the_path(talk):
    """Spill, snip, clear, collapse, compact: the cheapest first, the dearest last."""
    stages = talk().engine.stages
    order = [stages.index(one) for one in stages if _is_of_the_path(one)]
    kinds = [type(stages[i]).__name__ for i in order]
    assert kinds == ["Snip", "Clearing", "function", "Compaction"]
    assert stages[0].__name__ == "stage"


def _is_of_the_path(stage):
    return isinstance(stage, Snip | Clearing | Compaction) or stage is collapse


def test_a_session_that_may_compact_can_make_room(talk):
    """And one that may not says so before a call is made in vain."""
    assert talk().engine.can_make_room
    assert not talk(on=False).engine.can_make_room
