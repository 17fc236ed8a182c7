"""The demo's last scene: what one session learns the next one knows, and a dream that is undone.

Two sessions on the same repository, answered by the digest brain; then a second note that says the
same is laid beside the first, a dream without a model merges them, and an undo takes it back.
What goes out is read from the logs and the store.
"""

from dataclasses import replace
from pathlib import Path

from holdfast.cli.rendering import OFFLINE_MODEL, opened_model, working_agent
from holdfast.log.entries import AnyEntry, Recalled, Remembered
from holdfast.memory.commits import MemoryChange
from holdfast.memory.dream_offline import dream
from holdfast.memory.memory import Memory
from holdfast.memory.paths import memory_directory
from holdfast.memory.store import MemoryStore
from holdfast.messages import JsonObject
from holdfast.settings import Settings, home

TOLD = "Remember that releases go out on Tuesday nights, after the backup has finished."
DIFF_LINES = 4
"""Enough to see what a diff is; `holdfast memory diff` shows all of one."""
ASKED = "When do releases go out, and what has to be finished before the backup?"


async def memory_scene(project: Path) -> JsonObject:
    """Play the scene and say what happened."""
    settings = Settings()
    learning = replace(settings, memory=replace(settings.memory, extract="always"))
    first = await _session(learning, project, TOLD)
    learnt = [name for entry in first if isinstance(entry, Remembered) for name in entry.names]
    second = await _session(settings, project, ASKED)
    shown = [name for entry in second if isinstance(entry, Recalled) for name in entry.names]
    return {"learnt": learnt, "recalled": shown} | _dreamt(project, settings)


async def _session(settings: Settings, project: Path, prompt: str) -> list[AnyEntry]:
    """Let an agent work on one prompt, and give its log."""
    with opened_model(OFFLINE_MODEL, "", offline=True) as model:
        async with working_agent(model, settings, directory=project, mode="bypass") as agent:
            agent.notices.listen(None)
            async for _ in agent.run(prompt):
                pass
    return agent.session.view.history


def _dreamt(project: Path, settings: Settings) -> JsonObject:
    """Lay a second note beside the first, dream, and take the dream back."""
    place = memory_directory(home(), project)
    with MemoryStore(place, settings.memory) as store:
        first = store.memories()[0]
        again = Memory(file="releases-again.md", name="Releases", description=first.description)
        again = replace(again, type=first.type, body=first.body, modified=first.modified)
        change = MemoryChange(file=again.file, text=again.text, expected="")
        store.commit([change], by="person", why="noted twice")
        before = {file: store.read(file) for file in store.versions()}
        report = dream(store, settings.dream, repository=project)
        dreamt = list(store.versions())
        store.undo()
        after = {file: store.read(file) for file in store.versions()}
    return {
        "memories": len(before),
        "after_dream": len(dreamt),
        "dream": report.line,
        "diff": report.diff,
        "undo_is_exact": after == before,
    }


def scene_lines(scene: JsonObject) -> list[str]:
    """Tell the scene on a screen."""
    changed = [line for line in scene["diff"].splitlines() if line[:1] in "+-"]
    undone = "every byte was back" if scene["undo_is_exact"] else "NOT ALL WAS BACK"
    return [
        f"learnt     {', '.join(scene['learnt']) or 'nothing'}, beside a session",
        f"recalled   {', '.join(scene['recalled']) or 'nothing'}, in the next one",
        f"dreamt     {scene['memories']} memories became {scene['after_dream']}: {scene['dream']}",
        *(f"           {line}" for line in changed[:DIFF_LINES]),
        f"undone     {undone}",
    ]
