"""The decision about a request: manage it, pass it unchanged, or refuse it.

A plug-in of `longhold.policies` can pass or refuse requests that the gateway would manage. It runs
in a thread. If it fails or takes too long, the request passes unchanged.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias, get_args

from longhold.core.settings import GatewaySettings
from longhold.gateway.conversations import CREDENTIALS
from longhold.gateway.planner import read_asked

BYPASS = "x-longhold-bypass"
"""A request with this header passes unchanged."""
HIDDEN = frozenset({*CREDENTIALS, "cookie", "proxy-authorization", "x-longhold-token"})
POLICY_SECONDS = 1.0
"""A short time limit, because every request waits for the policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRequest:
    """A request with a conversation."""

    path: str
    """The path of the request, such as `/v1/messages`."""
    headers: Mapping[str, str]
    """The headers with lower-case names, without credentials."""
    body: bytes
    tenant: str = ""
    """A keyed hash of the credential, or "" if clients are not kept apart."""

    @property
    def model(self) -> str:
        return read_asked(self.body).model


Action: TypeAlias = Literal["manage", "pass", "refuse"]


class Verdict(NamedTuple):
    action: Action = "manage"
    why: str = ""
    """The reason, which the client gets in a response header or in the refusal."""


GatewayPolicy: TypeAlias = Callable[[PolicyRequest], Verdict]


def judge_own(settings: GatewaySettings, request: PolicyRequest) -> Verdict:
    """Apply the gateway's own policy. Manage every request, unless it is off or bypassed."""
    return Verdict("manage" if settings.on and BYPASS not in request.headers else "pass")


async def judge(
    settings: GatewaySettings, request: PolicyRequest, plugin: GatewayPolicy | None
) -> Verdict:
    """Ask the plug-in, then the gateway's own policy. Raise if the plug-in fails or is late."""
    if plugin is not None:
        shown = {name: text for name, text in request.headers.items() if name not in HIDDEN}
        async with asyncio.timeout(POLICY_SECONDS):
            found = await asyncio.to_thread(plugin, replace(request, headers=shown))
        verdict = Verdict(*found)
        if verdict.action not in get_args(Action) or not isinstance(verdict.why, str):
            raise ValueError(f"{verdict!r} is not a verdict")
        if verdict.action != "manage":
            return verdict
    return judge_own(settings, request)
