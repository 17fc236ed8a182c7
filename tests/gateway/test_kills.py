"""A gateway that is killed repeatedly while its client works."""

import os
import random
import threading
from contextlib import suppress
from itertools import pairwise

import anthropic
import msgspec
import pytest

from gateway_parts import Agent, gateway_process, listing
from longhold.core.log import load
from longhold.core.log.entries import Cleared, Compacted, Spilled
from longhold.core.request.cache.fingerprint import blocks_of
from longhold.core.settings import home

pytestmark = pytest.mark.slow

REQUESTS = int(os.environ.get("KILLED_REQUESTS", "30"))
"""Enough for some spills, compactions and kills."""


class Worker(Agent):
    """Takes one step at a time, and takes it again if it failed."""

    def step(self):
        if not self.messages or self.messages[-1]["role"] == "assistant":
            self.messages.append({"role": "user", "content": "Read on."})
        answer = self.call()
        content = [block.model_dump(exclude_unset=True) for block in answer.content]
        self.messages.append({"role": "assistant", "content": content})
        uses = [block for block in answer.content if block.type == "tool_use"]
        if uses:
            lines = 4_000 if len(self.messages) % 20 == 4 else 300
            text = listing(f"at {len(self.messages)}", lines)
            result = {"type": "tool_result", "tool_use_id": uses[0].id, "content": text}
            self.messages.append({"role": "user", "content": [result]})


def prompts(bodies):
    """Yield the blocks of each request as the cache compares them; half a request is none."""
    for body in bodies:
        with suppress(msgspec.DecodeError):
            yield [blocks_of(message) for message in msgspec.json.decode(body)["messages"]]


@pytest.mark.timeout(400)
def test_killed_at_any_moment_nothing_moves_that_no_entry_moved(upstream, monkeypatch):
    monkeypatch.setenv("LONGHOLD_WINDOW_LIMIT_TOKENS", "64000")
    upstream.simulation.brain.files = 1_000
    chance, worker, kills = random.Random(7), Worker(""), 0
    while len(upstream.bodies) < REQUESTS:
        with gateway_process(upstream.url) as (url, process, _):
            worker.move(url)
            for _ in range(chance.randrange(4, 9)):
                worker.step()
            timer = threading.Timer(chance.uniform(0.0, 0.08), process.kill)
            timer.start()
            with pytest.raises(anthropic.APIError):
                while True:
                    worker.step()
            timer.join()
            kills += 1
    [log] = home().glob("projects/*/gw-*.jsonl")
    history = load(log).entries
    declared = sum(isinstance(entry, Cleared | Compacted) for entry in history)
    pairs = pairwise(prompts(upstream.bodies))
    moved = sum(after[: len(before)] != before for before, after in pairs)
    assert all("x-longhold-passed" not in headers for headers in worker.headers)
    assert kills > 1
    assert any(isinstance(entry, Spilled) for entry in history)
    assert 0 < moved <= declared
