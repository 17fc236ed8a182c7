"""`longhold cost`, run as a user runs it."""

import json
import re

import msgspec
import pytest
from click.testing import CliRunner

from generated_sessions import write
from longhold.cli.cost_command import command
from longhold.core.log import Header, write_log
from longhold.core.log.entries import Forked, Replied
from longhold.core.messages import Text, Usage
from longhold.core.messages.measure import measure_text


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
    shown = cost(transcript)
    for word in ("read from the cache", "output", "without a cache $"):
        assert word in shown


def test_json_adds_up(transcript):
    found = json.loads(cost(transcript, "--json"))
    for part in (found["bill"]["models"], found["bill"]["sources"]):
        assert sum(sum(item["cost"].values()) for item in part) == pytest.approx(found["usd"])


def test_what_was_not_recorded_is_estimated_and_said(tmp_path):
    text = "a word or two " * 400
    half = msgspec.structs.replace(
        answer(1.0, input_tokens=9_000, output_tokens=3), content=(Text(text=text),)
    )
    half = msgspec.structs.replace(half, measure=measure_text(text))
    shown = cost(log_of(tmp_path, half))
    assert re.match(
        r"one: about \$0\.\d\d: \$0\.05 as recorded, about \$0\.\d\d for ~1\.\dK output tokens",
        shown,
    )
    (tmp_path / "log.jsonl").unlink()
    whole = msgspec.structs.replace(half, usage=Usage(input_tokens=9_000, output_tokens=1_500))
    assert cost(log_of(tmp_path, whole)).startswith("one: $0.08\n")


def test_who_asked_is_told_when_there_were_forks(tmp_path, transcript):
    usage = Usage(input_tokens=40, cache_read_tokens=50_000)
    model = "claude-opus-5"
    entries = [
        Replied(n=1, at=1.0, response_id="r", content=(), model=model, usage=usage),
        Forked(n=2, at=2.0, source="compact", model=model, usage=usage),
    ]
    path = tmp_path / "log.jsonl"
    write_log(path, Header(session="one"), entries)
    shown = cost(path)
    assert "by source" in shown
    assert re.search(r"  compact +1 call +\$0\.0\d\n", shown)
    assert "by source" not in cost(transcript)


def log_of(tmp_path, *entries):
    """Write a log; give its path."""
    path = tmp_path / "log.jsonl"
    numbered = [msgspec.structs.replace(entry, n=i) for i, entry in enumerate(entries, 1)]
    write_log(path, Header(session="one"), numbered)
    return path


def answer(at, **usage):
    return Replied(
        at=at,
        response_id=str(at),
        model="claude-opus-5",
        content=(Text(text="done"),),
        usage=Usage(**usage),
    )


def test_the_engines_own_calls_are_named_by_layer(tmp_path):
    call = Usage(cache_read_tokens=100_000, output_tokens=1_000)
    entries = [
        Replied(n=1, response_id="r", model="claude-opus-5", content=(), usage=call),
        *(
            Forked(n=n, source=source, model="claude-opus-5", usage=call)
            for n, source in enumerate(("notes", "agent:a1", "compact"), 2)
        ),
    ]
    path = tmp_path / "session.jsonl"
    write_log(path, Header(session="s"), entries)
    (line,) = [line for line in cost(path).splitlines() if "overhead calls" in line]
    assert "$0.15 (50.0%, 2 calls)" in line
    assert "notes" in line and "compact" in line and "agent" not in line
    found = json.loads(cost(path, "--json"))
    assert (found["own_usd"], found["own_share"]) == (pytest.approx(0.15), pytest.approx(0.5))
