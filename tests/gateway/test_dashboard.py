"""The live page of a gateway: what sessions cost, saved and hid, and undo."""

import os
import re
from pathlib import Path

import httpx2
import pytest

from browser import chromium, needs_chromium
from gateway_parts import MODEL, Agent, gateway_process, marked
from longhold.core.log import load
from longhold.core.log.entries import Spilled, Undone
from longhold.core.settings import home

pytestmark = pytest.mark.slow

BUILT = [
    {"role": "user", "content": "Build it."},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make"}}
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a line of it\n" * 12_000}
        ],
    },
]


def entries(kind):
    [log] = home().glob("projects/*/gw-*.jsonl")
    return [entry for entry in load(log).entries if isinstance(entry, kind)]


@needs_chromium
def test_the_page_shows_savings_as_they_come_and_undoes(upstream, tmp_path_factory):
    upstream.simulation.brain.files = 0
    with (
        gateway_process(upstream.url) as (url, _, pages),
        chromium(tmp_path_factory.mktemp("chromium")) as browser,
    ):
        browser.open(pages)
        assert browser.run("app.rows.length") == 0
        agent = Agent(url)
        agent.messages = list(BUILT)
        agent.call(messages=marked(agent.messages))
        [spilled] = entries(Spilled)
        browser.wait("app.rows.length === 1 && app.rows[0].saved_usd > 0")
        shown = browser.run("document.querySelector('#sessions').textContent")
        assert "saved" in shown
        assert "Anthropic" in shown, "what the client calls itself"
        assert MODEL.removeprefix("claude-") in shown
        browser.run("document.querySelector('#sessions tbody tr').click()")
        browser.wait("!!document.querySelector('#changes tbody button')")
        browser.run("document.querySelector('#changes tbody button').click()")
        browser.wait("document.querySelector('#changes').textContent.includes('was undone')")
        assert browser.complaints() == []
    [undone] = entries(Undone)
    assert undone.target == spilled.n


@needs_chromium
def test_a_decision_shows_what_it_was_to_save_beside_what_it_did(upstream, tmp_path_factory):
    upstream.simulation.brain.files = 0
    with (
        gateway_process(upstream.url) as (url, _, pages),
        chromium(tmp_path_factory.mktemp("chromium")) as browser,
    ):
        browser.open(pages)
        agent = Agent(url)
        agent.messages = list(BUILT)
        built = agent.call(messages=marked(agent.messages))
        browser.wait("app.rows.length === 1")
        browser.run("document.querySelector('#sessions tbody tr').click()")
        browser.wait("!!document.querySelector('#changes tbody button')")
        agent.messages.append({"role": "assistant", "content": built.content[0].text})
        agent.ask("Test it.")
        [period] = httpx2.get(f"{url}/longhold/stats", headers=_operator()).json()["sessions"][0][
            "decisions"
        ]
        both = [period["predicted_usd"], period["saved_usd"]]
        wanted = browser.run(f"{both}.map(money).join(', ')")
        browser.wait(f"document.querySelector('#changes').textContent.includes('{wanted}')")
        assert browser.complaints() == []
    assert period["calls"] == 2
    assert wanted.count("$") == 2


@needs_chromium
def test_on_a_phone_nothing_is_wider_than_the_screen(upstream, tmp_path_factory):
    upstream.simulation.brain.files = 0
    with (
        gateway_process(upstream.url) as (url, _, pages),
        chromium(tmp_path_factory.mktemp("chromium")) as browser,
    ):
        browser.ask(
            "Emulation.setDeviceMetricsOverride",
            width=390,
            height=844,
            deviceScaleFactor=1,
            mobile=True,
        )
        browser.open(pages)
        agent = Agent(url)
        agent.messages = list(BUILT)
        agent.call(messages=marked(agent.messages))
        browser.wait("app.rows.length === 1")
        width = "document.documentElement.scrollWidth"
        assert browser.run(width) == 390
        browser.run("document.querySelector('#sessions tbody tr').click()")
        browser.wait("!!document.querySelector('#changes tbody button')")
        assert browser.run(width) == 390
        button = "document.querySelector('#changes tbody button').getBoundingClientRect()"
        assert browser.run(f"{button}.right") <= 390


@pytest.mark.parametrize("path", ["/longhold/sessions/wrong/", "/longhold/sessions/wrong/api/undo"])
def test_without_the_key_there_is_no_page(upstream, path):

    with gateway_process(upstream.url) as (url, _, _):
        assert httpx2.get(url + path).status_code in (404, 405)
        assert httpx2.post(url + path).status_code in (404, 405)
    assert not upstream.bodies


def _operator():
    """The key that the gateway made for whoever runs it."""
    return {"x-longhold-key": (home() / "gateway.key").read_text().strip()}


GOLDEN = Path(__file__).parents[1] / "golden" / "gateway_page.txt"


def at_rest(text, session):
    """Replace what differs from run to run, and the lines that only lay things out."""
    text = re.sub(r"\b[A-Z][a-z]{2} \d+, \d{4}, \d\d:\d\d [AP]M", "WHEN", text)
    text = re.sub(r"\(\d+ m?s\)", "(TIME)", text.replace(session, "gw-SESSION-1"))
    text = re.sub(r"went to \S+/tool-results/", "went to …/tool-results/", text)
    text = re.sub(r"(?<=gw-SESSION-1\t)[^\t]+(?=\t)", "PROJECT", text)  # the directory's name
    lines = (line.strip() for line in text.replace("\t", " | ").splitlines())
    return "\n".join(line for line in lines if line) + "\n"


@needs_chromium
def test_the_page_reads_as_it_did(upstream, tmp_path_factory):
    """The list and a session, word for word; rewritten with LONGHOLD_REWRITE_GOLDEN=1.

    Without a tool that reads, no preview names a path, which would be longer or shorter elsewhere.
    """
    with (
        gateway_process(upstream.url) as (url, _, pages),
        chromium(tmp_path_factory.mktemp("chromium")) as browser,
    ):
        browser.open(pages)
        agent = Agent(url)
        agent.messages = list(BUILT)
        built = agent.call(messages=marked(agent.messages), tools=[])
        agent.messages.append({"role": "assistant", "content": built.content[0].text})
        agent.ask("Test it.", tools=[])
        agent.ask("Ship it.", tools=[])
        browser.wait("app.rows.length === 1 && app.rows[0].calls === 3")
        listed = browser.run("document.querySelector('#sessions').innerText")
        browser.run("document.querySelector('#sessions tbody tr').click()")
        browser.wait("!!document.querySelector('#changes tbody button')")
        parts = ["#changes", "#calls"]
        shown = [
            browser.run(f"document.querySelector({part!r})?.innerText ?? ''") for part in parts
        ]
    session = agent.headers[0]["x-longhold-session"]
    text = at_rest("\n\n".join([listed, *shown]), session)
    if os.environ.get("LONGHOLD_REWRITE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
