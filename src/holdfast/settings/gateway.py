"""The gateway: what it takes from clients, and how long it keeps what it has read."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    on: bool = setting(True, "manage what clients send; off, everything is only passed on")
    body_bytes: int = setting(
        33_554_432, "the Messages API refuses longer requests", low=1_024, personal=True
    )
    head_bytes: int = setting(
        65_536, "clients' headers are a few thousand bytes", low=1_024, personal=True
    )
    body_seconds: float = setting(
        60.0,
        "a client that takes longer to send the head of its request, or its body, is stuck",
        low=0.1,
        personal=True,
    )
    connect_seconds: float = setting(
        10.0, "an upstream that does not answer by then is down", low=0.1, personal=True
    )
    read_seconds: float = setting(
        900.0, "longer than the official SDKs wait for the next byte", low=1.0, personal=True
    )
    idle_seconds: float = setting(
        20.0,
        "then a session's log is closed, so that `undo` and `compact` can write to it",
        low=0.0,
        personal=True,
    )
    need_weight: float = setting(
        8.0,
        "in place of cost.need_weight: a client reads its files again with its own tools. With it"
        " the results that are gone when they are needed are as many tokens as under the cost"
        " policy, whose compactions a client makes itself",
        low=0.0,
    )
    warm_share: float = setting(
        0.6,
        "in place of clear.warm_share: the text behind what is cleared is written anew, and in a"
        " small window that is most of it, so clearing less often costs less there",
        low=0.0,
        high=1.0,
    )
    stake_share: float = setting(
        0.1,
        "in place of clear.stake_share: what a session may at worst cost more than without us, if"
        " it ends right after a clearing; over 25 recorded ones the worst was 0.6 %",
        low=0.0,
        high=1.0,
    )
    handover_seconds: float = setting(
        1.0,
        "another process that holds a session's log lets go between two calls: longer than that"
        " takes, and little enough for a client to wait",
        low=0.0,
        personal=True,
    )
    tenant_usd_per_day: float = setting(
        0.0, "of each credential, over all processes here; 0 is no limit", low=0.0, personal=True
    )
    open_sessions: int = setting(
        200, "more are closed, the longest idle first: each holds its history in memory", low=1
    )
    shadow: bool = setting(
        True, "count what the client's own requests would have cost: the saving is measured by it"
    )
