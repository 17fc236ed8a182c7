"""Long-term memory in an agent's session: what it knows, recalls, learns and puts in order.

`remember(agent, source)` gives an agent its memory. `held` is that memory and what is learnt,
`dreams` puts it in order, `judging` says what forks may do that work on it. What they do is
`memory`'s.
"""

from holdfast.remembering.dreams import Dreams
from holdfast.remembering.held import Remembering, dreams_of, remember

__all__ = ["Dreams", "Remembering", "dreams_of", "remember"]
