"""What all connections to providers share: how long they wait, whom they trust with no key.

Plain values and two questions about an address and a response; both SDK models ask them.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from holdfast.errors import RequestRejected

CONNECT_SECONDS = 5.0
"""A host that does not take the connection by then is down; the SDKs' own default."""
READ_SECONDS = 600.0
"""The longest silence on the socket, the SDKs' default; `steady` usually gives up earlier."""
DRAIN_SECONDS = 0.1
"""The end of a response comes with its last event; a server that keeps it open is not waited for."""
NO_KEY = "none"
"""Sent to servers on this machine, which ask for a key and take any."""

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def is_loopback(url: str | None) -> bool:
    """Say whether the address is this machine."""
    return url is not None and urlsplit(url).hostname in _LOOPBACK


def check_is_stream(headers: Mapping[str, str]) -> None:
    """Raise if a 200 is not a stream of events: then somebody else answered."""
    kind = headers.get("content-type", "text/event-stream")
    if not kind.startswith("text/event-stream"):
        raise RequestRejected(f"the server answered with {kind!r}, not a stream; check base_url")
