"""The user's words survive compaction while the window can hold them, over HTTP."""

import anthropic
import pytest

from longhold.core.log.entries import Compacted
from longhold.core.messages import text_of
from longhold.core.settings import NotesSettings, Settings, WindowSettings
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, run_simulator
from longhold.simulator.brains import text

SECTIONS = "".join(
    f"## {n}. {title}\nThe importer is being written.\n"
    for n, title in (
        (1, "Request and intent"),
        (2, "Technical concepts"),
        (4, "Errors and fixes"),
        (5, "Problem solving"),
        (7, "Pending tasks"),
        (8, "Current work"),
        (9, "Next step"),
    )
)
REQUIREMENTS = [
    f"R{n}: column {n * 7} of the import must be checked against table_{n} before it is written."
    for n in range(1, 301)
]
SPECIFICATION = "Please build the importer to this specification.\n" + "\n".join(REQUIREMENTS)


class Brain:
    def answer(self, request):
        if "The work pauses here" in str(request.messages[-1]):
            return BrainAnswer(blocks=(text(f"<summary>{SECTIONS}</summary>"),))
        return BrainAnswer(blocks=(text("Understood. " + "I went on with the importer. " * 600),))


@pytest.fixture(scope="module")
def simulator():
    with run_simulator(Brain()) as one:
        yield one


@pytest.fixture
async def client(simulator):
    async with anthropic.AsyncAnthropic(
        base_url=simulator.url, api_key="k", max_retries=0
    ) as client:
        yield client


async def turn(session, client, words):
    session.user(words)
    request = await session.prepare()
    await session.record(await client.messages.create(**request.kwargs))


def shown(session):
    return "\n".join(text_of(message.content) for message in session.view.messages())


@pytest.mark.parametrize("by_model", [True, False], ids=["model", "digest"])
@pytest.mark.parametrize("window", [32_000, 200_000])
async def test_a_long_specification_survives_five_compactions_and_a_resume(
    client, tmp_path, window, by_model
):
    settings = Settings(
        window=WindowSettings(limit_tokens=window),
        notes=NotesSettings(on=False),
    )
    model = "simulated/claude-sonnet-5-5"
    given = {"client": client} if by_model else {}
    with Session.open(model=model, directory=tmp_path, settings=settings, **given) as session:
        id = session.id
        await turn(session, client, SPECIFICATION)
        for number in range(3):
            await turn(session, client, f"and now part {number}")
            await turn(session, client, f"then test part {number}")
            await session.compact()
    with Session.resume(id, settings=settings, **given) as session:
        for number in range(3, 5):
            await turn(session, client, f"and now part {number}")
            await turn(session, client, f"then test part {number}")
            await session.compact()
        made = [entry for entry in session.view.history if isinstance(entry, Compacted)]
        seen = shown(session)
    assert [entry.by for entry in made] == ["model" if by_model else "digest"] * 5
    assert [each for each in REQUIREMENTS if each not in seen] == []
    assert [n for n in range(5) if f"then test part {n}" not in seen] == []
