"""When old tool results are cleared."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearSettings:
    """When old tool results are cleared."""

    on: bool = setting(True, "clear old results of tools whose output can be had again")
    keep_results: int = setting(5, "the newest results are still being worked with", low=1)
    smallest_tokens: int = setting(
        200, "a shorter result stays: a line in its place would save next to nothing", low=0
    )
    also: str = setting(
        "",
        "further tools whose output can be had again, as 'mcp__db__query=fetch, Ask=search'",
        form=r"|\s*[^=,\s]+=(read|search|shell|fetch|write)(\s*,\s*[^=,\s]+=(read|search|shell|fetch|write))*\s*",
    )
    idle: bool = setting(True, "clear when the cache has died anyway, so that it costs nothing")
    idle_least_tokens: int = setting(
        2_000, "less is not worth what the model loses sight of, even for nothing", low=0
    )
    edits: bool = setting(True, "delete inside the provider's cache where the model declares it")
    edits_trigger_results: int = setting(
        12, "with five kept, every deletion takes at least seven results", low=2
    )
    server: bool = setting(
        False,
        "let the provider clear; where it does, its cut moves with every call and the cache with it",
    )
    server_trigger_tokens: int = setting(
        180_000, "from here on the provider clears, or from the warning line if that comes first"
    )
    server_target_tokens: int = setting(
        40_000, "and only if that can bring the prompt down to this", low=0
    )
    paid: bool = setting(True, "clear when the calls to come save more than it costs")
    paid_least_tokens: int = setting(
        10_000, "a batch is worth a rewrite of the cache, a single result seldom is", low=0
    )
    line_room: float = setting(
        0.1,
        "at the auto line, clear instead of compacting if that leaves this share of it free",
        low=0.0,
        high=1.0,
    )
