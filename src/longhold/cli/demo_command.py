"""`longhold demo`: the main job, offline, under a minute.

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
import random
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from longhold.agent.agent import Agent
from longhold.agent.terminal.spacing import StageLines
from longhold.cli import options
from longhold.cli.agent_options import offline_model, running_agent
from longhold.cli.output import bar, one_line, percent, report, rewrite_line, say, size, tokens
from longhold.core.log.entries import (
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
from longhold.core.log.spending import sum_spending
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.dream import dream
from longhold.core.memory.memory import Memory
from longhold.core.memory.paths import memory_directory
from longhold.core.memory.store import MemoryStore
from longhold.core.messages import JsonObject, text_of
from longhold.core.messages.rules import violations
from longhold.core.models import Model
from longhold.core.settings import BudgetSettings, Settings, home
from longhold.core.turn.loop import Stopped
from longhold.core.view import View

WINDOW_TOKENS = 32_000
"""Small, so that the window fills."""
DAYS, DAY_LINES = 12, 40
"""Short files, enough of them that old results are cleared."""
WEEKS, WEEK_LINES = 6, 150
"""Long files, which fill the window although old results are cleared."""
TABLE_ROWS = 160
"""Printed by the tests: more than one result may hold in a window this small."""
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
"""Then the user asks for a compaction, which the model writes; later ones come from the notes."""
FOCUS = "the rules about prices"


def _files() -> Iterator[tuple[str, str]]:
    yield from CODE.items()
    for kind, count, lines in (("day", DAYS, DAY_LINES), ("week", WEEKS, WEEK_LINES)):
        for number in range(1, count + 1):
            yield f"notes/{kind}_{number}.md", _orders(f"{kind} {number}", lines)


def _orders(title: str, count: int) -> str:
    dice = random.Random(title)
    lines = (f"- order {n:03d}: {' '.join(dice.choices(WARES.split(), k=9))}" for n in range(count))
    return "\n".join((f"# Orders of {title}", *lines, ""))


def _write_project(place: Path) -> Path:
    project = place / "shop"
    for path, content in _files():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(content, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    return project


def _filled_settings() -> Settings:
    """Return what people live with: let the window fill, then have the model summarise it."""
    own = _demo_settings()
    return replace(
        own,
        window=replace(own.window, auto_line=""),
        spill=replace(own.spill, on=False),
        clear=replace(own.clear, on=False),
        notes=replace(own.notes, on=False),
    )


def _demo_settings() -> Settings:
    """Return the defaults in a small window, with one layer at work at a time.

    Notes written by a model and a prepared summary would leave nothing to see at the line.
    """
    plain = Settings()
    return replace(
        plain,
        window=replace(plain.window, limit_tokens=WINDOW_TOKENS),
        compact=replace(plain.compact, ahead=False),
        notes=replace(plain.notes, model=False, stand_in="always"),
        memory=replace(plain.memory, on=False),
    )


COLUMNS = 100
"""A line, in the usual terminal."""
TASK_CHARS = 70
DONE = ("cleared ", "compacted ")
"""How the layers begin that say themselves what they did."""


@dataclass(slots=True)
class DemoLines:
    """Shows the work in one line that is rewritten, and the first work of each layer in a line."""

    _stages: StageLines = field(default_factory=StageLines)
    _said: set[str] = field(default_factory=set)

    def say(self, line: str) -> None:
        if sys.stderr.isatty():
            rewrite_line(" " * COLUMNS)
            rewrite_line("")
        say(one_line(line, COLUMNS), err=True, dim=True)

    def notice(self, line: str) -> None:
        if line.startswith(DONE):
            self.say(line)

    def follow(self, agent: Agent, task: str) -> None:
        for line in self._stages.follow(agent.engine.view.history):
            kind = line.partition(":")[0]
            if kind not in self._said:  # the end counts them
                self._said.add(kind)
                self.say(line)
        if sys.stderr.isatty():
            full = agent.session.fullness()
            share = full.used_tokens / full.window.limit_tokens
            line = f"[{bar(share, 20)}] {one_line(task, TASK_CHARS)}"
            rewrite_line(line.ljust(COLUMNS))


def _last_screen(found: JsonObject) -> list[str]:
    filled = found["filled"]
    calls = sum(found["tool_calls"].values())
    rules = (
        "no API rule broken" if not found["broken_rules"] else f"BROKEN: {found['broken_rules']}"
    )
    rows = (
        ("", "with Longhold", "let it fill, then summarise"),
        ("tokens", tokens(found["tokens"]), tokens(filled["tokens"])),
        ("from the cache", f"{found['cache_read_share']:.1%}", f"{filled['cache_read_share']:.1%}"),
        ("list price", f"${found['usd']:.3f}", f"${filled['usd']:.3f}"),
        ("tasks word for word", _verbatim_lines(found), _verbatim_lines(filled)),
        ("summaries by a model", _format_by_model(found), _format_by_model(filled)),
    )
    return [
        "",
        f"tests     {found['tests_before']} before, {found['tests_after']} after: "
        f"{len(found['tasks'])} tasks, {found['answers']} answers, {calls} tool calls",
        *_layer_lines(found),
        *memory_lines(found["memory"]),
        f"log       {found['entries']} entries, all of it kept; {rules}",
        "",
        *(f"{name:<22} {own:>14}   {other}" for name, own, other in rows),
        "",
        f"All of it was simulated in {found['seconds'] + filled['seconds']:.0f} s; nothing was spent or sent.",
        *_where_to_look(found),
    ]


def _where_to_look(found: JsonObject) -> list[str]:
    deeper = [f"This session, turn by turn: {found['look_inside']}"] if found["look_inside"] else []
    return [*deeper, "Your own sessions, with what would have saved most: longhold report"]


def _verbatim_lines(found: JsonObject) -> str:
    return f"{found['layers']['tasks_still_verbatim']} of {len(TASKS)}"


def _format_by_model(found: JsonObject) -> str:
    made = found["layers"]["compacted"]
    return f"{sum(one['by'] == 'model' for one in made)} of {len(made)}"


def _layer_lines(found: JsonObject) -> list[str]:
    layers, used, limit = found["layers"], found["used_tokens"], found["window_tokens"]
    spilled, made = layers["spilled_bytes"], layers["compacted"]
    first = made[0] if made else {"before_tokens": 0, "after_tokens": 0, "prefix_read_share": 0.0}
    return [
        f"window    [{bar(used / limit, 30)}] {tokens(used)} of {tokens(limit)}",
        f"spilled   {len(spilled)} results, {size(sum(spilled))}, to disk with a preview",
        f"cleared   {_count_cleared(layers['cleared'])} old results left the view where that was free or paid",
        f"compacted {len(made)} times; the model's call read {percent(first['prefix_read_share'], 1)} of "
        f"its prompt from the cache: {tokens(first['before_tokens'])} → {tokens(first['after_tokens'])}",
        f"notes     updated {found['notes']['updates']} times, and stood in for "
        f"{found['notes']['compacted']} summaries without a call",
    ]


def _count_cleared(cleared: Sequence[str]) -> str:
    """Count the results in the reasons that clearing gives: `cleared 8 old results, …`."""
    counts = [int(word) for why in cleared for word in why.split()[1:2] if word.isdecimal()]
    return str(sum(counts) or len(cleared))


def memory_lines(found: JsonObject) -> list[str]:
    undone = "every byte restored" if found["undo_is_exact"] else "NOT ALL RESTORED"
    learnt, recalled = found["learnt"], found["recalled"]
    return [
        f"memory    learnt {', '.join(learnt) or 'nothing'}; the next session recalled "
        f"{'it' if recalled == learnt else ', '.join(recalled) or 'nothing'}",
        f"dream     {found['memories']} memories became {found['after_dream']} ({found['dream']}); undone: {undone}",
    ]


LEARNT = "Remember that releases go out on Tuesday nights, after the backup has finished."
ASKED = "When do releases go out, and what has to be finished before the backup?"


@click.command(epilog="Example: longhold demo --keep /tmp/demo")
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
        project = _write_project(place)
        before = _tests(project)
        shown = None if as_json else DemoLines()
        found = asyncio.run(_work(model, project, _demo_settings(), shown))
        found |= {"tests_before": before, "tests_after": _tests(project)}
        found["memory"] = asyncio.run(memory_demo(project))
        found["filled"] = _fill_window(shown)
    kept = f"LONGHOLD_HOME={shlex.quote(str(place / 'home'))} longhold explain {found['session']}"
    found["look_inside"] = kept if keep else ""
    report(as_json, found, _last_screen(found))
    sys.exit(0 if found["tests_after"] == "passed" else 1)


@contextmanager
def home_at(place: Path) -> Iterator[None]:
    """Keep everything of the demo out of the user's home, and their settings out of the demo."""
    before = os.environ.get("LONGHOLD_HOME")
    os.environ["LONGHOLD_HOME"] = str(place)
    try:
        yield
    finally:
        if before is None:
            del os.environ["LONGHOLD_HOME"]
        else:
            os.environ["LONGHOLD_HOME"] = before


def _tests(project: Path) -> str:
    done = subprocess.run(TEST_WORDS, cwd=project, capture_output=True)
    return "passed" if done.returncode == 0 else "failed"


def _fill_window(shown: DemoLines | None) -> JsonObject:
    """Do the same work as people live with it: the window fills, then the model summarises it."""
    if shown is not None:
        shown.say("the same once more, letting the window fill and summarising it")
    with (
        TemporaryDirectory() as place,
        home_at(Path(place) / "home"),
        offline_model(shlex.join(TEST_WORDS)) as model,
    ):
        return asyncio.run(_work(model, _write_project(Path(place)), _filled_settings(), shown))


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
    end = ""
    async for event in agent.run(task):
        if isinstance(event, Stopped):
            end = event.reason
        if shown is not None:
            shown.follow(agent, task)
    return end


def _figures(agent: Agent, ends: Sequence[str]) -> JsonObject:
    history, full = agent.session.view.history, agent.session.fullness()
    spent = sum_spending(history)
    return {
        "session": agent.session.id,
        "tasks": ends,
        "answers": spent.calls,
        "tokens": spent.total_tokens,
        "tool_calls": dict(Counter(entry.tool for entry in history if isinstance(entry, Began))),
        "entries": len(history),
        "layers": _layers(agent, history),
        "notes": _notes(history),
        "broken_rules": violations(agent.session.view.messages()),
        "used_tokens": full.used_tokens,
        "window_tokens": full.window.limit_tokens,
        "percent_left": full.window.percent_left(full.used_tokens),
        "cache_read_share": round(spent.hit_share, 4),
        "usd": round(spent.usd, 5),
        "usd_without_cache": round(spent.bare_usd, 5),
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
        "tasks_still_verbatim": _format_verbatim(agent.session.view),
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
    forks = [entry for entry in before if isinstance(entry, Forked)]
    if not forks:
        return 0.0
    answers = [e.usage for e in before if isinstance(e, Replied) and e.usage and e.n < forks[-1].n]
    left = answers[-1].cache_read_tokens + answers[-1].cache_write_tokens
    return round(min(1.0, forks[-1].usage.cache_read_tokens / left), 4) if left else 0.0


def _format_verbatim(view: View) -> int:
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
    return {"learnt": learnt, "recalled": shown} | _run_dream(project, settings)


async def _session(settings: Settings, project: Path, prompt: str) -> Sequence[AnyEntry]:
    with offline_model() as model:
        async with running_agent(
            model, settings, directory=project, mode="bypass", listener=None
        ) as agent:
            async for _ in agent.run(prompt):
                pass
    return agent.session.view.history


def _run_dream(project: Path, settings: Settings) -> JsonObject:
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
