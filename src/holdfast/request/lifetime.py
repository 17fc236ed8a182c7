"""How long a provider keeps a prefix, and which headers a session sends.

What a session asks for is decided once, when it begins, and written into its frame: what changes
later, in the settings or in the account, changes no byte of what is sent. A provider that takes
no lifetimes keeps to one of its own. Names of lifetimes are a number and a unit: 5m, 30m, 1h.
"""

from fnmatch import fnmatchcase
from typing import Literal

from msgspec import structs

from holdfast.log.entries import Framed
from holdfast.models.capabilities import Capabilities, capabilities
from holdfast.request.build import DIAGNOSIS, GLOBAL_SCOPE
from holdfast.settings import CacheSettings

SECONDS = {"m": 60.0, "h": 3_600.0}
"""By the unit of a lifetime's name."""


def latched(frame: Framed, model: str, settings: CacheSettings, source: str) -> Framed:
    """Write into a frame how long it is kept and which headers go with it."""
    return structs.replace(
        frame,
        cached=settings.on,
        lifetime=lifetime_for(source, settings),
        betas=(*frame.betas, *betas_for(capabilities(model), settings)),
    )


def life_of(model: str, marked: str) -> str:
    """Name how long a model's provider keeps what was marked with a lifetime."""
    own = capabilities(model).cache_seconds
    return f"{own / SECONDS['m']:.0f}m" if own else marked


def seconds_of(lifetime: str) -> float:
    """Say how long a lifetime is."""
    return float(lifetime[:-1]) * SECONDS[lifetime[-1]]


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
