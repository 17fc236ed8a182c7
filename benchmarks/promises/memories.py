"""Whether memory can forget, keeps the good part of a dream, and recalls what left the view."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from longhold.agent.build import build_agent
from longhold.core.log.entries import AnyEntry, Compacted, Dreamt, Recalled
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory
from longhold.core.memory.paths import memory_directory
from longhold.core.memory.store import MemoryStore
from longhold.core.models import open_model
from longhold.core.settings import BudgetSettings, DreamSettings, Settings, home
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import Brain, text, tool_use
from longhold.simulator.brains.digest import DigestBrain

COMPACT = "/compact"
UNBOUNDED = Settings(
    budget=BudgetSettings(own_share=0.0), memory=replace(Settings().memory, share=0.0)
)
"""Sessions this short would not pay for jobs beside them."""
FACT = "Remember that releases go out on Tuesday nights."
QUESTION = "When do releases go out on Tuesday?"
FACTS = {"over.md": "the release of May", "board.md": "tickets are in Linear", "a.md": "Ann"}
EDITED = "Everyone has an account."
DREAM: tuple[dict[str, object], ...] = (
    {"command": "delete", "path": "/memories/over.md", "why": "that release is out"},
    {"command": "insert", "path": "/memories/board.md", "insert_line": 0, "insert_text": EDITED},
    {"command": "delete", "path": "/memories/a.md", "why": "she left"},
)
"""A delete with a reason, a good edit, and a delete that is one too many."""


class Dreamer:
    """Talks; asked to dream it prunes, improves, and also tries what is not allowed."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        last = request.messages[-1]["content"]
        if any("You now put the memory" in str(block.get("text")) for block in last):
            return BrainAnswer(blocks=tuple(tool_use("memory", dict(one)) for one in DREAM))
        return BrainAnswer(blocks=(text("All in order."),))


def remember(project: Path) -> Path:
    """Give a project some memories; return where they lie."""
    root = memory_directory(home(), project)
    memories = [
        Memory(file=file, name=file, description=said, evidence=(f"s#{file}",))
        for file, said in FACTS.items()
    ]
    changes = [MemoryChange(file=one.file, text=one.text, expected="") for one in memories]
    with MemoryStore(root) as store:
        store.commit(changes, by="extraction", why="learnt")
    return root


async def talk(
    brain: Brain, project: Path, prompts: Sequence[str], settings: Settings
) -> list[AnyEntry]:
    """Have a chat, letting what runs beside it finish after each turn; return the log."""
    with run_simulator(brain) as simulator:
        model = open_model("claude-sonnet-5-5", base_url=simulator.url, api_key="any")
        agent = await build_agent(
            model, directory=project, source="chat", mode="bypass", settings=settings
        )
        for prompt in prompts:
            if prompt == COMPACT:
                assert await agent.compact() is not None
                continue
            async for _ in agent.run(prompt):
                pass
            await agent.background.drain(60.0)
        await agent.close()
    return list(agent.session.view.history)


async def dreams(project: Path) -> dict[str, bool]:
    """Let a dream delete with a reason, improve something, and overstep."""
    root = remember(project)
    dream = replace(DreamSettings(), sessions=0, after_hours=0.0, removed_floor=1)
    settings = replace(UNBOUNDED, dream=dream, memory=replace(UNBOUNDED.memory, extract="off"))
    history = await talk(Dreamer(), project, ["Hello."], settings)
    dreamt = [entry for entry in history if isinstance(entry, Dreamt) and entry.by == "model"]
    with MemoryStore(root) as store:
        left, stones = list(store.versions()), store.history.tombstones()
        has_edit = EDITED in store.read("board.md")
    is_told = [(stone.reason, stone.evidence) for stone in stones] == [
        (DREAM[0]["why"], ("s#over.md",))
    ]
    return {
        "dream_prunes": len(dreamt) == 1 and left == ["a.md", "board.md"] and is_told,
        "dream_keeps_good_part": len(dreamt) == 1 and has_edit,
    }


async def recall_after_compaction(project: Path) -> bool:
    """Learn in one session; in another recall once, compact, and recall again."""
    await talk(DigestBrain(), project, [FACT], UNBOUNDED)
    told = "\n".join(f"{n}: the {n % 7}th mast was checked." for n in range(400))
    (project / "notes.md").write_text(told)  # enough that a summary is shorter
    prompts = [QUESTION, "Read notes.md.", QUESTION, COMPACT, QUESTION]
    history = await talk(DigestBrain(), project, prompts, UNBOUNDED)
    kinds = [type(entry) for entry in history if isinstance(entry, Recalled | Compacted)]
    return kinds == [Recalled, Compacted, Recalled]
