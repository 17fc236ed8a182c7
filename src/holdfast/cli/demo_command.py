"""`holdfast demo`: the main job, offline, under a minute.

A small real repository with bugs, the simulator on loopback, the official SDK, a small window,
and the digest brain working through tasks with real tools until results have to be cleared and
history has to be compacted. Every figure of the report at the end is computed from that run.
"""

import asyncio
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from holdfast.agent.agent import Agent
from holdfast.cli.demo_memory import memory_scene, scene_lines
from holdfast.cli.demo_notes import let_notes_stand_in, notes_lines, notes_report
from holdfast.cli.demo_scene import TASKS, TEST_WORDS, lay_out, scene_settings
from holdfast.cli.rendering import OFFLINE_MODEL, opened_model, show, working_agent
from holdfast.cli.show import bar, json_out, tokens
from holdfast.log.entries import (
    AnyEntry,
    Began,
    Cleared,
    Compacted,
    Forked,
    Replied,
    Restored,
    Spilled,
)
from holdfast.log.spending import Spent, spent_in
from holdfast.messages import JsonObject, text_of
from holdfast.messages.rules import violations
from holdfast.models import Model
from holdfast.models.prices import cost
from holdfast.turn.loop import Stopped
from holdfast.view import View


@click.command(epilog="Example: holdfast demo")
@click.option("--json", "as_json", is_flag=True, help="Print only the report, as JSON.")
def command(as_json: bool) -> None:
    """Watch the agent fix a small repository, without a key and without a network."""
    with (
        _repository() as project,
        opened_model(OFFLINE_MODEL, "", offline=True, test_command=shlex.join(TEST_WORDS)) as model,
    ):
        before = _tests(project)
        report = asyncio.run(_work(model, project, quiet=as_json))
        report |= {"tests_before": before, "tests_after": _tests(project)}
        report["memory"] = asyncio.run(memory_scene(project))
    if as_json:
        json_out(report)
    else:
        click.echo("\n".join(_screen(report)))
    sys.exit(0 if report["tests_after"] == "passed" else 1)


@contextmanager
def _repository() -> Iterator[Path]:
    """Make a small repository that fails its tests."""
    with tempfile.TemporaryDirectory() as name:
        project = Path(name) / "shop"
        lay_out(project)
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        yield project


def _tests(project: Path) -> str:
    done = subprocess.run(TEST_WORDS, cwd=project, capture_output=True)
    return "passed" if done.returncode == 0 else "failed"


async def _work(model: Model, project: Path, *, quiet: bool) -> JsonObject:
    """Give the agent each task, and sum up what the log says about it."""
    began = time.perf_counter()
    ends: list[str] = []
    async with working_agent(model, scene_settings(), directory=project, mode="bypass") as agent:
        for task in TASKS:
            if not quiet:
                click.secho(f"\n> {task}", bold=True)
            async for event in agent.run(task):
                if isinstance(event, Stopped):
                    ends.append(event.reason)
                if not quiet:
                    show(event)
            let_notes_stand_in(agent)
        return _report(agent, ends) | {"seconds": round(time.perf_counter() - began, 1)}


def _report(agent: Agent, ends: Sequence[str]) -> JsonObject:
    history, full = agent.session.view.history, agent.session.fullness()
    spent = spent_in(history)
    return {
        "tasks": ends,
        "answers": spent.answers,
        "tool_calls": dict(Counter(entry.tool for entry in history if isinstance(entry, Began))),
        "entries": len(history),
        "layers": _layers(agent, history),
        "notes": notes_report(agent),
        "broken_rules": violations(agent.session.view.messages()),
        "used_tokens": full.used_tokens,
        "window_tokens": full.window.limit_tokens,
        "percent_left": full.window.percent_left(full.used_tokens),
        "cache_read_share": round(
            spent.cache_read_tokens / max(1, spent.tokens - spent.output_tokens), 4
        ),
        "usd": round(spent.usd, 5),
        "usd_without_cache": round(_uncached(history, spent), 5),
    }


def _layers(agent: Agent, history: Sequence[AnyEntry]) -> JsonObject:
    """Say what each layer did, from the entries it left."""
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
    """Sum up one compaction, and how much its call read of what the call before it had left."""
    return {
        "by": entry.by,
        "before_tokens": entry.before_tokens,
        "after_tokens": entry.after_tokens,
        "names_survived": entry.survived,
        "prefix_read_share": _prefix_read([e for e in history if e.n < entry.n]),
        "why": entry.why,
    }


def _prefix_read(before: Sequence[AnyEntry]) -> float:
    forks = [entry for entry in before if isinstance(entry, Forked)]
    if not forks:
        return 0.0
    answers = [e.usage for e in before if isinstance(e, Replied) and e.usage and e.n < forks[-1].n]
    left = answers[-1].cache_read_tokens + answers[-1].cache_write_tokens
    return round(min(1.0, forks[-1].usage.cache_read_tokens / left), 4) if left else 0.0


def _verbatim(view: View) -> int:
    """Count the tasks whose every word the model still has before it."""
    seen = "\n".join(text_of(message.content) for message in view.messages())
    return sum(task in seen for task in TASKS)


def _uncached(history: Sequence[AnyEntry], spent: Spent) -> float:
    """Price the same answers as if nothing had been cached."""
    model = next(entry.model for entry in history if isinstance(entry, Replied))
    paid = cost(
        model, uncached_tokens=spent.tokens - spent.output_tokens, output_tokens=spent.output_tokens
    )
    return paid.total if paid else 0.0


def _screen(report: JsonObject) -> list[str]:
    calls = ", ".join(f"{name} {count}" for name, count in report["tool_calls"].items())
    used, limit = report["used_tokens"], report["window_tokens"]
    rules = "none broken" if not report["broken_rules"] else f"BROKEN: {report['broken_rules']}"
    return [
        "",
        f"tests      {report['tests_before']} before, {report['tests_after']} after",
        f"work       {len(report['tasks'])} tasks, {report['answers']} answers, tools: {calls}",
        f"window     [{bar(used / limit, 40)}] {tokens(used)} of {tokens(limit)}, {report['percent_left']} % left",
        *_layer_lines(report["layers"]),
        f"cache      {report['cache_read_share']:.1%} of all prompt tokens were read from it",
        f"price      ${report['usd']:.4f}; without the cache ${report['usd_without_cache']:.4f}",
        f"log        {report['entries']} entries; API rules: {rules}",
        *notes_lines(report["notes"]),
        *scene_lines(report["memory"]),
        f"time       {report['seconds']} s",
    ]


def _layer_lines(layers: JsonObject) -> list[str]:
    spilled = layers["spilled_bytes"]
    lines = [f"spilled    {len(spilled)} results, {sum(spilled):,} bytes in all, went to disk"]
    lines += [f"cleared    {why}" for why in layers["cleared"]]
    for one in layers["compacted"]:
        lines.append(f"compacted  {one['why']}")
        if one["by"] == "model":
            read = f"{one['prefix_read_share']:.1%} of the prefix"
            lines.append(f"           its call read {read} from the cache")
    kept = layers["tasks_still_verbatim"]
    lines.append(f"survived   {kept} of {len(TASKS)} tasks stand word for word before the model")
    return lines
