"""`holdfast demo`: the main job, offline, under a minute.

A small real repository with bugs, the simulator on loopback, the official SDK, a small window,
and the digest brain working through tasks with real tools. Every figure of the report at the end
is computed from that run.
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
from dataclasses import replace
from pathlib import Path

import click

from holdfast.agent import Agent
from holdfast.cli.show import bar, json_out, tokens
from holdfast.cli.working import OFFLINE_MODEL, opened_model, show, working_agent
from holdfast.entries import AnyEntry, Began, Compacted, Replied
from holdfast.loop import Stopped
from holdfast.messages import JsonObject
from holdfast.models import Model
from holdfast.prices import cost
from holdfast.rules import violations
from holdfast.settings import Settings
from holdfast.spending import Spent, spent_in

WINDOW_TOKENS = 32_000
"""Small, so that the window is seen to fill."""

FILES = {
    "shop/__init__.py": "",
    "shop/cart.py": (
        "def total(prices, discount=0):\n"
        '    """Sum prices and take off a discount in percent."""\n'
        "    return sum(prices) * (100 + discount) / 100\n\n\n"
        "def cheapest(prices):\n    return max(prices)\n"
    ),
    "test_cart.py": (
        "import unittest\n\nfrom shop.cart import cheapest, total\n\n\n"
        "class CartTest(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([10, 20], discount=10), 27)\n\n"
        "    def test_cheapest(self):\n        self.assertEqual(cheapest([3, 1, 2]), 1)\n"
    ),
}
TEST_WORDS = (sys.executable, "-m", "unittest")
TASKS = (
    'The discount is added instead of taken off. Replace "100 + discount" with "100 - discount" in shop/cart.py.',
    'The wrong end is returned. Replace "max(prices)" with "min(prices)" in shop/cart.py, then run the tests.',
    'Create CHANGES.md with "Discounts are taken off, cheapest finds the cheapest." and run the tests again.',
)


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
        for path, content in FILES.items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(content, encoding="utf-8")
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        yield project


def _tests(project: Path) -> str:
    done = subprocess.run(TEST_WORDS, cwd=project, capture_output=True)
    return "passed" if done.returncode == 0 else "failed"


async def _work(model: Model, project: Path, *, quiet: bool) -> JsonObject:
    """Give the agent each task, and sum up what the log says about it."""
    defaults = Settings()
    settings = replace(defaults, window=replace(defaults.window, limit_tokens=WINDOW_TOKENS))
    began = time.perf_counter()
    ends: list[str] = []
    async with working_agent(model, settings, directory=project, mode="bypass") as agent:
        for task in TASKS:
            if not quiet:
                click.secho(f"\n> {task}", bold=True)
            async for event in agent.run(task):
                if isinstance(event, Stopped):
                    ends.append(event.reason)
                if not quiet:
                    show(event)
        return _report(agent, ends) | {"seconds": round(time.perf_counter() - began, 1)}


def _report(agent: Agent, ends: Sequence[str]) -> JsonObject:
    history, full = agent.session.view.history, agent.session.fullness()
    spent = spent_in(history)
    return {
        "tasks": ends,
        "answers": spent.answers,
        "tool_calls": dict(Counter(entry.tool for entry in history if isinstance(entry, Began))),
        "entries": len(history),
        "compactions": sum(isinstance(entry, Compacted) for entry in history),
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
        f"cache      {report['cache_read_share']:.1%} of all prompt tokens were read from it",
        f"price      ${report['usd']:.4f}; without the cache ${report['usd_without_cache']:.4f}",
        f"log        {report['entries']} entries; API rules: {rules}",
        f"time       {report['seconds']} s",
    ]
