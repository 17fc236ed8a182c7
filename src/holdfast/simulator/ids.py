"""Unique ids for requests and responses.

Random, so that a restarted simulator never repeats one, but drawn from one seeded generator:
asking the system for each would cost more than the rest of a response.
"""

import random

ID_CHARS = 24  # as long as the providers' own

_random = random.SystemRandom()
_drawn = random.Random(_random.getrandbits(128))


def new_id(prefix: str) -> str:
    """Make an id with a prefix such as `msg_`."""
    return f"{prefix}{_drawn.getrandbits(4 * ID_CHARS):0{ID_CHARS}x}"
