"""A gateway policy: short requests pass unchanged, because there is nothing to save on them."""

from longhold.gateway.policy import GatewayPolicy, PolicyRequest, Verdict

SHORT_BYTES = 20_000


def judge(request: PolicyRequest) -> Verdict:
    if len(request.body) < SHORT_BYTES:
        return Verdict("pass", "the request is short")
    return Verdict("manage")


def make_policy() -> GatewayPolicy:
    """Called once when the gateway starts."""
    return judge
