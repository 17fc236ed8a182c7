"""`holdfast demo`: the main job, offline, under a minute.

A small repository with bugs, the simulator on loopback, the official SDK, a small window, and the
digest brain working through tasks with real tools until results are cleared and history is
compacted: once on request, by a model; then from the notes, without a call. Every figure of the
report is computed from the log of that run. Then two sessions on the same repository show memory:
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
from holdfast.cli.demo_project import (
    COMPACT_AFTER,
    FOCUS,
    TASKS,
    TEST_WORDS,
    demo_settings,
    write_project,
)
from holdfast.cli.output import bar, report, say, tokens
from holdfast.cli.rendering import show
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
DIFF_LINES = 4
"""Shown of a diff; `holdfast memory diff` shows all of it."""
NOT_KEPT = "nothing was kept; `holdfast demo --keep DIRECTORY` keeps the session to look into"
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
        found = asyncio.run(_work(model, project, quiet=as_json))
        found |= {"tests_before": before, "tests_after": _tests(project)}
        found["memory"] = asyncio.run(memory_demo(project))
    explain = f"holdfast explain {found['session']}"
    kept = f"HOLDFAST_HOME={shlex.quote(str(place / 'home'))} {explain}"
    found["look_inside"] = kept if keep else ""
    report(as_json, found, _lines(found))
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


async def _work(model: Model, project: Path, *, quiet: bool) -> JsonObject:
    """Give the agent each task, with one compaction by request; sum up what the log says."""
    began = time.perf_counter()
    ends: list[str] = []
    async with running_agent(model, demo_settings(), directory=project, mode="bypass") as agent:
        for task in TASKS:
            ends.append(await _do(agent, task, quiet=quiet))
            if task == COMPACT_AFTER:
                if not quiet:
                    say(f"\n> /compact {FOCUS}", bold=True)
                await agent.compact(FOCUS)
        return _figures(agent, ends) | {"seconds": round(time.perf_counter() - began, 1)}


async def _do(agent: Agent, task: str, *, quiet: bool) -> str:
    """Work on one task; return why the agent stopped."""
    end = ""
    if not quiet:
        say(f"\n> {task}", bold=True)
    async for event in agent.run(task):
        if isinstance(event, Stopped):
            end = event.reason
        if not quiet:
            show(event)
    return end


def _figures(agent: Agent, ends: Sequence[str]) -> JsonObject:
    history, full = agent.session.view.history, agent.session.fullness()
    spent = spent_in(history)
    return {
        "session": agent.session.id,
        "tasks": ends,
        "answers": spent.answers,
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


def _lines(found: JsonObject) -> list[str]:
    calls = ", ".join(f"{name} {count}" for name, count in found["tool_calls"].items())
    used, limit = found["used_tokens"], found["window_tokens"]
    rules = "none broken" if not found["broken_rules"] else f"BROKEN: {found['broken_rules']}"
    sizes = found["notes"]["tokens"]
    grown = f", from {sizes[0]:,} to {sizes[-1]:,} tokens" if sizes else ""
    return [
        "",
        f"tests      {found['tests_before']} before, {found['tests_after']} after",
        f"work       {len(found['tasks'])} tasks, {found['answers']} answers, tools: {calls}",
        f"window     [{bar(used / limit, 40)}] {tokens(used)} of {tokens(limit)}, {found['percent_left']} % left",
        *_layer_lines(found["layers"]),
        f"cache      {found['cache_read_share']:.1%} of all prompt tokens were read from it",
        f"price      none, as all is simulated; a real model's list price would be ${found['usd']:.4f},",
        f"           and ${found['usd_without_cache']:.4f} without the cache",
        f"log        {found['entries']} entries; API rules: {rules}",
        f"notes      updated {found['notes']['updates']} times in the background{grown}",
        *memory_lines(found["memory"]),
        f"time       {found['seconds']} s",
        f"look in    {found['look_inside'] or NOT_KEPT}",
    ]


def _layer_lines(layers: JsonObject) -> list[str]:
    spilled = layers["spilled_bytes"]
    lines = [f"spilled    {len(spilled)} results, {sum(spilled):,} bytes in all, moved to disk"]
    lines += [f"cleared    {why}" for why in layers["cleared"]]
    for one in layers["compacted"]:
        lines.append(f"compacted  {one['why']}")
        if one["by"] == "model":
            read = f"{one['prefix_read_share']:.1%} of the prefix"
            lines.append(f"           its call read {read} from the cache")
    kept = layers["tasks_still_verbatim"]
    lines.append(f"survived   {kept} of {len(TASKS)} tasks are still word for word in the view")
    return lines


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
