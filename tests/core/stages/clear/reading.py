"""A session that reads files, with a clock that tests set."""

from longhold.core.log import Header, Log
from longhold.core.log.entries import Cleared, Framed, Section, Switched
from longhold.core.messages import Text, Thinking, ToolUse, Usage
from longhold.core.messages.measure import measure_text
from longhold.core.models.protocol import Reply
from longhold.core.settings import GaugeSettings, Settings
from longhold.core.stages.clear.clear import Clearing
from longhold.core.turn.engine import Engine

MODEL = "claude-opus-4-6"
PAGE = "some words of code, and more of it\n" * 60
SYSTEM = "be careful " * 500
TOOLS = ({"name": "Read"}, {"name": "Bash"}, {"name": "History"})


class Reading:
    """An engine with the stage, and a model that reads one file after the other."""

    def __init__(self, path, settings=None, *, model=MODEL, log=None, runs_stage=True, **framed):
        self.now = 1_800_000_000.0
        self.forgotten, self.told = [], []
        self.stage = Clearing(forget=self.forgotten.append, tell=self.told.append)
        self.stages = (self.stage,) if runs_stage else ()
        settings = settings or Settings(gauge=GaugeSettings(calibrate=False))
        log_or_new = log or Log.create(path, Header(session="s"))
        self.engine = Engine(log_or_new, settings, clock=lambda: self.now)
        if log is None:
            frame = Framed(
                sections=(Section(name="a", text=SYSTEM),),
                tools=TOOLS,
                measure=measure_text(SYSTEM),
                **framed,
            )
            self.engine.record(Switched(model=model))
            self.engine.record(frame)

    @property
    def view(self):
        return self.engine.view

    @property
    def cleared(self):
        return [entry for entry in self.view.history if isinstance(entry, Cleared)]

    def shown(self):
        """The text of every result that is sent, by its tool use."""
        return {
            block.tool_use_id: block.content
            for message in self.view.messages()
            for block in message.content
            if hasattr(block, "tool_use_id")
        }

    async def ask(self, text="go on"):
        """Say something and send everything."""
        self.engine.say(text)
        return await self.send()

    async def send(self):
        """Let half a minute pass and send everything as it stands."""
        self.now += 30
        return await self.engine.prepare(self.stages, max_output_tokens=100)

    def call(self, *calls, thinks=False):
        """Let the model answer with calls, each an id, a name and an input; give their uses."""
        uses = [ToolUse(id=id, name=name, input=given) for id, name, given in calls]
        thought = (Thinking(thinking="hm " * 50, signature="c2ln"),) if thinks else ()
        size = self.engine.fullness().used_tokens
        self.engine.record_reply(
            Reply(
                response_id=f"r{len(self.view.history)}",
                model=self.engine.model,
                content=(*thought, Text(text="so"), *uses),
                stop_reason="tool_use" if uses else "end_turn",
                usage=Usage(cache_read_tokens=size, output_tokens=20),
            )
        )
        return uses

    async def read(self, count, *, first=0, page=PAGE, thinks=False):
        """Read files one after the other, a call for each."""
        for i in range(first, first + count):
            await self.send()
            self.call((f"t{i}", "Read", {"file_path": f"/p/{i}.py"}), thinks=thinks)
            self.engine.take_result(f"t{i}", f"{i}: {page}")

    def close(self):
        self.engine.close()
