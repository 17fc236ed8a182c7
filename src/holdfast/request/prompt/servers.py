"""What the prompt says of MCP servers, and what a message says once they have changed.

Servers come and go while a session runs; the prompt does not move for that. A frame describes the
servers there are when it is made, and each later change is a message.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from holdfast.request.prompt.sections import filled
from holdfast.tools.mcp import ServerOffer

SERVER_CHARS = 2_000
"""Limit of an MCP server's instructions: a page, as for a tool's description."""


def servers_text(offers: Iterable[ServerOffer]) -> str:
    """Render the section on MCP servers, sorted, so that start-up order does not show."""
    servers = map(_server, sorted(offers, key=lambda offer: offer.server))
    return filled("mcp", servers="\n\n".join(servers))


def server_digests(offers: Iterable[ServerOffer]) -> dict[str, str]:
    """Return a digest of what is said of each server."""
    return {
        offer.server: blake2b(_server(offer).encode(), digest_size=8).hexdigest()
        for offer in offers
    }


def servers_news(
    told: Mapping[str, str], offers: Iterable[ServerOffer]
) -> tuple[str, dict[str, str]]:
    """Return a message on what changed since the model was `told`, and the digests it stands for."""
    now = {offer.server: offer for offer in offers}
    digests = server_digests(now.values())
    fresh = {name: digest for name, digest in digests.items() if told.get(name) != digest}
    gone = {name: "" for name, digest in told.items() if digest and name not in now}
    parts = [_server(now[name]) for name in sorted(fresh)]
    parts += [f"## {name}\ngone; its tools cannot be called" for name in sorted(gone)]
    if not parts:
        return "", {}
    return filled("servers_changed", servers="\n\n".join(parts)), fresh | gone


def _server(offer: ServerOffer) -> str:
    said = "".join(c for c in offer.instructions if c.isprintable() or c in "\n\t").strip()
    if len(said) > SERVER_CHARS:
        said = f"{said[:SERVER_CHARS]}… (cut)"
    names = ", ".join(offer.names) or "none"
    quoted = "".join(f"\n> {line}" for line in said.splitlines())
    return f"## {offer.server}\ntools: {names}{quoted}"
