"""Write answers to the log. Each tool call is written before its tool may run."""

from collections.abc import Callable
from typing import TypeAlias

from longhold.core.log.entries import AnyEntry, Replied
from longhold.core.messages import Block, Text, ToolUse
from longhold.core.models import protocol
from longhold.core.view.block_roles import to_answer

RecordEntry: TypeAlias = Callable[[AnyEntry], AnyEntry]


class AnswerWriter:
    def __init__(self, record: RecordEntry) -> None:
        self._record = record
        self._waiting: list[Block] = []
        self._half = ""
        self._id = ""
        self._model = ""
        self.reply: protocol.Reply | None = None
        self.numbers: list[int] = []

    def take(self, event: protocol.Event) -> ToolUse | None:
        """Take one event. Return the tool call that it completes, which may run now."""
        match event:
            case protocol.Started(response_id=id, model=model):
                self._id, self._model = id, model
            case protocol.Restarted():
                self._waiting.clear()
                self._half = ""
            case protocol.TextDelta(text=text):
                self._half += text
            case protocol.BlockFinished(block=block):
                self._half = ""
                self._waiting.append(block)
                if isinstance(block, ToolUse):
                    return _last_call(self._write())
            case protocol.Finished(reply=reply):
                self._finish(reply)
        return None

    def write(self, reply: protocol.Reply) -> AnyEntry:
        self._waiting.extend(reply.content)
        return self._finish(reply)

    def close(self, stop_reason: str) -> None:
        if self._half and stop_reason == "aborted":
            self._waiting.append(Text(text=self._half))
        if self._waiting:
            self._write(stop_reason=stop_reason)

    def _finish(self, reply: protocol.Reply) -> AnyEntry:
        self.reply = reply
        self._id, self._model = reply.response_id, reply.model
        return self._write(reply)

    def _write(self, reply: protocol.Reply | None = None, stop_reason: str = "") -> AnyEntry:
        content = tuple(self._waiting)
        self._waiting.clear()
        entry = self._record(
            Replied(
                response_id=self._id,
                model=self._model,
                content=to_answer(content),
                stop_reason=reply.stop_reason if reply else stop_reason,
                usage=reply.usage if reply else None,
                applied=reply.applied if reply else (),
            )
        )
        self.numbers.append(entry.n)
        return entry


def _last_call(entry: AnyEntry) -> ToolUse | None:
    last = entry.content[-1] if isinstance(entry, Replied) and entry.content else None
    return last if isinstance(last, ToolUse) else None
