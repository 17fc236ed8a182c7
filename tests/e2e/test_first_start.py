"""The first start without a key, in a real pseudo-terminal, and plain `longhold`."""

import json
import os
import stat
from pathlib import Path

import pytest

from lazy import needs
from longhold.core.settings import load_settings
from longhold.core.settings.reading import saved_key
from longhold.simulator import SimulatorSettings, run_simulator
from longhold.simulator.brains import ScriptedBrain
from terminal import Terminal

needs("anthropic", "openai", "prompt_toolkit", "pyte")

pytestmark = pytest.mark.slow


@pytest.fixture
def no_key(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_a_key_is_asked_for_once_and_never_shown(no_key, tmp_path):
    chat = Terminal(["chat"], tmp_path)
    try:
        chat.see(
            "There is no key for the model yet.",
            "A key for Claude",
            "Your own server",
        )
        chat.type("\r")
        chat.see("Key (it is not shown):")
        chat.paste("sk-very-secret\n")
        chat.type("\r")
        chat.see("readable by you alone.", "% left")
        assert "very-secret" not in chat.shown
        chat.type("\x04")
        assert chat.end() == 0
    finally:
        chat.close()
    file = Path(os.environ["LONGHOLD_HOME"]) / "keys.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {"ANTHROPIC_API_KEY": "sk-very-secret"}
    assert saved_key("ANTHROPIC_API_KEY") == "sk-very-secret"
    again = Terminal(["chat"], tmp_path)
    try:
        again.see("% left", gone=("There is no key",))
    finally:
        again.close()


def test_a_server_is_remembered_and_plain_longhold_in_a_project_starts_there(no_key, tmp_path):
    (tmp_path / ".git").mkdir()
    brain = ScriptedBrain("text: From your own server.", repeats=True)
    with run_simulator(brain, SimulatorSettings(accepts_unknown_models=True)) as server:
        chat = Terminal([], tmp_path)
        try:
            chat.see("There is no key for the model yet.")
            chat.type("\x1b[B\x1b[B\r")
            chat.see("Address, such as")
            chat.type(f"{server.url}/v1\r")
            chat.see("Name of the model there")
            chat.type("my-model\r")
            chat.see("% left")
            chat.type("hello\r")
            chat.see("From your own server.")
        finally:
            chat.close()
    assert load_settings().model.base_url == f"{server.url}/v1"


def test_a_look_around_offline_needs_nothing_and_is_remembered_until_there_is_a_key(
    no_key, tmp_path
):
    chat = Terminal(["chat"], tmp_path)
    try:
        chat.see("No model: try Longhold offline with a fixed plan; nothing is sent")
        chat.type("offline")
        chat.see("Who answers?  offline", gone=("A key for Claude",))
        chat.type("\r")
        chat.see("offline: a fixed plan on a simulated API", "simulated · sonnet-5-5")
        chat.type("hello\r")
        chat.see("> hello", "cache ", gone=("Esc interrupts", "cache cold"))
    finally:
        chat.close()
    assert load_settings().model.offline
    again = Terminal(["chat"], tmp_path)
    try:
        again.see("`longhold config set model.offline false`", "% left", gone=("Who answers?",))
    finally:
        again.close()


def test_who_does_not_want_to_say_gets_one_line(no_key, tmp_path):
    for options in ([], ["--plain"]):
        chat = Terminal(["chat", *options], tmp_path)
        try:
            chat.see("Who answers?")
            chat.type("\r" if options else "\x1b")
            chat.see("no key for Claude; set ANTHROPIC_API_KEY", "--offline needs none")
            assert chat.end() == 7
            assert "Traceback" not in chat.text()
        finally:
            chat.close()
