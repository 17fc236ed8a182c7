"""WebFetch against a local server, and the conversion of pages to text."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.tools import web
from longhold.agent.tools.web import NotFetched, extract_text, fetch

PAGES = {
    "/page": (200, "text/html; charset=utf-8", "<title>T</title><p>Grüße</p>".encode()),
    "/latin": (200, "text/plain; charset=latin-1", "Grüße".encode("latin-1")),
    "/meta": (200, "text/html", '<meta charset="latin-1"><p>Grüße'.encode("latin-1")),
    "/json": (200, "application/json", b'{"a": 1}'),
    "/picture": (200, "image/png", b"\x89PNG"),
    "/gone": (404, "text/html", b"<p>Not here</p>"),
    "/large": (200, "text/plain", b"x" * 200_000),
    "/empty": (200, "text/html", b""),
    "/punycode": (200, "text/plain; charset=punycode", b"a-" + b"b" * 200_000),
    "/undefined": (200, "text/plain; charset=undefined", b"plain"),
    "/idna": (200, "text/plain; charset=idna", b"plain"),
}
MOVES = {
    "/near": "/page",
    "/far": "http://127.0.0.2:9/elsewhere",
    "/port": "http://127.0.0.1:9/elsewhere",
    "/circle": "/circle",
    "/file": "file:///etc/passwd",
}


class _Pages(BaseHTTPRequestHandler):
    """Serves the pages above."""

    def do_GET(self):
        """Answer."""
        if self.path in MOVES:
            status, kind, body = 302, "text/plain", b""
        else:
            status, kind, body = PAGES[self.path]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.path in MOVES:
            self.send_header("Location", MOVES[self.path])
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        """Say nothing."""


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """The address of a server that runs meanwhile."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_page_comes_as_text(host, said):
    assert await said("WebFetch", url=f"{host}/page") == "# T\n\nGrüße"
    assert await said("WebFetch", url=f"{host}/latin") == "Grüße"
    assert await said("WebFetch", url=f"{host}/meta") == "Grüße"


async def test_data_comes_as_it_is(host, said):
    assert await said("WebFetch", url=f"{host}/json") == '{"a": 1}'
    assert await said("WebFetch", url=f"{host}/empty") == "[The page has no text.]"


@pytest.mark.parametrize("path", ["/punycode", "/undefined", "/idna"])
async def test_an_encoding_that_is_none_of_texts_is_not_used(host, path, said):
    assert (await said("WebFetch", url=host + path)).startswith(("a-bbb", "plain"))


async def test_what_is_no_text_is_refused(host, refused):
    assert "is image/png, 4 bytes" in await refused("WebFetch", url=f"{host}/picture")


async def test_an_error_page_is_an_error_with_its_text(host, refused):
    assert await refused("WebFetch", url=f"{host}/gone") == (
        f"Not here\n[{host}/gone: status 404.]"
    )


async def test_a_redirect_on_the_same_host_is_followed(host, said):
    assert "Grüße" in await said("WebFetch", url=f"{host}/near")


@pytest.mark.parametrize("path", ["/far", "/port", "/file"])
async def test_a_redirect_to_another_place_is_told_not_followed(host, path, said):
    answer = await said("WebFetch", url=f"{host}{path}")
    assert f"redirects to {MOVES[path]}, on another host" in answer


async def test_a_circle_of_redirects_ends(host, refused):
    assert "more than 5 times" in await refused("WebFetch", url=f"{host}/circle")


async def test_a_long_text_is_cut_and_counted(host, said):
    answer = await said("WebFetch", url=f"{host}/large")
    assert answer.endswith("x\n[100,000 more characters are left out.]")
    assert len(answer) < 100_100


@pytest.mark.parametrize("url", ["", "ftp://host/x", "file:///etc/passwd", "host/x", "http://["])
async def test_what_is_no_web_address_is_refused(url, refused):
    assert "is no" in await refused("WebFetch", url=url)


async def test_a_server_that_is_not_there_is_told(refused):
    assert "could not be loaded" in await refused("WebFetch", url="http://127.0.0.1:9/")


async def test_a_server_that_never_answers_is_given_up(refused, monkeypatch):
    monkeypatch.setattr(web, "FETCH_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        async with asyncio.timeout(10):
            assert "could not be loaded" in await refused("WebFetch", url=url)


@pytest.mark.parametrize("path", ["/page", "/gone", "/near", "/large"])
async def test_a_body_is_cut_at_its_limit(host, path):
    found = await fetch(f"{host}{path}", limit_bytes=1_000)
    assert found.is_cut == (path == "/large") and len(found.body) <= 1_000


async def test_a_server_that_drips_keeps_no_thread(monkeypatch):
    monkeypatch.setattr(web, "FETCH_SECONDS", 0.3)

    ended = asyncio.Event()

    async def drip(_reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(200):
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()
        ended.set()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        before = time.monotonic()
        with contextlib.suppress(NotFetched):
            await fetch(url)
        await asyncio.get_running_loop().shutdown_default_executor()
        assert time.monotonic() - before < 3  # the server drips for four seconds
        await ended.wait()


async def test_what_cannot_be_reached_is_said():
    for address in ("http://127.0.0.1:9/", "http://127.0.0.1:99999/"):
        with pytest.raises(NotFetched):
            await fetch(address)


PAGE = """<!doctype html><html><head><title>The  page</title><style>p { x }</style>
<script>if (a < b) { "</p>" }</script></head><body>
<nav><a href="/home">Home</a></nav>
<h1>Heading</h1>
<p>Some   <b>bold</b> text,
 and a <a href="sub/page.html">link</a>.</p>
<ul><li>one</li><li>two &amp; three</li></ul>
<pre>def f():
    return 1
</pre>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<img src="x.png" alt="A picture"><form>Name: <input></form>
</body></html>"""


def test_what_a_reader_sees_is_kept_and_the_machinery_is_not():
    assert extract_text(PAGE, "http://host/dir/index.html") == (
        "# The page\n\nHome (http://host/home)\n\n# Heading\n\n"
        "Some bold text, and a link (http://host/dir/sub/page.html).\n\n"
        "- one\n- two & three\n\n```\ndef f():\n    return 1\n\n```\n\n"
        " | a | b\n | 1 | 2\n\n[A picture]"
    )


@given(st.text(alphabet="<>/abpre\"'= !-&;", max_size=60))
def test_no_page_breaks_the_reader(page):
    assert isinstance(extract_text(page), str)


@pytest.mark.parametrize("unit", ["<!-- --!>", "x --> <!-- --!>", "<![x >", "<!x>", "<?x>"])
def test_what_is_no_element_is_skipped_in_time(unit):
    began = time.process_time()
    assert extract_text("<p>before</p>" + unit * 60_000).startswith("before")
    assert time.process_time() - began < 5
    assert extract_text("a<!-- b --><![endif]><!DOCTYPE html>c<!---->d") == "acd"


def test_an_unclosed_script_does_not_swallow_what_follows_its_parent():
    assert extract_text("<form><select><option>x</form><p>text</p>") == "text"


async def test_slow_headers_keep_no_thread_that_the_process_waits_for(monkeypatch):
    monkeypatch.setattr(web, "FETCH_SECONDS", 0.3)
    ended, before = asyncio.Event(), set(threading.enumerate())

    async def drip(_reader, writer):
        with contextlib.suppress(ConnectionError):
            for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 80:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()
        ended.set()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        with pytest.raises(NotFetched):
            await fetch(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        begun = set(threading.enumerate()) - before
        assert [thread.name for thread in begun if not thread.daemon] == []
        await ended.wait()


def test_short_links_of_a_long_address_stay_within_the_size_of_a_page():
    address = f"http://127.0.0.1/{'a' * 7_000}"
    text = extract_text("<p>begin</p>" + "<a href=b></a>" * 20_000, address)
    assert "begin" in text and len(text) <= web.FETCH_BYTES + 10_000


async def test_an_address_may_not_be_very_long(refused):
    assert "8,000 are allowed" in await refused("WebFetch", url=f"http://127.0.0.1/{'a' * 9_000}")
