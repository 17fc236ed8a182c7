"""A real run for docs/architecture.md: an agent, the official SDK, HTTP, the simulator.

A small project and four turns in a window of 15,000 tokens; then a compaction is undone, and the
session is resumed as if the process had died while a tool ran. The output is the log entries and
the requests as they were sent.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from golden.drawing import Drawing, draw_request, scrub
from longhold import Session
from longhold.agent.build import build_agent
from longhold.agent.tools.standard import STANDARD
from longhold.core.log.entries import (
    AnyEntry,
    Began,
    CacheBroke,
    Cleared,
    Compacted,
    Noted,
    Replied,
    Restored,
    Said,
    Spilled,
)
from longhold.core.log.store import FileStore
from longhold.core.messages import text_of
from longhold.core.models.registry import open_model
from longhold.core.settings import Settings
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use

MODEL = "claude-sonnet-4-6"
SYSTEM = "You work in a small repository. Look before you answer, and answer briefly."
TOOLS = tuple(tool for tool in STANDARD if tool.name in ("Bash", "Edit", "Read", "Write"))


def _queue(who: str, lines: int) -> str:
    told = (f"12:00:{n % 60:02d} {who} {n} took order {n * 7} from the queue" for n in range(lines))
    return "\n".join(told)


FIRST = "The login test fails. Find out why."
SECOND = "Read the other modules, too: is the same mistake in them?"
THIRD = f"Fix it in auth.py, and nowhere else. The log of the worker:\n{_queue('worker', 150)}"
FOURTH = f"Is this the same cause? The log of the mailer:\n{_queue('mailer', 230)}"

MODULES = ("cart", "stock", "mail", "report")
LOOKED_AT = " ".join(
    f"The {part} functions of {name}.py ask the order with a default, so a key that is missing does no harm."
    for name in MODULES
    for part in ("first", "next", "later", "last")
)
STATE = "_What is being worked on right now, what is pending, and what comes next._"
"""The line under a heading of the notes, where the model puts what it has to say."""
NOTES = "auth.py indexes the session; every other module uses .get()."
"""And what it has to say there."""

ANSWERS = {
    FIRST: (
        (text("I will look at the log."), tool_use("Bash", {"command": "cat test.log; exit 1"})),
        (tool_use("Read", {"file_path": "auth.py"}),),
        (text("auth.py indexes the session: a KeyError when it has no user."),),
    ),
    SECOND: (
        *((tool_use("Read", {"file_path": f"{name}.py"}),) for name in MODULES),
        (text(f"No. They all use .get(). {LOOKED_AT}"),),
    ),
    THIRD: (
        (
            tool_use(
                "Edit",
                {
                    "file_path": "auth.py",
                    "old_string": "session['user']",
                    "new_string": "session.get('user')",
                },
            ),
        ),
        (text("Done: auth.py uses .get() now."),),
    ),
    FOURTH: ((text("Yes, the same cause."),),),
}


class Brain:
    """Gives prepared answers, by what the user said last and how often that was answered."""

    def __init__(self) -> None:
        self.requests: list[BrainRequest] = []
        """Of the conversation itself."""
        self.beside: list[BrainRequest] = []
        """Of forks, for the notes."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        asked = "\n".join(_said(message) for message in request.messages[-3:])
        if found := re.search(r"The notes lie in (\S+)\. ", asked):
            self.beside.append(request)
            return self._note(found[1])
        self.requests.append(request)
        script, done = _place(request)
        return BrainAnswer(blocks=script[min(done, len(script) - 1)])

    def _note(self, file: str) -> BrainAnswer:
        """Write into the notes with the Edit tool, then stop."""
        if len(self.beside) % 2 == 0:
            return BrainAnswer(blocks=(text("The notes are up to date."),))
        edit = {"file_path": file, "old_string": STATE, "new_string": f"{STATE}\n\n{NOTES}"}
        return BrainAnswer(blocks=(tool_use("Edit", edit),))


def _said(message: dict[str, object]) -> str:
    return "\n".join(block.get("text", "") for block in message["content"])


def _place(request: BrainRequest) -> tuple[Sequence[tuple], int]:
    """Find the answers to the user's last words, and how many of them were given."""
    done = 0
    for message in reversed(request.messages):
        done += message["role"] == "assistant"
        for words, script in ANSWERS.items():
            if message["role"] == "user" and words in _said(message):
                return script, done
    return ((text("Done."),),), 0


def lay_out(project: Path) -> None:
    """Write a small repository, and the log of its tests, which is long and ends badly."""
    project.mkdir(parents=True)
    (project / "auth.py").write_text("def login(session):\n    return session['user']\n")
    passed = "".join(f"test_{n:03d} of the shop passed in {n % 7} ms\n" for n in range(160))
    (project / "test.log").write_text(f"{passed}E   KeyError: 'user'\n{passed}1 failed\n")
    for name in MODULES:
        body = (f"def {name}_{n}(order):\n    return order.get('{name}', {n})\n" for n in range(60))
        (project / f"{name}.py").write_text("\n".join(body))


def scene_settings() -> Settings:
    """Give the settings of the run: a small window, few results kept, notes between turns only."""
    plain = Settings()
    return replace(
        plain,
        window=replace(plain.window, limit_tokens=15_000, auto_line="10020"),
        clear=replace(plain.clear, keep_results=2, line_room=0.0),
        notes=replace(plain.notes, first_tokens=112_000, model_when="always"),
        budget=replace(plain.budget, own_share=0.0),
        cost=replace(plain.cost, need_weight=0.0),
        compact=replace(plain.compact, restore_files=1),
        memory=replace(plain.memory, on=False),
        agents=replace(plain.agents, on=False),
    )


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the run left behind."""

    entries: Sequence[AnyEntry]
    requests: Sequence[BrainRequest]
    beside: Sequence[BrainRequest]
    """What the forks sent."""
    undone: str
    """What undoing the compaction said."""
    resumed: Sequence[AnyEntry]
    """The log of the session that died while a tool ran, after it was resumed."""


async def play(project: Path) -> Run:
    """Play it, waiting for the notes where they are due, so that the log's order is always the same."""
    lay_out(project)
    brain = Brain()
    with run_simulator(brain) as simulator:
        agent = await build_agent(
            open_model(MODEL, base_url=simulator.url, api_key="any"),
            directory=project,
            mode="bypass",
            tools=TOOLS,
            settings=scene_settings(),
            system=SYSTEM,
        )
        id = agent.session.id
        for words in ANSWERS:
            async for _ in agent.run(words):
                pass
            if words == SECOND:
                await _noted(id)
        await agent.close()
    with Session.resume(id, settings=scene_settings()) as session:
        undone = session.undo()
        entries = list(session.view.history)
    began = [entry.n for entry in entries if isinstance(entry, Began)]
    with FileStore().branch(id, upto=began[-1]) as branch:
        cut = branch.header.session
    with Session.resume(cut, settings=scene_settings()) as session:
        resumed = list(session.view.history)
    return Run(
        entries=entries,
        requests=brain.requests,
        beside=brain.beside,
        undone=undone,
        resumed=resumed,
    )


async def _noted(session: str) -> None:
    """Wait for the notes, which are written in the background."""
    async with asyncio.timeout(30):
        while not any(isinstance(one, Noted) for one in FileStore().load(session).entries):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def parts(run: Run) -> dict[str, str]:
    """Draw everything that the page shows, by the name it goes by there."""
    drawing = Drawing(run.entries)
    entries = drawing.entries
    shown = {name: drawing.step(*span) for name, span in _steps(entries).items()}
    again = Drawing(run.resumed)
    requests = {
        "first request": run.requests[0],
        "second request": run.requests[1],
        "request of the fork": run.beside[0],
    }
    (spilled,) = (entry for entry in entries if isinstance(entry, Spilled))
    (compacted,) = (entry for entry in entries if isinstance(entry, Compacted))
    return {
        **shown,
        **{name: draw_request(request) for name, request in requests.items()},
        "resumed": again.step(len(again.entries), len(again.entries)),
        "preview": scrub(spilled.text),
        "summary": scrub(text_of(compacted.summary)),
        "undo": scrub(run.undone),
    }


def _steps(entries: Sequence[AnyEntry]) -> dict[str, tuple[int, int]]:
    """Cut the log into steps: for each its first and last entry, counted from one."""
    said = [at for at, entry in enumerate(entries, 1) if isinstance(entry, Said)]

    def last(after: int, *kinds: type) -> int:
        """Find the last of the first run of such entries from a place on."""
        at = next(n for n, one in enumerate(entries[after:], after + 1) if isinstance(one, kinds))
        while at < len(entries) and isinstance(entries[at], kinds):
            at += 1
        return at

    began = last(said[0], Began)
    spilled = last(began, Spilled)
    answered = max(n for n, one in enumerate(entries[: said[2] - 1], 1) if isinstance(one, Replied))
    cleared, compacted = last(said[2], Cleared), last(said[3], Compacted, Restored)
    broke = last(compacted, CacheBroke)
    ends = {
        "framed": said[0] - 1,
        "said": said[0],
        "asked": began - 2,
        "answered": began,
        "ran": spilled,
        "recorded": last(spilled, Replied),
        "first turn": said[1] - 1,
        "second turn": answered,
        "noted": said[2] - 1,
        "cleared": cleared,
        "third turn": said[3] - 1,
        "compacted": compacted,
        "fourth turn": broke,
        "undone": len(entries),
    }
    starts = [1, *(end + 1 for end in ends.values())]
    return {name: (start, end) for start, (name, end) in zip(starts, ends.items(), strict=False)}
