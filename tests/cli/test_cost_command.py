"""`holdfast cost`, run as a user runs it."""

import json

import pytest
from click.testing import CliRunner

from holdfast.cli.cost_command import command
from holdfast.entries import Forked, Replied
from holdfast.log import Header, write_log
from holdfast.messages import Usage
from holdfast.settings import BudgetSettings
from holdfast.spending import Purse
from holdfast.transcripts.generate import write


@pytest.fixture
def transcript(tmp_path):
    """A made-up session, as a file."""
    path = tmp_path / "session.jsonl"
    write(path, 3, 80)
    return path


def cost(*words):
    """Run the command to its end."""
    done = CliRunner().invoke(command, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_bill_names_every_kind(transcript):
    """Models, kinds of tokens, turns and the price without a cache."""
    shown = cost(transcript)
    for word in ("read from the cache", "output", "dearest turns", "without a cache $"):
        assert word in shown


def test_an_idle_session_gets_advice(transcript):
    """The file's last answer is long ago, so its cache is cold."""
    shown = cost(transcript)
    assert "the cache is cold" in shown
    assert shown.count("for the next call") == 3


def test_json_adds_up(transcript):
    """The models and the turns each sum up to the whole."""
    found = json.loads(cost(transcript, "--json"))
    for part in (
        found["bill"]["models"],
        [turn["item"] for turn in found["bill"]["turns"]],
    ):
        assert sum(sum(item["cost"].values()) for item in part) == pytest.approx(found["usd"])
    assert found["resume"]["is_cold"]
    assert found["cheapest"] in ("send_all", "clear_first", "compact_first")


def test_the_days_of_the_ledger_are_shown(transcript):
    """What other sessions spent today is there too."""
    Purse(limits=BudgetSettings()).pay("claude-opus-5-5", Usage(input_tokens=1_000_000))
    assert "all sessions, by day" in cost(transcript)
    assert "$  4.0000" in cost(transcript)


def test_who_asked_is_told_when_there_were_forks(tmp_path, transcript):
    """And not where there is only the conversation."""
    usage = Usage(input_tokens=40, cache_read_tokens=50_000)
    model = "claude-opus-5"
    entries = [
        Replied(n=1, at=1.0, response_id="r", content=(), model=model, usage=usage),
        Forked(n=2, at=2.0, source="compact", model=model, usage=usage),
    ]
    path = tmp_path / "log.jsonl"
    write_log(path, Header(session="one"), entries)
    shown = cost(path)
    assert "who asked" in shown
    assert "  compact                       1 calls  $" in shown
    assert "who asked" not in cost(transcript)
