"""Restricts a Python process to this machine. Child processes load it by `PYTHONPATH`.

No other file is in its directory, so that nothing else of the tests can be imported.
"""

import sys


class NetworkForbidden(RuntimeError):
    """A test tried to leave the machine."""


def _stay(event: str, arguments: tuple) -> None:
    if event == "socket.connect":
        address = arguments[1]
        if isinstance(address, tuple) and not _is_here(address[0]):
            raise NetworkForbidden(f"a test wanted to reach {address!r}")
    elif event == "socket.getaddrinfo" and not (_is_here(arguments[0]) or _is_number(arguments[0])):
        import socket  # is loaded already, since it raised the event

        raise socket.gaierror(socket.EAI_NONAME, f"a test looked up {arguments[0]!r}")


def _is_here(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    return name.startswith(("127.", "::1", "localhost")) or name in ("0.0.0.0", "::")


def _is_number(host: object) -> bool:
    return ":" in str(host) or str(host).replace(".", "").isdigit()


sys.addaudithook(_stay)
