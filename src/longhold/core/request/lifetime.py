"""How long a provider keeps a cached prefix, and which beta headers a session sends.

Both are fixed in the frame, so that later settings do not change the prefix.
"""

from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from msgspec import structs

from longhold.core.log.entries import Framed
from longhold.core.messages import Usage
from longhold.core.models.capabilities import Capabilities, capabilities
from longhold.core.request.request import DIAGNOSIS, GLOBAL_SCOPE
from longhold.core.settings import CacheSettings

Lifetime: TypeAlias = Literal["5m", "1h"]  # from the start of the last call that used the entry
SECONDS = {"m": 60.0, "h": 3_600.0}


def latch_lifetime(frame: Framed, model: str, settings: CacheSettings, source: str) -> Framed:
    return structs.replace(
        frame,
        cached=settings.on,
        lifetime=lifetime_for(source, settings),
        betas=(*frame.betas, *betas_for(capabilities(model), settings)),
    )


def hold_system(frame: Framed, model: str, idle_seconds: float) -> Framed | None:
    """Cache the system prompt for an hour after a pause of more than five minutes.

    Everything is written again then anyway. Of 128 such recorded pauses, 108 were under an hour.
    """
    able = capabilities(model)
    is_short = frame.cached and "1h" not in (frame.lifetime, frame.system_lifetime)
    if not is_short or able.cache_seconds or able.family not in ("anthropic", "simulator"):
        return None
    if idle_seconds < seconds_of(frame.lifetime):
        return None
    return structs.replace(frame, n=0, at=0.0, system_lifetime="1h", rests_on=())


def life_of(model: str, marked: str) -> str:
    own = capabilities(model).cache_seconds
    return f"{own / SECONDS['m']:.0f}m" if own else marked


def lifetime_seconds(model: str, marked: str) -> float:
    """Return how long a provider keeps an entry whose breakpoint asked for `marked`."""
    return seconds_of(life_of(model, marked))


def describe_lifetime(model: str, marked: str) -> str:
    minutes = lifetime_seconds(model, marked) / SECONDS["m"]
    return "an hour" if minutes == 60 else f"{minutes:.0f} minutes"


def written_lifetime(usage: Usage, otherwise: str = "5m") -> str:
    if usage.written_1h_tokens:
        return "1h"
    return "5m" if usage.cache_write_5m_tokens else otherwise


def seconds_of(lifetime: str) -> float:
    return float(lifetime[:-1]) * SECONDS[lifetime[-1]]


def lifetime_for(source: str, settings: CacheSettings) -> Lifetime:
    """Choose the lifetime for a source such as `chat`, `run`, `sdk` or `agent:explore`."""
    if settings.lifetime != "auto":
        return "1h" if settings.lifetime == "1h" else "5m"
    patterns = [pattern.strip() for pattern in settings.long_sources.split(",")]
    return "1h" if any(fnmatchcase(source, pattern) for pattern in patterns) else "5m"


def betas_for(able: Capabilities, settings: CacheSettings) -> tuple[str, ...]:
    is_asked = settings.diagnose and able.family in ("anthropic", "simulator")
    scope = (GLOBAL_SCOPE,) if able.global_scope else ()
    return (*scope, DIAGNOSIS) if is_asked else scope
