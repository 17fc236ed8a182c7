"""Which headers pass a gateway: all but those of one connection, and our own. Pure."""

from collections.abc import Iterable

from holdfast.simulator.wire import Headers

OURS = b"x-holdfast-"
TOKEN = "x-holdfast-token"
"""Our own token has its own header: the provider's credential is not ours to check."""
BYPASS = "x-holdfast-bypass"
"""A client that sends this is passed on as it is."""
SESSION = b"x-holdfast-session"
PASSED = b"x-holdfast-passed"
"""Why a request went upstream as the client sent it."""

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
LONGEST_REASON = 200


def forwarded(headers: Iterable[tuple[bytes, bytes]], *, is_plain: bool = False) -> Headers:
    """Return what goes upstream; `is_plain` asks for an answer that can be read as it passes."""
    left = _end_to_end(headers, (b"host", b"content-length", b"expect"))
    if not is_plain:
        return left
    plain = [(name, value) for name, value in left if name != b"accept-encoding"]
    return [*plain, (b"accept-encoding", b"identity")]


def returned(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return what goes back to the client, `content-length` included: the bytes are the same."""
    return _end_to_end(headers, ())


def passed(reason: str) -> tuple[bytes, bytes]:
    """Word a reason as a header: printable ASCII, on one line."""
    line = " ".join(reason.split())[:LONGEST_REASON]
    return PASSED, "".join(c if " " <= c <= "~" else "?" for c in line).encode()


def _end_to_end(headers: Iterable[tuple[bytes, bytes]], without: tuple[bytes, ...]) -> Headers:
    listed = [(name.lower(), value) for name, value in headers]
    named = {
        part.strip().lower()
        for name, value in listed
        if name == b"connection"
        for part in value.split(b",")
    }
    gone = HOP_BY_HOP | named | {*without}
    return [
        (name, value) for name, value in listed if name not in gone and not name.startswith(OURS)
    ]
