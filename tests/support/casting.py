"""A model that answers several conversations at once, each by what it was told last."""

import asyncio

from longhold.core.log.entries import Said
from longhold.core.log.stores import default_store
from longhold.core.memory.paths import find_memories
from longhold.core.memory.store import MemoryStore
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import Settings, home
from seen import of

MODEL = "claude-opus-4-6"


class Cast:
    """Answers by the words last said to it: one script for each, one answer per round."""

    def __init__(self, scripts, name=MODEL):
        self.scripts = scripts
        self.requests = []
        self.held = {}
        self._one = ScriptedModel("text: -", name=name)
        self.name, self.capabilities = name, self._one.capabilities

    def hold(self, words):
        """Let nothing be answered to these words until the event that goes out is set."""
        return self.held.setdefault(words, asyncio.Event())

    async def stream(self, request):
        self.requests.append(request)
        words, turn = self._cue(request.kwargs["messages"])
        if words in self.held:
            await self.held[words].wait()
        answers = self.scripts[words].split("\n---\n")
        model = ScriptedModel(answers[min(turn, len(answers) - 1)], name=self.name)
        async for event in model.stream(request):
            yield event

    def _cue(self, messages):
        """Find the words that were said last, and how often that was answered since."""
        texts = [_said(message) for message in messages]
        at, _, words = max(
            (at, text.rfind(words), words)
            for at, text in enumerate(texts)
            for words in self.scripts
            if words in text
        )
        return words, sum(one["role"] == "assistant" for one in messages[at:])

    async def count(self, request):
        return None

    async def close(self):
        self.closed = True


def _said(message):
    if message["role"] != "user":
        return ""
    return "\n".join(part.get("text", "") for part in message["content"] if part["type"] == "text")


async def told(agent, prompt="start now"):
    """Let an agent work to its end; give its last words."""
    end = None
    async for event in agent.work(prompt):
        end = event
    assert violations(agent.session.view.messages()) == []
    return end


def project_memory(directory):
    """Open a project's memories in the store of the run."""
    commits, place = find_memories(default_store().shared(directory), home(), directory, Settings())
    return MemoryStore(place, commits=commits)


async def until(holds):
    """Wait until something holds; a test that waits too long is ended by its own limit."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.01)


async def idle():
    """Let everything go on that waits for nothing but its turn."""
    for _ in range(100):
        await asyncio.sleep(0)


def entries(agent, kind):
    """List the entries of a kind in an agent's log."""
    return of(agent.session, kind)


def hidden(agent):
    """List the hidden messages an agent's model was told."""
    return [text_of(entry.content) for entry in entries(agent, Said) if entry.hidden]
