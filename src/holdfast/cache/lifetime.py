"""How long a provider is asked to keep a prefix, and which headers a session sends.

Decided once, when a session begins, and written into its frame: what changes later, in the
settings or in the account, changes no byte of what is sent.
"""

from fnmatch import fnmatchcase
from typing import Literal

from msgspec import structs

from holdfast.cache.request import DIAGNOSIS, GLOBAL_SCOPE
from holdfast.capabilities import Capabilities, capabilities
from holdfast.entries import Framed
from holdfast.settings import CacheSettings


def latched(frame: Framed, model: str, settings: CacheSettings, source: str) -> Framed:
    """Write into a frame how long it is kept and which headers go with it."""
    return structs.replace(
        frame,
        lifetime=lifetime_for(source, settings),
        betas=(*frame.betas, *betas_for(capabilities(model), settings)),
    )


def lifetime_for(source: str, settings: CacheSettings) -> Literal["5m", "1h"]:
    """Choose the lifetime of a session by who asks: `chat`, `run`, `sdk`, `agent:explore`.

    An hour costs more to write and pays where calls lie further apart than five minutes.
    """
    if settings.lifetime != "auto":
        return "1h" if settings.lifetime == "1h" else "5m"
    patterns = [pattern.strip() for pattern in settings.long_sources.split(",")]
    return "1h" if any(fnmatchcase(source, pattern) for pattern in patterns) else "5m"


def betas_for(able: Capabilities, settings: CacheSettings) -> tuple[str, ...]:
    """List the beta headers that a session sends from its first call to its last."""
    is_asked = settings.diagnose and able.family in ("anthropic", "simulator")
    scope = (GLOBAL_SCOPE,) if able.global_scope else ()
    return (*scope, DIAGNOSIS) if is_asked else scope
