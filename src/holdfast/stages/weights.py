"""What parts of a view weigh, in the tokens of the gauge.

The gauge knows the size of the whole view from what providers reported; plans compare parts with
lines and targets given in those tokens, so parts must be weighed in the same unit.
"""

from collections.abc import Callable
from typing import TypeAlias

from holdfast.messages.measure import Measure
from holdfast.turn.engine import Engine
from holdfast.view.tokens import default_weights, weigh

Weigh: TypeAlias = Callable[[Measure], float]


def weigher(engine: Engine) -> Weigh:
    """Weigh parts of the view so that together they weigh what the gauge says of all of it."""
    weights = default_weights(engine.model)
    whole = weigh(engine.view.total, weights)
    scale = engine.fullness().used_tokens / whole if whole else 1.0
    return lambda measure: scale * weigh(measure, weights)
