"""The demo of memory: one session learns, the next one recalls, a dream merges and is undone.

Two sessions on the same repository, answered by the digest brain. Then a duplicate of what was
learnt is added, a dream without a model merges the two, and an undo restores both.
"""

from dataclasses import replace
from pathlib import Path

from holdfast.cli.agent_options import offline_api, open_offline, running_agent
from holdfast.log.entries import AnyEntry, Recalled, Remembered
from holdfast.memory.commits import MemoryChange
from holdfast.memory.dream import dream
from holdfast.memory.memory import Memory
from holdfast.memory.paths import memory_directory
from holdfast.memory.store import MemoryStore
from holdfast.messages import JsonObject
from holdfast.settings import Settings, home

LEARNT = "Remember that releases go out on Tuesday nights, after the backup has finished."
DIFF_LINES = 4
"""Shown of a diff; `holdfast memory diff` shows all of it."""
ASKED = "When do releases go out, and what has to be finished before the backup?"


async def memory_demo(project: Path) -> JsonObject:
    settings = Settings()
    learning = replace(settings, memory=replace(settings.memory, extract="always"))
    first = await _session(learning, project, LEARNT)
    learnt = [name for entry in first if isinstance(entry, Remembered) for name in entry.names]
    second = await _session(settings, project, ASKED)
    shown = [name for entry in second if isinstance(entry, Recalled) for name in entry.names]
    return {"learnt": learnt, "recalled": shown} | _dreamt(project, settings)


async def _session(settings: Settings, project: Path, prompt: str) -> list[AnyEntry]:
    """Let an agent work on one prompt; return its log."""
    with offline_api() as url:
        async with running_agent(
            open_offline(url), settings, directory=project, mode="bypass", listener=None
        ) as agent:
            async for _ in agent.run(prompt):
                pass
    return agent.session.view.history


def _dreamt(project: Path, settings: Settings) -> JsonObject:
    """Add a duplicate of the first memory, dream, and undo the dream."""
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


def memory_lines(found: JsonObject) -> list[str]:
    changed = [line for line in found["diff"].splitlines() if line[:1] in "+-"]
    undone = "every byte restored" if found["undo_is_exact"] else "NOT ALL RESTORED"
    return [
        f"learnt     {', '.join(found['learnt']) or 'nothing'}, in the background of a session",
        f"recalled   {', '.join(found['recalled']) or 'nothing'}, in the next one",
        f"dreamt     {found['memories']} memories became {found['after_dream']}: {found['dream']}",
        *(f"           {line}" for line in changed[:DIFF_LINES]),
        f"undone     {undone}",
    ]
