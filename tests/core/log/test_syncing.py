"""Syncing logs in the background: soon, combined, and never on a closed file."""

import multiprocessing
import os
import threading
import time

import pytest

from longhold.core.log import Header, Log
from longhold.core.log.entries import Said
from longhold.core.log.syncing import REST_SECONDS, FileSync
from longhold.core.messages import Text

BURST = 200


class CountedSync(FileSync):
    """Counts, and says when it has run."""

    def __init__(self, descriptor):
        super().__init__(descriptor)
        self.runs = 0
        self.ran = threading.Event()

    def run(self):
        super().run()
        self.runs += 1
        self.ran.set()


@pytest.fixture
def file(tmp_path):
    descriptor = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    counted = CountedSync(descriptor)
    yield counted
    counted.finish()
    os.close(descriptor)


def test_a_burst_is_forced_together_and_to_its_end(file):
    began = time.monotonic()
    for _ in range(BURST):
        file.mark_written()
        file.sync_soon()
    while file.is_due:
        assert file.ran.wait(10)
        file.ran.clear()
    assert file.runs <= 2 + (time.monotonic() - began) / REST_SECONDS


def test_a_failure_is_told_once_and_leaves_it_due(file):
    reading, writing = os.pipe()  # what cannot be forced
    broken = CountedSync(writing)
    broken.sync_soon()
    assert broken.ran.wait(10)
    assert broken.is_due
    with pytest.raises(OSError, match="Invalid argument"):
        broken.sync_soon()
    broken.finish()
    os.close(reading)
    os.close(writing)


def test_nothing_touches_a_file_that_is_finished(file):
    file.finish()
    file.mark_written()
    file.sync_soon()
    assert file.ran.wait(10)
    assert file.is_due


def write_in_child(path):
    with Log.create(path, Header(session="child")) as log:
        log.append(Said(content=(Text(text="From the fork."),)))
        log.sync_soon()
        until = time.monotonic() + 10
        while log._sync.is_due:
            assert time.monotonic() < until
            time.sleep(0.01)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_forces_its_own_logs(tmp_path):
    with Log.create(tmp_path / "parent.jsonl", Header(session="parent")) as log:
        log.append(Said(content=(Text(text="Before the fork."),)))
        log.sync_soon()
        child = multiprocessing.get_context("fork").Process(
            target=write_in_child, args=(tmp_path / "child.jsonl",)
        )
        child.start()
        child.join(30)
        assert child.exitcode == 0
