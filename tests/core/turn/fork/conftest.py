"""A conversation with a scripted model that can be forked, and the forks' requests."""

import time

import pytest

from longhold.agent.tools.standard import STANDARD
from longhold.core.log.entries import Forked
from longhold.core.models.protocol import collect
from longhold.core.models.retry import Retries
from longhold.core.models.scripted import ScriptedModel
from longhold.core.tools.context import ToolContext
from longhold.core.turn.fork.run import Forks
from longhold.core.turn.round import Toolbox
from longhold.session.session import Session

MODEL = "claude-opus-5-5"


class Talk:
    """A session, the model behind it, and its forks."""

    def __init__(self, directory, script, *, tools=STANDARD, budget=None, retries=1):
        self.model = ScriptedModel(script, name=MODEL)
        self.seconds_later = 0.0
        self.session = Session.open(
            model=MODEL,
            system="You are careful.",
            tools=[tool.definition() for tool in tools],
            directory=directory,
            clock=lambda: time.time() + self.seconds_later,
        )
        self.tool_context = ToolContext(
            root=directory, home=directory, scratch=directory / "scratch"
        )
        toolbox = Toolbox(tools={tool.name: tool for tool in tools}, tool_context=self.tool_context)
        self.forks = Forks(
            parent=self.engine,
            model=lambda: self.model,
            toolbox=lambda: toolbox,
            budget=budget,
            retries=Retries(attempts=retries, base_seconds=0.0),
        )

    @property
    def engine(self):
        return self.session._engine

    @property
    def view(self):
        return self.session.view

    @property
    def forked(self):
        """The calls of forks that the log knows of."""
        return [entry for entry in self.view.history if isinstance(entry, Forked)]

    @property
    def sent(self):
        """The last request, as the model got it."""
        return self.model.requests[-1].kwargs

    async def turn(self, words="Fix the login bug"):
        """Say something and have it answered."""
        self.session.user(words)
        reply = await collect(self.model.stream(await self.session.prepare()))
        self.engine.record_reply(reply)
        return reply


@pytest.fixture
def talk(tmp_path):
    """Make conversations, and close them."""
    made = []

    def make(script, **options):
        made.append(Talk(tmp_path, script, **options))
        return made[-1]

    yield make
    for one in made:
        one.session.close()
