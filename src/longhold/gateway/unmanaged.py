"""Detects that a wrapped command bypasses its gateway and connects to a provider (Linux only)."""

import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

LOOK_SECONDS = 0.3
_PROC = Path("/proc")


def name_unmanaged(pid: int, name: str, urls: Iterable[str], is_over: Event) -> None:
    """Watch the connections of a process and its children until one goes to one of `urls`."""
    ends: set[str] | None = None
    while not is_over.wait(LOOK_SECONDS):
        found = set(_remote_ends(pid))
        if not found:
            continue
        ends = ends if ends is not None else {end for url in urls for end in _ends_of(url)}
        if found & ends:
            sys.stderr.write(
                f"longhold: {name} connects to the provider directly, so it is NOT managed;"
                " configure it to use ANTHROPIC_BASE_URL or OPENAI_BASE_URL\n"
            )
            return


def _ends_of(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with suppress(OSError):
        for family, *_, address in socket.getaddrinfo(parts.hostname, port):
            packed = socket.inet_pton(family, str(address[0]))
            words = (packed[at : at + 4][::-1] for at in range(0, len(packed), 4))
            yield f"{b''.join(words).hex().upper()}:{port:04X}"


def _remote_ends(pid: int) -> Iterator[str]:
    """Return the remote addresses of a process and its children, in the kernel's notation."""
    with suppress(OSError):  # because the process ended, or this system has no /proc
        place = _PROC / str(pid)
        sockets = {str(fd.readlink()) for fd in (place / "fd").iterdir()}
        for table in ("tcp", "tcp6"):
            for line in (place / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if f"socket:[{fields[9]}]" in sockets:
                    yield fields[2]
        for child in (place / "task" / str(pid) / "children").read_text().split():
            yield from _remote_ends(int(child))
