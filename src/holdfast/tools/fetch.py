"""One HTTP request: a GET with limits on time and size, redirects told, not followed.

An address comes in; a `Fetched` goes out with as much of the body as the limit allows. It
goes through the HTTP library that the providers' SDKs bring along, and through the standard
library where there is none. Which addresses may be asked is decided by the permissions.
"""

import asyncio
import importlib.util
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import IO

FETCH_SECONDS = 30.0
"""For the whole exchange; a page that takes longer will not come."""
FETCH_BYTES = 10 << 20
"""More than any page of text; the rest is not loaded."""

_HEADERS = {
    "Accept": "text/html,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5",
    "User-Agent": "holdfast",
}


class NotFetched(Exception):
    """No answer came: the name, the connection, the encryption or the time failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """An answer."""

    status: int
    media_type: str
    """As the server said it, with its parameters."""
    body: bytes
    is_cut: bool
    location: str
    """Where the server sends us instead, or nothing."""


async def fetch(address: str, *, limit_bytes: int = FETCH_BYTES) -> Fetched:
    """Ask for an address."""
    has_library = importlib.util.find_spec("httpx2") is not None
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            if has_library:
                return await _with_library(address, limit_bytes)
            return await asyncio.to_thread(fetch_plainly, address, limit_bytes)
    except TimeoutError:
        raise NotFetched(f"no answer in {FETCH_SECONDS:g} s") from None


async def _with_library(address: str, limit_bytes: int) -> Fetched:
    import httpx2

    try:
        async with (
            httpx2.AsyncClient(follow_redirects=False, timeout=FETCH_SECONDS) as client,
            client.stream("GET", address, headers=_HEADERS) as answer,
        ):
            body = bytearray()
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > limit_bytes:
                    break
            return Fetched(
                status=answer.status_code,
                media_type=answer.headers.get("content-type", ""),
                body=bytes(body[:limit_bytes]),
                is_cut=len(body) > limit_bytes,
                location=answer.headers.get("location", "") if answer.is_redirect else "",
            )
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise NotFetched(str(error) or type(error).__name__) from None


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    """Leaves redirects to the caller."""

    def redirect_request(
        self, req: object, fp: object, code: int, msg: str, headers: object, newurl: str
    ) -> None:
        """Follow none."""


def fetch_plainly(address: str, limit_bytes: int = FETCH_BYTES) -> Fetched:
    """Ask for an address with the standard library."""
    request = urllib.request.Request(address, headers=_HEADERS)
    opener = urllib.request.build_opener(_Unfollowed)
    try:
        with opener.open(request, timeout=FETCH_SECONDS) as answer:
            return _taken(answer.status, answer.headers, answer, limit_bytes)
    except urllib.error.HTTPError as answer:
        with answer:
            return _taken(answer.code, answer.headers, answer, limit_bytes)
    except (OSError, HTTPException, ValueError) as error:
        raise NotFetched(str(getattr(error, "reason", error))) from None


def _taken(status: int, headers: object, body: IO[bytes], limit_bytes: int) -> Fetched:
    content = body.read(limit_bytes + 1)
    get = headers.get  # type: ignore[attr-defined]
    return Fetched(
        status=status,
        media_type=get("content-type", ""),
        body=content[:limit_bytes],
        is_cut=len(content) > limit_bytes,
        location=get("location", "") if 300 <= status < 400 else "",
    )
