"""WebFetch: read a page from the web as text.

A redirect within the same host is followed; one to another host is reported, so that the
permissions decide about that host. The text of a page is marked as someone else's.
"""

import asyncio
import importlib.util
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from typing import Annotated
from urllib.parse import urljoin, urlsplit

from msgspec import Meta

from holdfast.tools.context import ToolContext
from holdfast.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from holdfast.tools.readable import readable_text

FETCH_SECONDS = 30.0
"""For the whole exchange; a page that takes longer will not come."""
FETCH_BYTES = 10 << 20
"""More than any page of text; the rest is not loaded."""

_HEADERS = {
    "Accept": "text/html,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5",
    "User-Agent": "holdfast",
}


class NotFetched(Exception):
    """No answer: the name, the connection, the encryption or the time failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    status: int
    media_type: str
    """As the server said it, with its parameters."""
    body: bytes
    is_cut: bool
    location: str
    """Where the server sends us instead, or nothing."""


async def fetch(address: str, *, limit_bytes: int = FETCH_BYTES) -> Fetched:
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            if importlib.util.find_spec("httpx2") is not None:
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
            return _fetched(answer.status_code, answer.headers, bytes(body), limit_bytes)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise NotFetched(str(error) or type(error).__name__) from None


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: object, fp: object, code: int, msg: str, headers: object, newurl: str
    ) -> None:
        """Follow none: redirects are the caller's."""


def fetch_plainly(address: str, limit_bytes: int = FETCH_BYTES) -> Fetched:
    request = urllib.request.Request(address, headers=_HEADERS)
    opener = urllib.request.build_opener(_Unfollowed)
    try:
        with opener.open(request, timeout=FETCH_SECONDS) as answer:
            body = answer.read(limit_bytes + 1)
            return _fetched(answer.status, answer.headers, body, limit_bytes)
    except urllib.error.HTTPError as answer:
        with answer:
            body = answer.read(limit_bytes + 1)
            return _fetched(answer.code, answer.headers, body, limit_bytes)
    except (OSError, HTTPException, ValueError) as error:
        raise NotFetched(str(getattr(error, "reason", error))) from None


def _fetched(
    status: int, headers: Mapping[str, str] | Message, body: bytes, limit_bytes: int
) -> Fetched:
    return Fetched(
        status=status,
        media_type=headers.get("content-type", ""),
        body=body[:limit_bytes],
        is_cut=len(body) > limit_bytes,
        location=headers.get("location", "") if 300 <= status < 400 else "",
    )


MAX_REDIRECTS = 5
"""Within one host; more is a circle."""
MAX_CHARS = 100_000
"""About as much as a model can use of one page; the rest is left out and counted."""

_TEXTUAL = re.compile(r"text/|application/([\w.-]+\+)?(json|xml|yaml|toml|javascript|ecmascript)")


class WebFetchInput(Input, frozen=True, kw_only=True):
    url: Annotated[str, Meta(description="The address, with http:// or https://.")]


async def web_fetch(given: WebFetchInput, tool_context: ToolContext) -> Outcome:
    address = _checked(given.url)
    for _ in range(MAX_REDIRECTS + 1):
        tool_context.report(f"loading {address}")
        try:
            answer = await fetch(address)
        except NotFetched as error:
            raise Refused(f"{address} could not be loaded: {error}.") from None
        if not answer.location:
            return _shown(address, answer)
        target = urljoin(address, answer.location)
        if _place(target) != _place(address):
            said = f"{address} redirects to {target}, on another host. Fetch that if you want it."
            return Outcome(content=said, note=f"redirect to {urlsplit(target).hostname}")
        address = target
    raise Refused(f"{given.url} redirects more than {MAX_REDIRECTS} times.")


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname
    except ValueError as error:
        raise Refused(f"{url!r} is not an address: {error}.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise Refused(f"{url!r} is not a web address; it must begin with http:// or https://.")
    return url.strip()


def _place(address: str) -> tuple[str, str | None, int | None]:
    """Identify the server; going from http to https on it is no move."""
    parts = urlsplit(address)
    standard = {"http": 80, "https": 443}.get(parts.scheme)
    port = None if parts.port in (None, standard) else parts.port
    scheme = parts.scheme if parts.scheme not in ("http", "https") else ""
    return scheme, parts.hostname, port


def _shown(address: str, answer: Fetched) -> Outcome:
    kind = answer.media_type.partition(";")[0].strip().lower()
    if kind and not _TEXTUAL.match(kind):
        size = f"over {FETCH_BYTES:,}" if answer.is_cut else f"{len(answer.body):,}"
        raise Refused(f"{address} is {kind}, {size} bytes, and not text. Load it with Bash.")
    text = _decoded(answer)
    if "html" in kind or (not kind and "<html" in text[:1_000].lower()):
        text = readable_text(text, address)
    remarks = [f"[{address}: status {answer.status}.]"] if answer.status >= 400 else []
    if len(text) > MAX_CHARS:
        remarks.append(f"[{len(text) - MAX_CHARS:,} more characters are left out.]")
        text = text[:MAX_CHARS]
    if answer.is_cut:
        remarks.append(f"[Only the first {FETCH_BYTES:,} bytes were loaded.]")
    return Outcome(
        content="\n".join([text or "[The page has no text.]", *remarks]),
        is_error=answer.status >= 400,
        note=f"{urlsplit(address).hostname}: {answer.status}, {len(text):,} characters",
    )


def _decoded(answer: Fetched) -> str:
    """Decode the body as the server or the page says."""
    named = re.search(r"charset=[\"']?([\w-]+)", answer.media_type, re.IGNORECASE)
    in_page = re.search(rb"charset=[\"']?([\w-]+)", answer.body[:2_048], re.IGNORECASE)
    encoding = named[1] if named else in_page[1].decode("ascii") if in_page else "utf-8"
    try:
        return answer.body.decode(encoding, "replace")
    except LookupError:
        return answer.body.decode("utf-8", "replace")


WEB_FETCH: Tool = make_tool("WebFetch", WebFetchInput, web_fetch, kind="fetch", is_read_only=True)
