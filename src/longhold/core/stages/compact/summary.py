"""A summary by a model: the request, the ways to call a model, and the check of the answer.

The model writes seven of nine sections. Longhold adds files, commands and user messages. A fork
reads the conversation from the cache. A direct call has a short prompt, no tools, no images and as
little thinking as the model accepts. An apology or an incomplete answer raises `NoSummary`.
"""

import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import accumulate
from typing import Literal, TypeAlias

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
from longhold.core.messages.text import cut, one_line
from longhold.core.models.capabilities import Capabilities, capabilities
from longhold.core.models.retry import Retries
from longhold.core.stages.compact.digest import SECTIONS
from longhold.core.stages.compact.digest.headings import parts
from longhold.core.stages.compact.directives import Directive
from longhold.core.stages.compact.owner import SummaryKind
from longhold.core.stages.compact.segment import Segment
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork, ForkRequest
from longhold.core.turn.fork.prefix import Prefix
from longhold.core.view.items import Item, Spoken, render
from longhold.errors import Aborted, LongholdError, ModelError, PromptTooLong

SummaryFault: TypeAlias = Literal["empty", "tool_call", "cut_off", "sections", "refused"]

HEADINGS = {n: SECTIONS[n] for n in (1, 2, 4, 5, 7, 8, 9)}
NEEDED = frozenset({1, 8})
"""The request and the current work. Without these sections, work cannot continue."""
ENOUGH_SECTIONS = 5
"""A model may omit one or two sections if there is nothing to say."""
PIVOT_CHARS = 120
LISTED_MESSAGES = 80
"""Limit in a 200K window. Earlier summaries cover the older messages."""
LISTED_CHARS = 100

_SUMMARY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL | re.IGNORECASE)
_ANALYSIS = re.compile(r"<analysis>.*?(?:</analysis>|(?=<summary>)|\Z)", re.DOTALL | re.IGNORECASE)
_STATES = re.compile(r"<states>(.*?)(?:</states>|\Z)", re.DOTALL | re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n\s*\n(?:\s*\n)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A summary or notes, written by a model or a person."""

    text: str
    states: str = ""
    """Claims about the state of the user's requests, not yet checked."""


_PROMPTS = {
    file.name.removesuffix(".md"): file.read_text("utf-8").strip()
    for file in (files("longhold.core.stages.compact") / "prompts").iterdir()
}
"""These are read at import, because compaction must work even if no file can be opened."""


def prompt(name: str) -> str:
    return _PROMPTS[name]


def ask_for_summary(
    kind: SummaryKind = "full",
    *,
    focus: Iterable[str] = (),
    directives: Iterable[Directive] = (),
    shortened: Iterable[Directive] = (),
    pivot: str = "",
    most_listed: int = LISTED_MESSAGES,
) -> str:
    """Write the request. Messages in `shortened` will not be kept word for word."""
    scope, work, next_step = prompt(kind).split("\n---\n")
    scope = scope.replace("{pivot}", cut(one_line(pivot), PIVOT_CHARS))
    asked = prompt("summary").replace("{scope}", scope)
    parts = [asked.replace("{work}", work).replace("{next}", next_step)]
    instructions = [text.strip() for text in focus if text.strip()]
    if instructions:
        parts.append(prompt("focus").replace("{focus}", "\n\n".join(instructions)))
    listed = [_cite_start(each) for each in directives if each.state == "open"]
    if listed:
        parts.append(prompt("states").replace("{messages}", "\n".join(listed[-most_listed:])))
    cut_short = [_cite_start(each) for each in shortened if each.state == "open"]
    if cut_short:
        messages = "\n".join(cut_short[-most_listed:])
        parts.append(prompt("shortened").replace("{messages}", messages))
    return "\n\n".join((*parts, prompt("no_tools")))


def _cite_start(directive: Directive) -> str:
    return f"#{directive.message}: {cut(one_line(directive.text), LISTED_CHARS)}"


def read_summary(text: str, stop_reason: str) -> Written | SummaryFault:
    match stop_reason:
        case "max_tokens" | "model_context_window_exceeded":
            return "cut_off"
        case "refusal":
            return "refused"
        case "tool_use":
            return "tool_call"
    if not text.strip():
        return "empty"
    found = _SUMMARY.search(text)
    body = found[1] if found else _STATES.sub("", _ANALYSIS.sub("", text))
    headed = [one for one in parts(body, _match_heading)[1] if one.number in HEADINGS and one.text]
    sections = {one.number: _BLANK_LINES.sub("\n\n", one.text) for one in headed}
    if not sections.keys() >= NEEDED or len(sections) < ENOUGH_SECTIONS:
        return "sections"
    states = _STATES.search(text)
    shown = "\n\n".join(f"## {n}. {HEADINGS[n]}\n{told}" for n, told in sections.items())
    return Written(text=shown, states=states[1].strip() if states else "")


def _match_heading(number: int, title: str) -> str:
    """Match a heading by its first characters, because models change the wording."""
    wanted = HEADINGS.get(number, "")
    return wanted if wanted and title.lower().startswith(wanted[:8].lower()) else ""


SOURCE = "compact"
OUTPUT_TOKENS = 20_000
"""99.99% of summaries are shorter than 17,400 tokens."""
OUTPUT_SHARE = 0.2
"""Share of a small window that the output may take."""
SOON = Retries(attempts=2, obey_seconds=3.0)
"""While the user waits, there is only one retry, because a digest is always possible."""
TRUNCATIONS = 3
TRUNCATED_SHARE = 0.2


class NoSummary(LongholdError):
    """The model's answer is not a summary."""

    def __init__(self, fault: SummaryFault) -> None:
        self.fault = fault
        super().__init__(f"the answer is not a summary: {_SAID[fault]}")


_SAID: dict[SummaryFault, str] = {
    "empty": "it has no text",
    "tool_call": "a tool was called instead",
    "cut_off": "it was cut off at the output limit",
    "sections": "sections are missing",
    "refused": "the model declined",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """A conversation to summarise."""

    messages: tuple[JsonObject, ...]
    """The messages in the format of the Messages API. Tool calls and results become text."""
    instructions: str
    """Instructions for a model about the content of the summary."""
    max_tokens: int
    model: str
    """The model that continues from the summary."""


Summariser: TypeAlias = Callable[[SummaryRequest], Awaitable[str]]
"""A plug-in that returns a summary. If it raises, the next way is tried."""


async def ask_plugin(summariser: Summariser, request: SummaryRequest) -> Written:
    try:
        text = (await summariser(request)).strip()
    except Exception as error:
        raise ModelError(f"the plug-in failed: {type(error).__name__}: {error}") from error
    if not text:
        raise NoSummary("empty")
    return Written(text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWriter:
    """Lets a model write a summary, or raises."""

    engine: Engine
    ask: AskFork | None
    asked: str
    is_wanted: bool = False

    async def ask_fork(self, segment: Segment) -> Written:
        prefix = _prefix_up_to(self.engine, segment) if segment.kind == "up_to" else None
        request = ForkRequest(say=self.asked, source=SOURCE, prefix=prefix)
        return await self._summary(replace(request, least_output_tokens=self._output_tokens()))

    async def ask_directly(
        self, items: Sequence[Item], error: PromptTooLong | None = None
    ) -> Written:
        """Ask in a separate call. Drop the oldest rounds while the prompt is too long."""
        left = truncate(items, error) if error is not None and len(items) > 1 else tuple(items)
        for _ in range(TRUNCATIONS):
            try:
                return await self.summarise(self.request(left))
            except PromptTooLong as failure:
                left = truncate(left, failure)
        return await self.summarise(self.request(left))

    async def _summary(self, request: ForkRequest) -> Written:
        assert self.ask is not None, "the rules ask a model only if there is one"
        reply = await self.ask(replace(request, retries=SOON, is_wanted=self.is_wanted))
        if reply.reason == "aborted":
            raise Aborted("the summary was stopped; nothing was changed")
        called = any(isinstance(block, ToolUse) for block in reply.content)
        found = read_summary(reply.text, "tool_use" if called else reply.stop_reason)
        if isinstance(found, str):
            raise NoSummary(found)
        return found

    def request(self, items: Iterable[Item]) -> SummaryRequest:
        return SummaryRequest(
            messages=tuple(message_to_wire(message) for message in bare_messages(items)),
            instructions=self.asked,
            max_tokens=self._output_tokens(),
            model=self.engine.model,
        )

    async def summarise(self, request: SummaryRequest) -> Written:
        frame = Framed(
            sections=(Section(name="summary", text=prompt("direct")),),
            options=least_thinking(capabilities(request.model)),
            cached=False,
        )
        prefix = Prefix(
            frame=frame,
            messages=request.messages,
            model=request.model,
            max_output_tokens=request.max_tokens,
        )
        say = request.instructions
        return await self._summary(ForkRequest(say=say, source=SOURCE, prefix=prefix))

    def _output_tokens(self) -> int:
        room = max(1, int(OUTPUT_SHARE * self.engine.fullness().window.limit_tokens))
        return min(OUTPUT_TOKENS, capabilities(self.engine.model).max_output_tokens, room)


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
    """Drop the oldest items to remove the overflow, or a fifth if its size is unknown."""
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
    results = () if isinstance(item, Spoken) else item.results
    return sum(len(str(result.block("sent").content)) for result in results)


def _prefix_up_to(engine: Engine, segment: Segment) -> Prefix:
    prefix, shown = engine.prefix(), render(segment.items)
    opening = len(prefix.messages) - len(engine.view.messages())
    whole = prefix.messages[: opening + len(shown) - 1]
    cut = prefix.with_messages((*whole, message_to_wire(shown[-1])))
    return replace(cut, before=None)  # a shorter conversation has another prefix
