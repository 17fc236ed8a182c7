"""Serve an ASGI application on a local socket, in a thread or in the foreground."""

import asyncio
import ipaddress
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from longhold.errors import ConfigError

if TYPE_CHECKING:  # Models only need `is_loopback`, so this extra is optional.
    import uvicorn
    from starlette.types import ASGIApp

LOOPBACK = "127.0.0.1"
SIMULATED = "x-longhold-simulated"
"""Header that the simulator sets on answers that cost nothing."""
BACKLOG = 2_048
START_SECONDS = 10.0  # longer than any observed start


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # IPPROTO_TCP is named, because asyncio disables Nagle's algorithm only on such sockets.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)  # so that early clients wait for the server
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"port {port} of {host} cannot be used: {error.strerror}; --port 0 picks a free one"
        ) from None
    return listener


def server_of(
    application: "ASGIApp",
    *,
    has_lifespan: bool = False,
    ending_seconds: int = 1,
    protocol: type[asyncio.Protocol] | Literal["httptools"] = "httptools",
) -> "uvicorn.Server":
    """Build a server. At shutdown, running responses get `ending_seconds` to finish."""
    import uvicorn

    config = uvicorn.Config(
        application,
        http=protocol,
        ws="none",
        lifespan="on" if has_lifespan else "off",
        access_log=False,
        log_level="critical",  # no traceback if a client disconnects on purpose
        timeout_graceful_shutdown=ending_seconds,
        server_header=False,
        date_header=False,
    )
    return uvicorn.Server(config)


@contextmanager
def serve_in_thread(server: "uvicorn.Server", port: int = 0) -> Iterator[str]:
    """Serve on a loopback port until the block ends, and yield the URL. Port 0 picks a free one."""
    listener = listen(LOOPBACK, port)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        _await_start(server, thread)
        yield f"http://{LOOPBACK}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(START_SECONDS)
        listener.close()


def _await_start(server: "uvicorn.Server", thread: threading.Thread) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the server did not start")
        time.sleep(0.002)


def is_loopback(host: str) -> bool:
    """Return whether a host name or address always refers to this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def find_foreign_host(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return a Host header that does not name this machine, or "".

    Frameworks replace a header that they cannot parse with the server's own address.
    """
    for name, value in headers:
        if name.lower() == b"host":
            text = value.decode("latin-1").strip()
            host = re.fullmatch(r"(\[[^\]]*\]|[^:/@]*)(?::\d*)?", text.lower())
            if host is None or not is_loopback(host[1].strip("[]")):
                return text or "''"
    return ""


def find_foreign_page(headers: Iterable[tuple[bytes, bytes]], own: str = "") -> str:
    """Return the header that shows that another site's page sent the request, or "".

    Pages on this machine are allowed, or only those of the origin `own` if it is given. A sandboxed
    frame has the origin `null`, so any origin that is not on this machine is foreign.
    """
    for name, value in headers:
        text = value.decode("latin-1").strip()
        if name.lower() == b"sec-fetch-site" and text not in ("none", "same-origin"):
            return text
        if name.lower() == b"origin":
            page = re.fullmatch(r"https?://(\[[^\]]*\]|[^:/@]*)(?::\d+)?", text)
            if page is None or not is_loopback(page[1].strip("[]")) or (own and text != own):
                return text or "''"
    return ""


def new_token() -> str:
    return secrets.token_urlsafe(24)


Headers = list[tuple[bytes, bytes]]
