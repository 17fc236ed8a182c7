"""What the demo shows: a few calm lines while it works, one screen at the end."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.agent.agent import Agent
from holdfast.cli.demo_project import TASKS
from holdfast.cli.output import bar, one_line, percent, rewrite_line, say, size, tokens
from holdfast.messages import JsonObject
from holdfast.terminal.stage_lines import StageLines

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
        """Show what a layer says it did; the rest of what a session says is for its user."""
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


def last_screen(found: JsonObject) -> list[str]:
    """Draw what came of it, and against what people live with."""
    filled = found["filled"]
    calls = sum(found["tool_calls"].values())
    rules = (
        "no API rule broken" if not found["broken_rules"] else f"BROKEN: {found['broken_rules']}"
    )
    rows = (
        ("", "with Holdfast", "let it fill, then summarise"),
        ("tokens", tokens(found["tokens"]), tokens(filled["tokens"])),
        ("from the cache", f"{found['cache_read_share']:.1%}", f"{filled['cache_read_share']:.1%}"),
        ("list price", f"${found['usd']:.3f}", f"${filled['usd']:.3f}"),
        ("tasks word for word", _verbatim(found), _verbatim(filled)),
        ("summaries by a model", _by_model(found), _by_model(filled)),
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
    return [*deeper, "Your own sessions, with what would have saved most: holdfast report"]


def _verbatim(found: JsonObject) -> str:
    return f"{found['layers']['tasks_still_verbatim']} of {len(TASKS)}"


def _by_model(found: JsonObject) -> str:
    made = found["layers"]["compacted"]
    return f"{sum(one['by'] == 'model' for one in made)} of {len(made)}"


def _layer_lines(found: JsonObject) -> list[str]:
    layers, used, limit = found["layers"], found["used_tokens"], found["window_tokens"]
    spilled, made = layers["spilled_bytes"], layers["compacted"]
    first = made[0] if made else {"before_tokens": 0, "after_tokens": 0, "prefix_read_share": 0.0}
    return [
        f"window    [{bar(used / limit, 30)}] {tokens(used)} of {tokens(limit)}",
        f"spilled   {len(spilled)} results, {size(sum(spilled))}, to disk with a preview",
        f"cleared   {_counted(layers['cleared'])} old results left the view where that was free or paid",
        f"compacted {len(made)} times; the model's call read {percent(first['prefix_read_share'], 1)} of "
        f"its prompt from the cache: {tokens(first['before_tokens'])} → {tokens(first['after_tokens'])}",
        f"notes     updated {found['notes']['updates']} times, and stood in for "
        f"{found['notes']['compacted']} summaries without a call",
    ]


def _counted(cleared: Sequence[str]) -> str:
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
