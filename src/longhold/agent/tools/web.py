"""The WebFetch tool. It follows no redirect to a host that permissions have not seen."""

import asyncio
import codecs
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from http.client import HTTPException
from typing import Annotated
from urllib.parse import urljoin, urlsplit

from msgspec import Meta

from longhold.core.messages.text import one_line
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool

FETCH_SECONDS = 30.0
FETCH_BYTES = 10 << 20
CHUNK_BYTES = 1 << 16

_HEADERS = {
    "Accept": "text/html,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5",
    "User-Agent": "longhold",
}
_NO_CHARSETS = frozenset({"idna", "punycode", "undefined"})
"""Python codecs that no page uses and that are extremely slow or fail."""


class NotFetched(Exception):
    """There was no answer, because of DNS, the connection, TLS or a timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    status: int
    media_type: str
    body: bytes
    is_cut: bool
    location: str


async def fetch(address: str, *, limit_bytes: int = FETCH_BYTES) -> Fetched:
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            return await _run_detached(partial(_fetch, address, limit_bytes))
    except TimeoutError:
        raise NotFetched(f"no answer in {FETCH_SECONDS:g} s") from None


async def _run_detached(work: Callable[[], Fetched]) -> Fetched:
    """Run in a thread that the process does not wait for, because slow headers can take hours."""
    done: Future[Fetched] = Future()

    def run() -> None:
        done.set_running_or_notify_cancel()  # so that a late result does not raise an error
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(done)


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: object, fp: object, code: int, msg: str, headers: object, newurl: str
    ) -> None:
        """Do not follow, because the caller handles redirects."""


def _fetch(address: str, limit_bytes: int) -> Fetched:
    """Load a page. The caller gives up after `FETCH_SECONDS`, so the thread must end too."""
    request = urllib.request.Request(address, headers=_HEADERS)
    body, end = bytearray(), time.monotonic() + FETCH_SECONDS
    try:
        try:
            answer = urllib.request.build_opener(_Unfollowed).open(request, timeout=FETCH_SECONDS)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            while len(body) <= limit_bytes and time.monotonic() < end:
                if not (piece := answer.read1(CHUNK_BYTES)):
                    break
                body += piece
    except (OSError, HTTPException, ValueError) as error:
        raise NotFetched(str(getattr(error, "reason", error))) from None
    is_redirect = 300 <= answer.status < 400
    return Fetched(
        status=answer.status,
        media_type=answer.headers.get("content-type", ""),
        body=bytes(body[:limit_bytes]),
        is_cut=len(body) > limit_bytes,
        location=answer.headers.get("location", "") if is_redirect else "",
    )


MAX_REDIRECTS = 5
MAX_CHARS = 100_000
TITLE_CHARS = 300
ADDRESS_CHARS = 8_000

_TEXTUAL = re.compile(r"text/|application/([\w.-]+\+)?(json|xml|yaml|toml|javascript|ecmascript)")


class WebFetchInput(Input, frozen=True, kw_only=True):
    url: Annotated[str, Meta(description="The address, with http:// or https://.")]


async def web_fetch(given: WebFetchInput, tool_context: ToolContext) -> Outcome:
    address = _check_url(given.url)
    for _ in range(MAX_REDIRECTS + 1):
        tool_context.report(f"loading {address}")
        try:
            answer = await fetch(address)
        except NotFetched as error:
            raise Refused(f"{address} could not be loaded: {error}.") from None
        if not answer.location:
            return await asyncio.to_thread(_render_page, address, answer)
        target = _check_length(urljoin(address, answer.location))
        if _place(target) != _place(address):
            said = f"{address} redirects to {target}, on another host. Fetch that if you want it."
            return Outcome(content=said, note=f"redirect to {urlsplit(target).hostname}")
        address = target
    raise Refused(f"{given.url} redirects more than {MAX_REDIRECTS} times.")


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(_check_length(url.strip()))
        host = parts.hostname
    except ValueError as error:
        raise Refused(f"{url!r} is not an address: {error}.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise Refused(f"{url!r} is not a web address; it must begin with http:// or https://.")
    return url.strip()


def _check_length(url: str) -> str:
    if len(url) > ADDRESS_CHARS:
        raise Refused(f"The address has {len(url):,} characters; {ADDRESS_CHARS:,} are allowed.")
    return url


def _place(address: str) -> tuple[str, str | None, int | None]:
    """Identify the server. A move from http to https does not change it."""
    parts = urlsplit(address)
    standard = {"http": 80, "https": 443}.get(parts.scheme)
    port = None if parts.port in (None, standard) else parts.port
    scheme = parts.scheme if parts.scheme not in ("http", "https") else ""
    return scheme, parts.hostname, port


def _render_page(address: str, answer: Fetched) -> Outcome:
    kind = answer.media_type.partition(";")[0].strip().lower()
    if kind and not _TEXTUAL.match(kind):
        size = f"over {FETCH_BYTES:,}" if answer.is_cut else f"{len(answer.body):,}"
        raise Refused(f"{address} is {kind}, {size} bytes, and not text. Load it with Bash.")
    text = _decode_body(answer)
    if "html" in kind or (not kind and "<html" in text[:1_000].lower()):
        text = extract_text(text, address)
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


def _decode_body(answer: Fetched) -> str:
    named = re.search(r"charset=[\"']?([\w-]+)", answer.media_type, re.IGNORECASE)
    in_page = re.search(rb"charset=[\"']?([\w-]+)", answer.body[:2_048], re.IGNORECASE)
    encoding = named[1] if named else in_page[1].decode("ascii") if in_page else "utf-8"
    try:
        is_charset = codecs.lookup(encoding).name not in _NO_CHARSETS
        return answer.body.decode(encoding if is_charset else "utf-8", "replace")
    except LookupError:
        return answer.body.decode("utf-8", "replace")


_MACHINERY = "button canvas dialog form iframe noscript object script select style svg template"
_SKIPPED = frozenset(_MACHINERY.split())
_BLOCKS = """
address article aside blockquote dd div dl dt figcaption figure footer header hr main nav ol p
section table ul
"""
_HEADINGS = {f"h{level}": f"\n\n{'#' * level} " for level in range(1, 7)}
_ENDS = dict.fromkeys((*_BLOCKS.split(), *_HEADINGS), "\n\n") | {"pre": "\n```\n"}
_STARTS = {**_ENDS, **_HEADINGS, "br": "\n", "li": "\n- ", "td": " | ", "th": " | ", "tr": "\n"}
"""The text that begins and ends an element."""


def extract_text(html: str, address: str = "") -> str:
    reader = _Reader(address)
    end = html.rfind(">") + 1  # because the parser would retry each unclosed tag
    reader.feed(html[:end] + html[end:].replace("<", "&lt;"))
    reader.close()
    lines = [line.rstrip() for line in "".join(reader.parts).split("\n")]
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    title = one_line(reader.title)
    return f"# {title}\n\n{body}" if title and title not in body[:400] else body


class _Reader(HTMLParser):
    def __init__(self, address: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self._address = address
        self._skipping: list[str] = []
        """The open elements that are skipped, each tag once."""
        self._in_title = False
        self._in_code = False
        self._links: list[str] = []
        self._left_chars = FETCH_BYTES  # because a short link may stand for a long address

    def _add(self, text: str) -> None:
        if self._left_chars > 0:
            self.parts.append(text)
            self._left_chars -= len(text)

    def parse_comment(self, i: int, report: bool = True) -> int:
        """Skip the comment, because the library would search the rest of the page for each one."""
        return self._behind("-->", i)

    def parse_html_declaration(self, i: int) -> int:
        return self._behind(">", i)  # the library raises on some declarations

    def _behind(self, mark: str, start: int) -> int:
        end = self.rawdata.find(mark, start + 2)
        return len(self.rawdata) if end < 0 else end + len(mark)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED and tag not in self._skipping:
            self._skipping.append(tag)
        elif tag == "title":
            self._in_title = not self.title
        elif tag == "a":
            self._links.append(dict(attrs).get("href") or "")
        elif tag == "img" and (text := dict(attrs).get("alt")):
            self.handle_data(f"[{text}]")
        else:
            self._in_code = self._in_code or tag == "pre"
            self._add(_STARTS.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._skipping:  # also closes open elements inside it
            del self._skipping[self._skipping.index(tag) :]
        elif tag == "title":
            self._in_title = False
        elif tag == "a" and self._links:
            target = self._links.pop()
            is_shown = not target.startswith(("#", "javascript:", "data:")) and not self._skipping
            if target and is_shown and self._left_chars > 0:
                self._add(f" ({urljoin(self._address, target)})")
        else:
            self._in_code = self._in_code and tag != "pre"
            self._add(_ENDS.get(tag, ""))

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title = (self.title + data)[:TITLE_CHARS]
        elif not self._skipping:
            text = data if self._in_code else re.sub(r"\s+", " ", data)
            at_start = not self.parts or self.parts[-1].endswith(("\n", " "))
            self._add(text.lstrip() if at_start and not self._in_code else text)


WEB_FETCH: Tool = make_tool("WebFetch", WebFetchInput, web_fetch, kind="fetch", is_read_only=True)
