"""`holdfast demo`: the main job, offline, under a minute.

A small repository with bugs, the simulator on loopback, the official SDK, a small window, and the
digest brain working through tasks with real tools until results are cleared and history is
compacted: once on request, by a model; then from the notes, without a call. The same work is then done
once more as people live with it, letting the window fill and summarising it. Every figure of the
report is computed from the logs of these runs. Then two sessions on the same repository show memory:
what the first learns the second recalls; a duplicate is added, a dream without a model merges the
two, and an undo restores both.
"""

import asyncio
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from holdfast.agent.agent import Agent
from holdfast.cli import options
from holdfast.cli.agent_options import offline_model, running_agent
from holdfast.cli.demo_lines import DemoLines, last_screen
from holdfast.cli.demo_project import (
    COMPACT_AFTER,
    FOCUS,
    TASKS,
    TEST_WORDS,
    demo_settings,
    filled_settings,
    write_project,
)
from holdfast.cli.output import report
from holdfast.log.entries import (
    AnyEntry,
    Began,
    Cleared,
    Compacted,
    Forked,
    Noted,
    Recalled,
    Remembered,
    Replied,
    Restored,
    Spilled,
)
from holdfast.log.spending import spent_in
from holdfast.memory.commits import MemoryChange
from holdfast.memory.dream import dream
from holdfast.memory.memory import Memory
from holdfast.memory.paths import memory_directory
from holdfast.memory.store import MemoryStore
from holdfast.messages import JsonObject, text_of
from holdfast.messages.rules import violations
from holdfast.models import Model
from holdfast.reports.cost import bill
from holdfast.settings import BudgetSettings, Settings, home
from holdfast.turn.loop import Stopped
from holdfast.view import View

LEARNT = "Remember that releases go out on Tuesday nights, after the backup has finished."
ASKED = "When do releases go out, and what has to be finished before the backup?"


@click.command(epilog="Example: holdfast demo --keep /tmp/demo")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="A new directory for the repository and its sessions, to look into afterwards.",
)
@options.as_json
def command(keep: Path | None, as_json: bool) -> None:
    """Watch the agent fix a small repository, offline.

    Needs no key and no network, and leaves nothing behind unless --keep says where.
    """
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise click.UsageError(f"--keep {keep}: give a directory that is new or empty")
    with ExitStack() as stack:
        place = keep.resolve() if keep else Path(stack.enter_context(TemporaryDirectory()))
        stack.enter_context(home_at(place / "home"))
        model = stack.enter_context(offline_model(shlex.join(TEST_WORDS)))
        project = write_project(place)
        before = _tests(project)
        shown = None if as_json else DemoLines()
        found = asyncio.run(_work(model, project, demo_settings(), shown))
        found |= {"tests_before": before, "tests_after": _tests(project)}
        found["memory"] = asyncio.run(memory_demo(project))
        found["filled"] = _filled(shown)
    kept = f"HOLDFAST_HOME={shlex.quote(str(place / 'home'))} holdfast explain {found['session']}"
    found["look_inside"] = kept if keep else ""
    report(as_json, found, last_screen(found))
    sys.exit(0 if found["tests_after"] == "passed" else 1)


@contextmanager
def home_at(place: Path) -> Iterator[None]:
    """Keep everything of the demo out of the user's home, and their settings out of the demo."""
    before = os.environ.get("HOLDFAST_HOME")
    os.environ["HOLDFAST_HOME"] = str(place)
    try:
        yield
    finally:
        if before is None:
            del os.environ["HOLDFAST_HOME"]
        else:
            os.environ["HOLDFAST_HOME"] = before


def _tests(project: Path) -> str:
    done = subprocess.run(TEST_WORDS, cwd=project, capture_output=True)
    return "passed" if done.returncode == 0 else "failed"


def _filled(shown: DemoLines | None) -> JsonObject:
    """Do the same work as people live with it: the window fills, then the model summarises it."""
    if shown is not None:
        shown.say("the same once more, letting the window fill and summarising it")
    with (
        TemporaryDirectory() as place,
        home_at(Path(place) / "home"),
        offline_model(shlex.join(TEST_WORDS)) as model,
    ):
        return asyncio.run(_work(model, write_project(Path(place)), filled_settings(), shown))


async def _work(
    model: Model, project: Path, settings: Settings, shown: DemoLines | None
) -> JsonObject:
    """Give the agent each task, with one compaction by request; sum up what the log says."""
    began = time.perf_counter()
    ends: list[str] = []
    async with running_agent(
        model, settings, directory=project, mode="bypass", listener=shown.notice if shown else None
    ) as agent:
        for task in TASKS:
            ends.append(await _do(agent, task, shown))
            if task == COMPACT_AFTER and settings.clear.on:
                await agent.compact(FOCUS)
        return _figures(agent, ends) | {"seconds": round(time.perf_counter() - began, 1)}


async def _do(agent: Agent, task: str, shown: DemoLines | None) -> str:
    """Work on one task; return why the agent stopped."""
    end = ""
    async for event in agent.run(task):
        if isinstance(event, Stopped):
            end = event.reason
        if shown is not None:
            shown.follow(agent, task)
    return end


def _figures(agent: Agent, ends: Sequence[str]) -> JsonObject:
    history, full = agent.session.view.history, agent.session.fullness()
    spent = spent_in(history)
    return {
        "session": agent.session.id,
        "tasks": ends,
        "answers": spent.answers,
        "tokens": spent.tokens,
        "tool_calls": dict(Counter(entry.tool for entry in history if isinstance(entry, Began))),
        "entries": len(history),
        "layers": _layers(agent, history),
        "notes": _notes(history),
        "broken_rules": violations(agent.session.view.messages()),
        "used_tokens": full.used_tokens,
        "window_tokens": full.window.limit_tokens,
        "percent_left": full.window.percent_left(full.used_tokens),
        "cache_read_share": round(
            spent.cache_read_tokens / max(1, spent.tokens - spent.output_tokens), 4
        ),
        "usd": round(spent.usd, 5),
        "usd_without_cache": round(bill(history).total.bare_usd, 5),
    }


def _layers(agent: Agent, history: Sequence[AnyEntry]) -> JsonObject:
    compacted = [entry for entry in history if isinstance(entry, Compacted)]
    return {
        "spilled_bytes": [
            entry.bytes for entry in history if isinstance(entry, Spilled) and entry.file
        ],
        "cleared": [entry.why for entry in history if isinstance(entry, Cleared)],
        "compacted": [_compaction(entry, history) for entry in compacted],
        "restored": sum(isinstance(entry, Restored) for entry in history),
        "tasks_still_verbatim": _verbatim(agent.session.view),
    }


def _compaction(entry: Compacted, history: Sequence[AnyEntry]) -> JsonObject:
    return {
        "by": entry.by,
        "before_tokens": entry.before_tokens,
        "after_tokens": entry.after_tokens,
        "names_survived": entry.survived,
        "prefix_read_share": _prefix_read([e for e in history if e.n < entry.n]),
        "why": entry.why,
    }


def _prefix_read(before: Sequence[AnyEntry]) -> float:
    """Return the share of the cached prefix that the summarising call read."""
    forks = [entry for entry in before if isinstance(entry, Forked)]
    if not forks:
        return 0.0
    answers = [e.usage for e in before if isinstance(e, Replied) and e.usage and e.n < forks[-1].n]
    left = answers[-1].cache_read_tokens + answers[-1].cache_write_tokens
    return round(min(1.0, forks[-1].usage.cache_read_tokens / left), 4) if left else 0.0


def _verbatim(view: View) -> int:
    """Count the tasks that the model still sees word for word."""
    seen = "\n".join(text_of(message.content) for message in view.messages())
    return sum(task in seen for task in TASKS)


def _notes(history: Sequence[AnyEntry]) -> JsonObject:
    made = [e for e in history if isinstance(e, Compacted) and "from the notes" in e.why]
    sizes = [entry.tokens for entry in history if isinstance(entry, Noted)]
    return {
        "updates": len(sizes),
        "tokens": sizes,
        "compacted": len(made),
        "calls": sum(entry.usage is not None for entry in made),
        "seconds": [entry.seconds for entry in made],
    }


async def memory_demo(project: Path) -> JsonObject:
    # two short chats: a share of what they spend would not pay for what is to be shown
    settings = replace(Settings(), budget=BudgetSettings(own_share=0.0))
    learning = replace(settings, memory=replace(settings.memory, extract="always"))
    first = await _session(learning, project, LEARNT)
    learnt = [name for entry in first if isinstance(entry, Remembered) for name in entry.names]
    second = await _session(settings, project, ASKED)
    shown = [name for entry in second if isinstance(entry, Recalled) for name in entry.names]
    return {"learnt": learnt, "recalled": shown} | _dreamt(project, settings)


async def _session(settings: Settings, project: Path, prompt: str) -> Sequence[AnyEntry]:
    with offline_model() as model:
        async with running_agent(
            model, settings, directory=project, mode="bypass", listener=None
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
        done = dream(store, settings.dream, repository=project)
        dreamt = list(store.versions())
        store.undo()
        after = {file: store.read(file) for file in store.versions()}
    return {
        "memories": len(before),
        "after_dream": len(dreamt),
        "dream": done.line,
        "diff": done.diff,
        "undo_is_exact": after == before,
    }
