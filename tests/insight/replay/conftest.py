"""Invented recordings for replays."""

import pytest

from generated_sessions import write
from longhold.insight.replay.recorded_session import read_recording


@pytest.fixture(scope="session")
def long_file(tmp_path_factory):
    """A session that outgrows a window of 60,000 tokens."""
    path = tmp_path_factory.mktemp("made") / "session.jsonl"
    write(path, 3, 160)
    return path


@pytest.fixture(scope="session")
def recording(long_file):
    return read_recording(long_file)
