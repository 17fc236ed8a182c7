"""Have a model write a summary: on a fork, by a direct call, truncated, or in pieces.

`NoSummary` is raised for an invalid answer, `ModelError` for a failed call. A direct call has a
short prompt, no tools, no images and as little thinking as the model accepts.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from msgspec import structs

from longhold.core.log.entries import Framed, Section
from longhold.core.messages import (
    Block,
    Document,
    Image,
    JsonObject,
    Message,
    Opaque,
    Text,
    ToolResult,
    ToolUse,
    is_thought,
    message_to_wire,
)
from longhold.core.messages.text import head_and_tail
from longhold.core.models.capabilities import PLAIN_WINDOW_TOKENS, Capabilities
from longhold.core.models.retry import Retries
from longhold.core.stages.compact.summary import SummaryFault, Written, prompt, read_summary
from longhold.core.turn.fork import AskFork, ForkReply, ForkRequest, Prefix
from longhold.core.view.items import Item, Spoken, render
from longhold.errors import Aborted, LongholdError, PromptTooLong

SOURCE = "compact"
OUTPUT_TOKENS = 20_000
"""99.99% of summaries are shorter than 17,400 tokens."""
OUTPUT_SHARE = 0.2
"""Share of the window, which limits the output in small windows."""
SOON = Retries(attempts=2, obey_seconds=3.0)
"""While the user waits there is only one retry, because the digest is always available."""
ON_DEMAND_BETA = "compact-2026-09-04"
COMPACTION = "compaction"
TRUNCATIONS = 3
TRUNCATED_SHARE = 0.2
PIECES = 12
"""More pieces would cost more than they are worth. The digest reads everything."""
NOTICE_CHARS = 64
PIECE_RESULT_CHARS = 2_000
"""Enough of a tool result to see the outcome of the call."""


class NoSummary(LongholdError):
    """An answer arrived that is not a summary."""

    def __init__(self, fault: SummaryFault) -> None:
        self.fault = fault
        super().__init__(f"the answer is no summary: {_SAID[fault]}")


_SAID: dict[SummaryFault, str] = {
    "empty": "it has no text",
    "tool_call": "a tool was called instead",
    "cut_off": "it was cut off at the output limit",
    "sections": "sections are missing",
    "refused": "the model declined",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWriter:
    ask: AskFork
    model: str
    able: Capabilities
    asked: str
    window_tokens: int = PLAIN_WINDOW_TOKENS
    is_wanted: bool = False
    retries: Retries | None = SOON
    """None if nobody waits: then as many retries as for the conversation itself."""

    async def ask_fork(self, prefix: Prefix | None = None) -> Written:
        request = ForkRequest(say=self.asked, source=SOURCE, prefix=prefix)
        return await self._summary(replace(request, least_output_tokens=self._output_tokens()))

    async def by_provider(self, prefix: Prefix) -> JsonObject:
        """Have the provider compact on its side. Return its signed block."""
        options = {k: v for k, v in prefix.frame.options.items() if k != "context_management"}
        frame = structs.replace(
            prefix.frame,
            options=options | {"compaction": {"type": "summarize"}},
            betas=(*prefix.frame.betas, ON_DEMAND_BETA),
        )
        request = ForkRequest(say="", source=SOURCE, prefix=replace(prefix, frame=frame))
        reply = await self._reply(request)
        for block in reply.content:
            if isinstance(block, Opaque) and block.raw.get("type") == COMPACTION:
                return block.raw
        raise NoSummary("empty")

    async def ask_directly(self, items: Sequence[Item]) -> Written:
        """Ask in a separate call, dropping the oldest rounds while it is too long."""
        left = tuple(items)
        for _ in range(TRUNCATIONS):
            try:
                return await self._ask_once(bare_messages(left), self.asked)
            except PromptTooLong as error:
                left = truncate(left, error)
        return await self._ask_once(bare_messages(left), self.asked)

    async def ask_in_pieces(self, items: Sequence[Item], piece_chars: int) -> Written:
        texts = pieces(items, piece_chars)
        if len(texts) > PIECES:
            raise PromptTooLong(f"{len(texts)} pieces are more than {PIECES}")
        notes = []
        for number, text in enumerate(texts, 1):
            head = prompt("chunk").replace("{number}", str(number))
            asked = head.replace("{total}", str(len(texts)))
            notes.append(await self._text((Message("user", (Text(text=text),)),), asked))
        joined = "\n\n".join(
            f"Part {i} of {len(notes)}:\n{note}" for i, note in enumerate(notes, 1)
        )
        return await self._ask_once((Message("user", (Text(text=joined),)),), self.asked)

    async def _ask_once(self, messages: Sequence[Message], asked: str) -> Written:
        return await self._summary(self._request(messages, asked))

    async def _text(self, messages: Sequence[Message], asked: str) -> str:
        reply = await self._reply(self._request(messages, asked))
        if not reply.text.strip():
            raise NoSummary("empty")
        return reply.text

    async def _reply(self, request: ForkRequest) -> ForkReply:
        own = replace(request, retries=self.retries, is_wanted=self.is_wanted)
        reply = await self.ask(own)
        if reply.reason == "aborted":
            raise Aborted("the summary was stopped; nothing was changed")
        return reply

    async def _summary(self, request: ForkRequest) -> Written:
        reply = await self._reply(request)
        called = any(isinstance(block, ToolUse) for block in reply.content)
        found = read_summary(reply.text, "tool_use" if called else reply.stop_reason)
        if isinstance(found, str):
            raise NoSummary(found)
        return found

    def _request(self, messages: Sequence[Message], asked: str) -> ForkRequest:
        frame = Framed(
            sections=(Section(name="summary", text=prompt("direct")),),
            options=least_thinking(self.able),
            cached=False,
        )
        prefix = Prefix(
            frame=frame,
            messages=tuple(message_to_wire(message) for message in messages),
            model=self.model,
            max_output_tokens=self._output_tokens(),
        )
        return ForkRequest(say=asked, source=SOURCE, prefix=prefix)

    def _output_tokens(self) -> int:
        room = max(1, int(OUTPUT_SHARE * self.window_tokens))
        return min(OUTPUT_TOKENS, self.able.max_output_tokens, room)


def least_thinking(able: Capabilities) -> JsonObject:
    if able.family not in ("anthropic", "simulator"):
        return {}
    for mode in ("disabled", "between_tools"):
        if mode in able.thinking_modes:
            return {"thinking": {"type": mode}}
    return {"output_config": {"effort": "low"}}


def bare_messages(items: Iterable[Item]) -> list[Message]:
    """Render items as plain text, without images, thinking and reminders."""
    shown = (item for item in items if not (isinstance(item, Spoken) and item.kind == "restored"))
    bare: list[Message] = []
    for message in render(shown):
        content = tuple(_flatten_block(block) for block in message.content if not is_thought(block))
        if content:
            bare.append(Message(message.role, content))
    return bare


def _flatten_block(block: Block) -> Block:
    match block:
        case Text():
            return block
        case ToolUse(name=name, input=given):
            return Text(text=f"[called {name} with {given}]")
        case ToolResult(content=content):
            parts = content if isinstance(content, tuple) else (Text(text=content),)
            text = "\n".join(_describe_block(part) for part in parts)
            return Text(text=f"[result] {text}")
    return Text(text=_describe_block(block))


def _describe_block(block: Block) -> str:
    match block:
        case Text(text=text):
            return text
        case Image():
            return "[image]"
        case Document():
            return "[document]"
        case Opaque(raw={"type": "compaction", "content": str(text)}):
            return text
    return "[something that is not text]"


def truncate(items: Sequence[Item], error: PromptTooLong) -> tuple[Item, ...]:
    """Drop the oldest items: by the overflow if known, otherwise a fifth. Keep at least one."""
    if len(items) < 2:
        raise error
    if error.needed_tokens and error.allowed_tokens and error.needed_tokens > error.allowed_tokens:
        share = 1 - error.allowed_tokens / error.needed_tokens
        gone = _count_covering(items, share)
    else:
        gone = max(1, int(len(items) * TRUNCATED_SHARE))
    return tuple(items[min(gone, len(items) - 1) :])


def _count_covering(items: Sequence[Item], share: float) -> int:
    totals = list(accumulate(len(str(item.content)) + _results_chars(item) for item in items))
    return bisect_left(totals, share * totals[-1]) + 1


def _results_chars(item: Item) -> int:
    if isinstance(item, Spoken):
        return 0
    return sum(len(str(result.block("sent").content)) for result in item.results)


def pieces(items: Iterable[Item], piece_chars: int) -> list[str]:
    made: list[str] = []
    for text in _render_parts(items, piece_chars):
        if made and len(made[-1]) + len(text) + 2 <= piece_chars:
            made[-1] = f"{made[-1]}\n\n{text}"
        else:
            made.append(text)
    return made


def _render_parts(items: Iterable[Item], most_chars: int) -> Iterator[str]:
    for message in bare_messages(items):
        who = "User" if message.role == "user" else "Agent"
        parts = (
            head_and_tail(block.text, PIECE_RESULT_CHARS, "the log")
            if block.text.startswith("[result]")
            else block.text
            for block in message.content
            if isinstance(block, Text)
        )
        text = f"{who}: " + "\n".join(parts)
        is_long = len(text) > most_chars
        yield head_and_tail(text, most_chars - NOTICE_CHARS, "the log") if is_long else text
