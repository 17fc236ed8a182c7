"""Sessions that use a simulator through the official SDK, with a clock that tests set."""

import random

import anthropic
import pytest

from longhold.core.log.entries import CacheBroke, Section
from longhold.core.models.protocol import Request
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, SimulatorClock, run_simulator
from longhold.simulator.brains import text, thinking, tool_use

WORDS = ("anchor", "beam", "cleat", "davit", "fender", "keel", "ladder", "mast", "oar", "sail")


def prose(seed, words):
    """Make some text that is always the same."""
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def tool(name, words=300):
    """Describe a tool at length."""
    return {
        "name": name,
        "description": f"{name}: {prose(name, words)}",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }


TOOLS = [tool("Read"), tool("Write"), tool("Bash")]
SECTIONS = [
    Section(name="rules", text=prose("rules", 800)),
    Section(name="environment", text=prose("environment", 800)),
]


class ChanceBrain:
    """Answers by chance, but the same to the same conversation; thinks where it may."""

    def __init__(self, *, tools=0.0, thinks=0.0):
        self._tools, self._thinks = tools, thinks

    def answer(self, request):
        """Think now and then, say something, and call some tools now and then."""
        rng = random.Random(f"{len(request.messages)} {str(request.messages[-1])[:300]}")
        blocks = [thinking(prose(rng.random(), 60))] if rng.random() < self._thinks else []
        blocks.append(text(prose(rng.random(), rng.randint(5, 200))))
        if request.tools and rng.random() < self._tools:
            calls = range(rng.randint(1, 4))
            blocks += [tool_use("Read", {"path": f"{rng.random()}"}) for _ in calls]
        return BrainAnswer(blocks=tuple(blocks))


@pytest.fixture(scope="module")
def simulator():
    """One simulator for all tests of a file; every chat has a workspace of its own in it."""
    with run_simulator(ChanceBrain(), clock=SimulatorClock(is_frozen=True)) as one:
        yield one


class Chat:
    """A session, a client, and what can be done to them behind the session's back."""

    def __init__(self, simulator, client, directory, key, *, model="claude-sonnet-5-5", **options):
        self.simulator = simulator
        self.client = client
        self._workspace = {"anthropic-workspace-id": key}
        self.session = Session.open(
            model=model,
            system=SECTIONS,
            tools=TOOLS,
            **options,
            directory=directory,
            clock=simulator.simulation.clock.now,
        )

    @property
    def view(self):
        return self.session.view

    @property
    def breaks(self):
        """Every break the log knows of."""
        return [entry for entry in self.view.history if isinstance(entry, CacheBroke)]

    @property
    def alarms(self):
        """The breaks nobody announced."""
        return [broke for broke in self.breaks if not broke.expected]

    async def ask(self, words=""):
        """Say something, send everything, take the answer in."""
        self.session.user(words or prose(len(self.view.history), 1_000))
        return await self.go_on()

    async def go_on(self):
        """Send everything as it stands."""
        response = await self.send(await self.session.prepare())
        await self.session.record(response)
        return response

    async def send(self, request: Request):
        """Send a request as a user's own loop would."""
        if request.betas:
            return await self.client.beta.messages.create(
                **request.kwargs, betas=list(request.betas), extra_headers=self._workspace
            )
        return await self.client.messages.create(**request.kwargs, extra_headers=self._workspace)

    def wait(self, minutes):
        """Let time pass for both sides."""
        self.simulator.simulation.clock.advance(60 * minutes)


@pytest.fixture
async def client(simulator):
    """The official client; making one takes longer than most tests."""
    async with anthropic.AsyncAnthropic(
        base_url=simulator.url, api_key="none", max_retries=0
    ) as one:
        yield one


@pytest.fixture
def chat(simulator, client, tmp_path, request):
    """Make chats, and close their sessions."""
    made = []

    def make(key="", **options):
        key = key or f"{request.node.name} {len(made)}"
        made.append(Chat(simulator, client, tmp_path, key, **options))
        return made[-1]

    yield make
    for one in made:
        one.session.close()
