"""`longhold inspect` and `longhold serve`: where pages go, what they omit, how they end."""

import json
import re
import signal
import stat
import subprocess
import sys
import urllib.request
from functools import partial

import pytest

from command_line import longhold
from generated_sessions import write
from longhold.cli.serve_command import list_sessions, read_session
from longhold.core.settings import load_settings
from longhold.insight.pages.followed import FollowedSessions


@pytest.fixture
def transcript(tmp_path):
    path = tmp_path / "session.jsonl"
    write(path, 3, 40)
    return path


def test_a_page_is_a_private_file(transcript, tmp_path):
    page = tmp_path / "page.html"
    for _ in range(2):
        done = longhold("inspect", transcript, "--html", page)
        assert done.returncode == 0, done.stderr
        assert f"{page}: " in done.stdout
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_page_never_replaces_a_session_or_anything_else(transcript, tmp_path):
    before = transcript.read_bytes()
    done = longhold("inspect", transcript, "--html", transcript)
    assert done.returncode != 0
    assert "is not a page" in done.stderr
    assert transcript.read_bytes() == before


def test_without_a_file_there_is_nothing_to_do(transcript):
    done = longhold("inspect", transcript)
    assert done.returncode == 2
    assert "--html FILE" in done.stderr


def test_the_data_of_a_page_can_be_had_as_json(transcript):
    (data,) = json.loads(longhold("inspect", transcript, "--json").stdout)["sessions"]
    assert data["totals"]["calls"] == len(data["tables"]["calls"]["n"])


def test_serve_prints_an_address_that_works_until_it_is_stopped(transcript):
    words = [sys.executable, "-m", "longhold", "serve", str(transcript), "--port", "0", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            printed = "".join(iter(process.stdout.readline, "}\n")) + "}"
            address = json.loads(printed)["address"]
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", address)
            with urllib.request.urlopen(address, timeout=20) as answer:
                assert b"<!doctype html>" in answer.read(200)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


def test_the_list_has_the_figures_of_the_report(transcript):
    total = json.loads(longhold("report", transcript, "--json").stdout)["total"]
    (one,) = list_sessions([transcript])
    known = one.row
    assert known.calls == total["calls"]
    assert known.usd == pytest.approx(total["recorded_usd"] + total["unrecorded_usd"])
    assert 0 < known.hit_share < 1


def test_every_view_of_a_session_has_the_same_figures(tmp_path):
    path = tmp_path / "session.jsonl"
    write(path, 3, 300, compactions=2)
    total = json.loads(longhold("report", path, "--json").stdout)["total"]
    cost = json.loads(longhold("cost", path, "--json").stdout)
    (page,) = json.loads(longhold("inspect", path, "--json").stdout)["sessions"]
    followed = FollowedSessions(
        lambda: list_sessions([path]),
        partial(read_session, settings=load_settings()),
    )
    (listed,) = followed.rows()
    followed.data(listed.id)
    (opened,) = followed.rows()
    assert (opened.name, opened.directory) == (listed.name, listed.directory)
    for name in ("calls", "usd", "lost_usd", "hit_share", "compactions"):
        assert getattr(opened, name) == pytest.approx(getattr(listed, name), abs=1e-4)
    assert listed.compactions == len(page["tables"]["compactions"]["n"]) == 2
    assert listed.calls == total["calls"] == page["totals"]["calls"]
    usd = total["recorded_usd"] + total["unrecorded_usd"]
    for same in (
        listed.usd,
        page["totals"]["usd"] + page["estimated_usd"],
        cost["usd"] + cost["unrecorded_usd"],
    ):
        assert same == pytest.approx(usd, abs=1e-6)
    assert total["avoidable_usd"] > 0
    for same in (listed.lost_usd, page["avoidable_usd"]):
        assert same == pytest.approx(total["avoidable_usd"], abs=1e-6)


def test_a_report_is_a_page_too(transcript, tmp_path):
    page = tmp_path / "report.html"
    done = longhold("report", transcript, "--html", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])["report"]
    assert data["lines"][0] in " ".join(done.stdout.split())
    assert data["total"] == json.loads(longhold("report", transcript, "--json").stdout)["total"]
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


@pytest.mark.parametrize("command", ["serve", "gateway", "simulator"])
def test_a_port_that_is_taken_is_one_line(command):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = longhold(command, "--port", port)
    assert done.returncode == 2
    assert f"port {port}" in done.stderr and "--port 0" in done.stderr


@pytest.mark.parametrize("upstream", ["nonsense", "ftp://x"])
def test_an_upstream_that_is_no_address_is_refused_before_anything_is_served(upstream):
    done = longhold("gateway", "--port", 0, "--upstream", upstream)
    assert done.returncode == 2
    assert "https://" in done.stderr
