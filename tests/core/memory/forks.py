"""A fork that makes given calls, for tests of memory jobs."""

from dataclasses import dataclass, field

from longhold.agent.tools.standard import STANDARD
from longhold.core.log.entries import Framed
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.turn.fork.asking import ForkReply, ForkRequest
from longhold.core.turn.fork.prefix import Prefix
from longhold.core.turn.round import Denied

PREFIX = Prefix(frame=Framed(), model="claude-opus-5-5", max_output_tokens=100)
USAGE = Usage(input_tokens=10, output_tokens=5, cache_read_tokens=1_000)
HEAD = "---\nname: {name}\ndescription: {said}\ntype: {type}\n---\n\n"


def creating(file, said, type="project", body="It was said.\n"):
    """A call that writes a new memory."""
    text = HEAD.format(name=file, said=said, type=type) + body
    return "memory", {"command": "create", "path": f"/memories/{file}", "file_text": text}


@dataclass
class ScriptedFork:
    """Makes calls through the permit it was given, on the tools that stand in for others."""

    tool_context: object
    calls: list = field(default_factory=list)
    reason: str = "completed"
    answer: str = "Done."
    requests: list[ForkRequest] = field(default_factory=list)
    results: list[str] = field(default_factory=list)

    async def __call__(self, request):
        """Run to the end."""
        self.requests.append(request)
        tools = {tool.name: tool for tool in STANDARD} | dict(request.instead)
        for number, call in enumerate(self.calls):
            if callable(call):
                call()
                continue
            name, given = call
            use = ToolUse(id=f"t{number}", name=name, input=given)
            verdict = await request.permit(use, tools[name])
            if isinstance(verdict, Denied):
                self.results.append(verdict.reason)
            else:
                outcome = await tools[name].run(verdict.input, self.tool_context)
                self.results.append(str(outcome.content))
        return ForkReply(
            text=self.answer,
            content=(Text(text=self.answer),),
            stop_reason="end_turn",
            reason=self.reason,
            turns=2,
            calls=(USAGE,),
            seconds=0.1,
        )
