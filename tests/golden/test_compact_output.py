"""The exact output of `longhold compact` and related commands. `make golden` rewrites it."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from generated_sessions import write
from longhold.cli import cli
from longhold.core.log import Header
from longhold.core.log.store import FileStore
from longhold.insight.transcripts.formats import open_transcript
from regions import check_golden

HERE = Path(__file__).parent


@pytest.fixture
def transcript(tmp_path):
    path = tmp_path / "made-up.jsonl"
    write(path, 3, 60)
    return path


def told(*words, place):
    """Run a command; prices, places and the exact sizes they bring differ and are left out."""
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    text = done.output.replace(str(place.resolve()), "PLACE").replace(str(place), "PLACE")
    text = re.sub(r"(\d)\.\dK", r"\1K", text)
    return re.sub(r"\$[\d.]+", "$…", re.sub(r"\d+,\d{3}", "…", text))


def test_a_preview(transcript, tmp_path):
    text = told("compact", transcript, "--preview", place=tmp_path)
    head, _, summary = text.partition("\n\n")
    check_golden(HERE / "compact_preview.txt", f"{head}\n")
    assert "## 6. All user messages" in summary
    assert summary.rstrip().endswith("Read it there when exact words matter.")


def test_a_session_compacted_taken_back_and_brought_back(transcript, tmp_path):
    with open_transcript(transcript) as opened:
        FileStore().add(Header(session="s1", directory=str(tmp_path / "gone")), opened.entries)
    steps = (
        ("compact", "s1"),
        ("undo", "s1"),
        ("undo", "s1", "--redo"),
        ("pin", "s1"),
    )
    text = "".join(f"$ longhold {' '.join(step)}\n{told(*step, place=tmp_path)}" for step in steps)
    check_golden(HERE / "compact_undo_redo.txt", text)
