"""Whose conversation a request belongs to, by what the client says of itself. Pure.

A client that names its sessions is taken at its word; of others only the lineage of the list
tells. Credentials, models and sub-agents never share a conversation. Of a credential only a keyed
hash is used, so that what is written can be checked against nobody's key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from holdfast.gateway.endpoints import Call
from holdfast.log.handover import GATEWAY
from holdfast.messages import JsonObject
from holdfast.session.dialects import dialect_named
from holdfast.session.program import system_head

SESSION_HEADERS = ("x-claude-code-session-id", "session-id", "session_id", "x-session-id")
AGENT_HEADERS = ("x-claude-code-agent-id", "x-agent-id")
CREDENTIALS = ("x-api-key", "authorization", "api-key", "x-goog-api-key")
HASH_BYTES = 6
LONGEST_NAME = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What keeps one client's conversation apart from another's."""

    tenant: str
    """A hash of the credential."""
    session: str
    """What the client calls its session; '' if it says nothing."""
    agent: str
    model: str
    dialect: str
    client: str
    """What it calls itself; says nothing of whose conversation it is."""
    first: str
    """The key of the list's first message: another one is another conversation."""

    @property
    def name(self) -> str:
        """What the ids of its sessions begin with."""
        parts = (self.tenant, self.session, self.agent, self.model, self.dialect)
        return f"{GATEWAY}{_hash('|'.join(parts))}-{self.first[:8]}"


def identify(call: Call, headers: Mapping[str, str], salt: bytes, *, apart: bool) -> Identity:
    """Say whose request this is; where only one client can come, credentials need not tell."""
    head = system_head(call.messages)
    first = call.messages[min(head, len(call.messages) - 1)]
    return Identity(
        tenant=tenant_of(headers, salt) if apart else "",
        session=_first(headers, SESSION_HEADERS) or _named_in(call.body),
        agent=_first(headers, AGENT_HEADERS),
        model=call.model,
        dialect=call.endpoint.dialect,
        client=headers.get("user-agent", "").partition("/")[0][:LONGEST_NAME],
        first=dialect_named(call.endpoint.dialect).hear(first, f"messages[{head}]").key,
    )


def tenant_of(headers: Mapping[str, str], salt: bytes) -> str:
    """Hash the credential, whichever header a client puts it in."""
    given = "|".join(
        headers[name].removeprefix("Bearer ") for name in CREDENTIALS if name in headers
    )
    return blake2b(given.encode(), digest_size=HASH_BYTES, key=salt).hexdigest()


def _first(headers: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((headers[name] for name in names if headers.get(name)), "")


def _named_in(body: JsonObject) -> str:
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    return str(body.get("prompt_cache_key") or user or "")


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=HASH_BYTES).hexdigest()
