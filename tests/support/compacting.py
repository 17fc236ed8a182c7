"""A session with a filling window and a scripted model, for compaction tests."""

import os
from types import SimpleNamespace

from longhold.core.log.entries import Compacted, Failed, Forked, Replied
from longhold.core.log.stores import default_store
from longhold.core.messages import Text, Thinking, ToolUse, Usage
from longhold.core.models.retry import Retries
from longhold.core.models.scripted import ScriptedModel
from longhold.core.models.steady import Patience
from longhold.core.request.frame import frame
from longhold.core.settings import (
    ClearSettings,
    CompactSettings,
    NotesSettings,
    Settings,
    WindowSettings,
)
from longhold.core.stages.compact.owner import CompactionHooks
from longhold.core.stages.layers import build_layers
from longhold.core.stages.spill.spill import Spill
from longhold.core.tools.context import ToolContext
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import make_placeholders
from longhold.core.turn.fork.run import Forks
from longhold.core.turn.round import Toolbox
from longhold.session.session import Session

FREE, BINDS = "claude-opus-4-6", "claude-sonnet-5-5"
HOOKS = ("before", "after", "restore", "greet", "renew", "progress")
WINDOW_TOKENS = 20_000
"""Compacts from 16,700 on; nothing more is sent from 17,700 on."""
SECTIONS = """<analysis>a draft</analysis><summary>
## 1. Request and intent
The login is to be fixed.
## 2. Technical concepts
Python, sessions.
## 4. Errors and fixes
A KeyError in auth.py, fixed by a default.
## 5. Problem solving
The cookie was dropped on purpose.
## 7. Pending tasks
None.
## 8. Current work
auth.py was changed and tested.
## 9. Next step
Nothing is left.
</summary>"""


def answer(text=SECTIONS, **more):
    """Write an answer in the language of scripts."""
    lines = [f"text: {text.replace(chr(10), chr(10) + '  ')}"]
    return "\n".join([*lines, *(f"{key}: {value}" for key, value in more.items())])


SUMMARY = answer()


class Talk:
    """A session that can fill its window, and the model that its forks ask."""

    def __init__(
        self,
        directory,
        *scripts,
        model=FREE,
        window=WINDOW_TOKENS,
        auto_line="",
        asks=True,
        notes=None,
        **settings,
    ):
        """Begin a session; `asks=False` gives it no model."""
        self.model = ScriptedModel("\n---\n".join(scripts), name=model)
        compact = CompactSettings(**settings)
        self.settings = Settings(
            window=WindowSettings(limit_tokens=window, auto_line=auto_line),
            clear=ClearSettings(on=False),  # it would make room first
            compact=compact,
            notes=notes or NotesSettings(on=False),  # they would stand for history first
        )
        spill = Spill()
        log = default_store().create(directory=directory)
        self.engine = Engine(log, self.settings, on_result=spill.arrive)
        self.told = []
        tool_context = ToolContext(root=directory, home=directory, scratch=directory / "scratch")
        self.forks = Forks(
            parent=self.engine,
            model=lambda: self.model,
            toolbox=lambda: Toolbox(
                tools=make_placeholders(self.engine.frame), tool_context=tool_context
            ),
            retries=Retries(attempts=1, base_seconds=0.0),
            patience=Patience(first_event_seconds=5, stall_seconds=5),
        )
        self.ask = self.forks.ask
        self.hooks = SimpleNamespace(**{name: getattr(CompactionHooks(), name) for name in HOOKS})
        layers = build_layers(
            spill,
            ask=(lambda request: self.ask(request)) if asks else None,
            hooks=CompactionHooks(
                tell=self.told.append, **{name: self._hook(name) for name in HOOKS}
            ),
        )
        self.session = Session(self.engine, layers)
        self.session._begin(model, frame("You are careful.", (), {}), "sdk")
        self.stage = layers.compact

    def _hook(self, name):
        """Let a test replace a hook on `hooks` after the session was built with it."""
        return lambda *given: getattr(self.hooks, name)(*given)

    @property
    def view(self):
        return self.session.view

    @property
    def line(self):
        return self.engine.fullness().window.auto_tokens

    @property
    def used(self):
        return self.engine.fullness().used_tokens

    def of(self, kind):
        """The entries of a kind."""
        return [entry for entry in self.view.history if isinstance(entry, kind)]

    @property
    def compacted(self):
        return self.of(Compacted)

    @property
    def failed(self):
        return [entry.what for entry in self.of(Failed)]

    @property
    def calls(self):
        return self.of(Forked)

    def turn(self, text, words=1_000, thought=False, id=None, tool="Read"):
        """A finished turn: a question, a tool call with a result, an answer."""
        id = id or f"t{len(self.view.history)}"
        self.engine.say(text)
        self.turn_open(id, words, thought, tool)
        content = (Text(text=f"{id} is done"),)
        end = Replied(response_id=f"{id}-end", content=content, stop_reason="end_turn")
        self.engine.record(end)

    def turn_open(self, id="open", words=10, thought=False, tool="Read"):
        """A tool call with its result, in the middle of a turn."""
        blocks = (Thinking(thinking="hm", signature="c2ln"),) if thought else ()
        use = ToolUse(id=id, name=tool, input={"file_path": f"/src/{id}.py"})
        self.engine.record(
            Replied(
                response_id=id,
                content=(*blocks, use),
                model=self.model.name,
                stop_reason="tool_use",
            )
        )
        self.engine.take_result(id, f"{id} " + "word " * words)

    def fill(self, tokens=None, waiting="what now?"):
        """Turns until the line is reached, and a question that waits."""
        number = 0
        while self.used < (tokens or self.line):
            number += 1
            self.turn(f"step {number} of the login fix, keep flag --strict-{number}")
        if waiting:
            self.engine.say(waiting)
        return self

    async def prepare(self):
        return await self.session.prepare()

    def sent(self):
        """What would go out: the frame and the bytes of every message."""
        prefix = self.engine.prefix()
        frame = prefix.frame
        return frame.sections, frame.tools, frame.instructions, list(prefix.messages)

    def answered(self, text="so it is", **usage):
        """Take in an answer of the main conversation's."""
        n = len(self.view.history)
        self.engine.record(
            Replied(
                response_id=f"a{n}",
                content=(Text(text=text),),
                model=self.model.name,
                stop_reason="end_turn",
                usage=Usage(**usage) if usage else None,
            )
        )

    def fill_disk(self):
        """Let no more entry be written; gives back how to free it."""
        log = self.engine.log
        kept = os.dup(log._descriptor)
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, log._descriptor)
        os.close(full)

        def free():
            os.dup2(kept, log._descriptor)
            os.close(kept)

        return free
