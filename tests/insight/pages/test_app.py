"""The live pages: reachable only with the key, from this machine's browser."""

import http.client
import json
import threading
import time
from contextlib import contextmanager
from functools import partial
from urllib.parse import urlsplit

import pytest

from browser import chromium, needs_chromium
from generated_sessions import generate
from longhold.cli.serve_command import list_sessions, read_session
from longhold.core.log.spending import BilledFigures
from longhold.core.messages.usage import Tally
from longhold.core.settings import PageSettings, Settings
from longhold.insight.pages import app, followed
from longhold.insight.pages.app import prepare
from longhold.insight.pages.followed import FollowedSessions

START_SECONDS = 10.0
SETTINGS = Settings(page=PageSettings(text_bytes=6_000))


@contextmanager
def serving(sessions):
    """Serve from a thread on a free port until the block ends."""
    with prepare(sessions, 0) as (server, listener, address):
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not server.started and thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.005)
        try:
            yield address
        finally:
            server.handle_exit(2, None)
            server.handle_exit(2, None)  # the second call skips waiting for open pages
            thread.join(START_SECONDS)


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Look often, and read again at once."""
    monkeypatch.setattr(app, "FOLLOW_SECONDS", 0.05)
    monkeypatch.setattr(followed, "FOLLOW_SHARE", 1e9)


@pytest.fixture
def session(tmp_path):
    """A session's file with most of its lines, and the lines that are still to come."""
    lines = list(generate(7, 80, compactions=1))
    path = tmp_path / "running.jsonl"
    path.write_bytes(b"".join(lines[:50]))
    return path, b"".join(lines[50:])


@pytest.fixture
def address(session):
    path, _ = session
    sessions = FollowedSessions(
        partial(list_sessions, [path.parent]),
        partial(read_session, settings=SETTINGS),
    )
    with serving(sessions) as found:
        yield found


def ask(address, path="", *, method="GET", token=None, **headers):
    """Ask with these headers and return the status, the headers and the body."""
    parts = urlsplit(address)
    own = parts.path if token is None else f"/{token}/"
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    try:
        connection.request(method, own + path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def ids(address):
    body = ask(address)[2]
    data = body.partition('id="data">')[2].partition("</script>")[0]
    return json.loads(data)["sessions"]["id"]


def test_the_page_lists_the_sessions_and_gives_each(address):
    status, headers, body = ask(address)
    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    (id,) = ids(address)
    status, _, body = ask(address, f"api/session?session={id}")
    assert status == 200
    assert json.loads(body)["tables"]["calls"]["n"]


@pytest.mark.parametrize("path", ["", "api/events", "api/session?session=x", "api/text"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example:80"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_other_origins_and_rebound_names_are_refused(address, path, headers, status):
    assert ask(address, path, **headers)[0] == status


@pytest.mark.parametrize("token", ["", "wrong", "é", "a" * 32])
def test_without_the_key_there_is_nothing(address, token):
    from urllib.parse import quote

    assert ask(address, token=quote(token))[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(address, method):
    assert ask(address, method=method)[0] == 405


@pytest.mark.parametrize("id", ["../../etc/passwd", "/etc/passwd", "nosuch", ""])
def test_only_listed_sessions_can_be_read(address, id):
    from urllib.parse import quote

    assert ask(address, f"api/session?session={quote(id)}")[0] == 404
    assert ask(address, "api/session")[0] == 404


def test_the_whole_text_of_a_cut_message_can_be_had(address):
    (id,) = ids(address)
    table = json.loads(ask(address, f"api/session?session={id}")[2])["tables"]["messages"]
    cut = [row for row in zip(*table.values(), strict=True) if row[6] > len(row[5])]
    assert {row[2] for row in cut} >= {"answer", "result", "summary"}
    for n, _, _, _, _, text, chars, *_ in cut:
        whole = json.loads(ask(address, f"api/text?session={id}&n={n}")[2])["text"]
        assert len(whole) == chars
        assert whole.startswith(text[:50])
    word = next(w for w in whole[len(text) :].split() if w.isalpha() and w not in text)
    found = json.loads(ask(address, f"api/search?session={id}&words={word}")[2])["numbers"]
    assert n in found


def test_sessions_that_nobody_opened_have_their_figures_at_once_and_later_ones(session):
    path, rest = session
    sessions = FollowedSessions(
        partial(list_sessions, [path.parent]),
        partial(read_session, settings=SETTINGS),
    )

    def calls():
        sessions.changes()
        (row,) = sessions.rows()
        return row.calls

    early = sessions.rows()[0].calls
    with path.open("ab") as file:
        file.write(rest)
    sessions.rows()
    assert 0 < early < calls()


def test_figures_that_were_read_too_early_are_read_again(session):
    path, rest = session
    whole = path.read_bytes()
    path.write_bytes(whole.partition(b"\n")[0] + b"\n")
    billed = {}
    sessions = FollowedSessions(
        partial(list_sessions, [path.parent]),
        partial(read_session, settings=SETTINGS),
        billed=lambda: billed,
    )
    sessions.rows()
    sessions.changes()
    assert sessions.rows()[0].calls == 0
    billed[path.stem] = BilledFigures(
        tally=Tally(calls=1, usd=0.1), saved_usd=0.0, model="", agent="", decisions={}
    )
    path.write_bytes(whole + rest)
    sessions.rows()
    sessions.changes()
    assert sessions.rows()[0].calls > 1


@needs_chromium
def test_a_row_of_the_list_is_two_lines_high_and_names_its_project(address, tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        size = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        browser.ask("Emulation.setDeviceMetricsOverride", **size)
        browser.open(address)
        high, line, words, wide = browser.run(
            "(() => { app.view.list([{...app.rows[0], title: 'A title of many words '.repeat(8),"
            " model: 'claude-sonnet-4-5-20250929', directory: '/home/me/src/shop'}]);"
            " const row = document.querySelector('#sessions tbody tr');"
            " const line = parseFloat(getComputedStyle(row.cells[0]).lineHeight);"
            " const wide = document.documentElement.scrollWidth;"
            " return [row.offsetHeight, line, row.innerText, wide]; })()"
        )
        assert high < 4.5 * line
        assert "shop" in words and "sonnet-4-5" in words and "20250929" not in words
        assert wide <= 1280
        assert "titles" in browser.run("document.getElementById('search').placeholder")


@needs_chromium
def test_a_page_grows_with_its_session(address, session, tmp_path_factory):
    path, rest = session
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        browser.open(address)
        browser.run("document.querySelector('#sessions tbody tr').click()")
        browser.wait("!!document.getElementById('messages')")
        browser.run("document.querySelectorAll('#calls th button')[0].click()")
        before = browser.run("app.data.tables.calls.n.length")
        with path.open("ab") as file:
            file.write(rest)
        browser.wait(f"app.data.tables.calls.n.length > {before}")
        newest = browser.run("Math.max(...app.data.tables.calls.n)")
        row = "document.querySelector('#calls tbody tr').cells[0].textContent"
        assert browser.run(row) == f"#{newest}"
        whole = json.loads(ask(address, f"api/session?session={ids(address)[0]}")[2])
        assert browser.run("app.data.tables") == whole["tables"]
        assert browser.complaints() == []
