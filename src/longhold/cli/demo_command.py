"""`longhold demo` shows Longhold at work, offline, in under a minute.

An agent with the digest brain fixes bugs on the simulator with a small window. A model compacts the
history on request. Later compactions use the notes. The same work runs again with a window that
fills up and is summarised. All figures come from the logs.
"""

import asyncio
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import click

from longhold.agent.agent import Agent
from longhold.agent.terminal.spacing import StageLines
from longhold.agent.tools.git import run_git
from longhold.cli import options
from longhold.cli.agent_options import offline_model, running_agent
from longhold.cli.output import report, rewrite_line, say
from longhold.core.log.entries import (
    AnyEntry,
    Cleared,
    Compacted,
    Forked,
    Noted,
    Replied,
    Restored,
    Spilled,
)
from longhold.core.log.spending import sum_spending
from longhold.core.messages import JsonObject, text_of
from longhold.core.messages.rules import violations
from longhold.core.messages.text import (
    bar,
    clean_line,
    exact_dollars,
    human_size,
    percent,
    pluralize,
    tokens,
)
from longhold.core.models.protocol import Model
from longhold.core.settings import Settings
from longhold.core.turn.loop import Stopped

T = TypeVar("T")

WINDOW_TOKENS = 32_000  # small, so that the window fills up
DAYS, DAY_LINES = 12, 40  # short files, enough of them that old results are cleared
WEEKS, WEEK_LINES = 6, 150  # long files, which fill the window although old results are cleared
TABLE_ROWS = 160  # lines printed by the tests: more than the limit for one result in this window
TEST_WORDS = (sys.executable, "-m", "unittest")

WARES = "anchor beam cleat davit fender halyard keel ladder mast oar pulley rudder sail"
CODE = {
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
        "    def test_cheapest(self):\n        self.assertEqual(cheapest([3, 1, 2]), 1)\n\n"
        "    def test_table(self):\n"
        f"        for row in range({TABLE_ROWS}):\n"
        '            print(f"article {row:04d}: list price {row * 7 % 90 + 10}.00, in stock")\n'
    ),
}
TASKS = (
    'The discount is added instead of taken off. Replace "100 + discount" with "100 - discount" in shop/cart.py.',
    "Prices are never to be rounded up. Keep that in mind, and read notes/day_1.md.",
    *(f"Now read notes/day_{day}.md." for day in range(2, DAYS + 1)),
    *(f"Now read notes/week_{week}.md." for week in range(1, WEEKS + 1)),
    'The wrong end is returned. Replace "max(prices)" with "min(prices)" in shop/cart.py, then run the tests.',
    'Create CHANGES.md with "Discounts are taken off, cheapest finds the cheapest." and run the tests again.',
)
COMPACT_AFTER = "Now read notes/week_1.md."
"""After this task the user requests a compaction by the model. Later compactions use the notes."""
FOCUS = "the rules about prices"


def _write_project(place: Path) -> Path:
    files = dict(CODE)
    for kind, count, lines in (("day", DAYS, DAY_LINES), ("week", WEEKS, WEEK_LINES)):
        for number in range(1, count + 1):
            files[f"notes/{kind}_{number}.md"] = _orders(f"{kind} {number}", lines)
    project = place / "shop"
    for path, content in files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(content, encoding="utf-8")
    run_git(project, "init", "-q")  # ignores GIT_DIR, which git sets for hooks
    return project


def _orders(title: str, count: int) -> str:
    dice = random.Random(title)
    lines = (f"- order {n:03d}: {' '.join(dice.choices(WARES.split(), k=9))}" for n in range(count))
    return "\n".join((f"# Orders of {title}", *lines, ""))


def _demo_settings(*, is_filled: bool) -> Settings:
    """Return the defaults for a small window with one layer active at a time. Notes by a model are
    off, because they would preempt compaction. With `is_filled`, no layer acts until the window is
    full and the model summarises it.
    """
    own = Settings()
    line = "" if is_filled else own.window.auto_line
    return replace(
        own,
        window=replace(own.window, limit_tokens=WINDOW_TOKENS, auto_line=line),
        spill=replace(own.spill, on=not is_filled),
        clear=replace(own.clear, on=not is_filled),
        notes=replace(own.notes, on=not is_filled, model=False, stand_in="always"),
        memory=replace(own.memory, on=False),
    )


COLUMNS = 100
LINE_CHARS = 2_000  # because `say` cuts lines only for a terminal
TASK_CHARS = 70


@dataclass(slots=True)
class DemoLines:
    """Shows the work in one overwritten line, and each layer's first action in a separate line."""

    _stages: StageLines = field(default_factory=lambda: StageLines(LINE_CHARS))
    _said: set[str] = field(default_factory=set)

    def say(self, line: str) -> None:
        if sys.stderr.isatty():
            rewrite_line(" " * COLUMNS)
            rewrite_line("")
            line = clean_line(line, COLUMNS)
        say(line, err=True, dim=True)

    def follow(self, agent: Agent, task: str) -> None:
        for line in self._stages.follow(agent.engine.view.history):
            kind = line.partition(":")[0]
            if kind not in self._said:  # because the summary at the end counts them
                self._said.add(kind)
                self.say(line)
        if sys.stderr.isatty():
            full = agent.session.fullness()
            share = full.used_tokens / full.window.limit_tokens
            line = f"[{bar(share, 20)}] {clean_line(task, TASK_CHARS)}"
            rewrite_line(line.ljust(COLUMNS))


def _last_screen(found: JsonObject) -> list[str]:
    runs = (found, found["filled"])
    layers, notes = found["layers"], found["notes"]
    spilled, made = layers["spilled_bytes"], layers["compacted"]
    rows = {
        "tokens": [tokens(one["tokens"]) for one in runs],
        "from the cache": [f"{one['cache_read_share']:.1%}" for one in runs],
        "list price": [exact_dollars(one["usd"]) for one in runs],
        "tasks word for word": [
            f"{one['layers']['tasks_still_verbatim']} of {len(TASKS)}" for one in runs
        ],
    }
    return [
        "",
        f"tests     {found['tests_before']} before, {found['tests_after']} after",
        f"spilled   {len(spilled)} results, {human_size(sum(spilled))}, to disk with a preview",
        f"cleared   {layers['cleared']} old results left the view when that was free or paid off",
        f"compacted {len(made)} times; the model's call read "
        f"{percent(made[0]['prefix_read_share'] if made else 0.0, 1)} of its prompt from the cache",
        f"notes     updated {pluralize(notes['updates'], 'time')}, and replaced "
        f"{notes['compacted']} {'summary' if notes['compacted'] == 1 else 'summaries'} without a call",
        f"API rules {found['broken_rules'] or 'none broken'}",
        "",
        f"{'':<22} {'with Longhold':>14}   without: fill, then summarise",
        *(f"{name:<22} {own:>14}   {other}" for name, (own, other) in rows.items()),
        "",
        "All of it was simulated; nothing was spent or sent.",
        "The cost of your own sessions, and how to lower it: longhold report",
    ]


@click.command(epilog="Example: longhold demo")
@options.as_json
def command(as_json: bool) -> None:
    """Watch the agent fix a small repository, offline.

    The demo needs no key and no network. It removes its files at the end.
    """
    shown = None if as_json else DemoLines()
    with TemporaryDirectory() as place, TemporaryDirectory() as other:
        found = _run_tasks(Path(place), shown, is_filled=False)
        if shown is not None:
            shown.say("the same once more, letting the window fill and summarising it")
        found["filled"] = _run_tasks(Path(other), shown, is_filled=True)
    report(as_json, found, _last_screen(found))
    sys.exit(0 if found["tests_after"] == "passed" else 1)


@contextmanager
def _home_at(place: Path) -> Iterator[None]:
    """Keep the demo out of the user's home, and the user's settings out of the demo."""
    before = {name: value for name, value in os.environ.items() if name == "LONGHOLD_HOME"}
    os.environ["LONGHOLD_HOME"] = str(place)
    try:
        yield
    finally:
        del os.environ["LONGHOLD_HOME"]
        os.environ.update(before)


def _run_tasks(place: Path, shown: DemoLines | None, *, is_filled: bool) -> JsonObject:
    model = offline_model(shlex.join(TEST_WORDS))
    with _home_at(place / "home"):
        project = _write_project(place)
        before = _test(project)
        found = asyncio.run(_work(model, project, shown, is_filled=is_filled))
        return found | {"tests_before": before, "tests_after": _test(project)}


def _test(project: Path) -> str:
    done = subprocess.run(TEST_WORDS, cwd=project, capture_output=True)
    return "passed" if done.returncode == 0 else "failed"


async def _work(
    model: Model, project: Path, shown: DemoLines | None, *, is_filled: bool
) -> JsonObject:
    ends = []
    async with running_agent(
        model,
        _demo_settings(is_filled=is_filled),
        directory=project,
        mode="bypass",
        listener=shown.say if shown else None,
    ) as agent:
        for task in TASKS:
            async for event in agent.run(task):
                if isinstance(event, Stopped):
                    ends.append(event.reason)
                if shown is not None:
                    shown.follow(agent, task)
            if task == COMPACT_AFTER and not is_filled:
                await agent.compact(FOCUS)
        return _figures(agent) | {"tasks": ends}


def _figures(agent: Agent) -> JsonObject:
    view = agent.session.view
    history, spent = view.history, sum_spending(view.history)
    compacted = _of(Compacted, history)
    from_notes = [entry for entry in compacted if "from the notes" in entry.why]
    seen = "\n".join(text_of(message.content) for message in view.messages())
    return {
        "tokens": spent.total_tokens,
        "layers": {
            "spilled_bytes": [entry.bytes for entry in _of(Spilled, history) if entry.file],
            "cleared": sum(len(entry.ids) for entry in _of(Cleared, history)),
            "compacted": [
                {
                    "by": entry.by,
                    "prefix_read_share": _prefix_read([e for e in history if e.n < entry.n]),
                }
                for entry in compacted
            ],
            "restored": len(_of(Restored, history)),
            "tasks_still_verbatim": sum(task in seen for task in TASKS),
        },
        "notes": {
            "updates": len(_of(Noted, history)),
            "compacted": len(from_notes),
            "calls": sum(entry.usage is not None for entry in from_notes),
        },
        "broken_rules": violations(view.messages()),
        "cache_read_share": round(spent.hit_share, 4),
        "usd": round(spent.usd, 5),
        "usd_without_cache": round(spent.bare_usd, 5),
    }


def _of(kind: type[T], history: Sequence[AnyEntry]) -> list[T]:
    return [entry for entry in history if isinstance(entry, kind)]


def _prefix_read(before: Sequence[AnyEntry]) -> float:
    forks = _of(Forked, before)
    if not forks:
        return 0.0
    last = [e.usage for e in _of(Replied, before) if e.usage and e.n < forks[-1].n][-1]
    left = last.cache_read_tokens + last.cache_write_tokens
    return round(min(1.0, forks[-1].usage.cache_read_tokens / left), 4) if left else 0.0
