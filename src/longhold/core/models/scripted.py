"""A model that plays the answers of a script, for tests, demos and examples.

`read_script` also reads the simulator's scripts. Answers are separated by `---` and consist of
lines:

    think: The file is probably short.
    text: Let me look.
    tool: Read {"path": "a.py"}
    usage: input=1200 output=40 read=900 write=100
    stop: tool_use
    ---
    error: 529 retry-after=2
    ---
    text: It defines one function,
      and nothing calls it.

An indented line continues the text above. Its indent of two spaces is removed. Blank lines within a text are
kept. `#` starts a comment line, `block: {json}` adds any other block, and `error:` takes a status
or one of `WORDS`. An error alone fails the request. An error after blocks interrupts the answer.
Missing ids and usage are generated deterministically. `requests` records the requests.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import msgspec

from longhold.core.messages import (
    Block,
    Json,
    JsonObject,
    Text,
    Thinking,
    ToolUse,
    Usage,
    block_from_wire,
    block_to_wire,
)
from longhold.core.models.capabilities import capabilities
from longhold.core.models.protocol import Event, Reply, Request, play
from longhold.core.models.translate import ProviderFault, explain
from longhold.errors import ConfigError, ModelRefused, PromptTooLong, RequestRejected, StreamBroken

CHARS_PER_TOKEN = 4  # used for answers without usage in the script

INDENT = "  "  # Indent of a continuation line. Further indentation, as in code, is kept.

KEYWORDS = ("text", "think", "tool", "block", "usage", "stop", "error")

WORDS = ("too-long", "refused", "broken", "stalled")  # the token counts may follow `too-long`

_USAGE_FIELDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "read": "cache_read_tokens",
    "write": "cache_write_tokens",
}


@dataclass(slots=True, kw_only=True)
class ScriptedAnswer:
    blocks: tuple[Block, ...] = ()
    usage: Usage | None = None
    stop_reason: str | None = None
    error: str | None = None


class ScriptedModel:
    def __init__(
        self, script: str, *, name: str = "scripted", overrides: Mapping[str, object] | None = None
    ) -> None:
        self._answers = read_script(script)
        self.name = name
        self.capabilities = capabilities(name, overrides)
        self.requests: list[Request] = []
        self.stalled = asyncio.Event()

    @classmethod
    def from_file(
        cls, path: Path, *, overrides: Mapping[str, object] | None = None
    ) -> "ScriptedModel":
        try:
            return cls(path.read_text("utf-8"), name=f"scripted:{path}", overrides=overrides)
        except OSError as error:
            raise ConfigError(f"no script at {path}: {error.strerror}; check the path") from error

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        turn = len(self.requests)
        self.requests.append(request)
        if turn >= len(self._answers):
            raise RequestRejected(f"the script ended after {turn} answers; add more")
        answer = self._answers[turn]
        if answer.error and not answer.blocks:
            await self._fail(answer.error)
        reply = _reply(answer, request, turn, self.name)
        length = 1 + 2 * len(answer.blocks) if answer.error else None
        for event in islice(play(reply), length):
            yield event
        if answer.error:
            await self._fail(answer.error, has_begun=True)

    async def count(self, request: Request) -> int | None:
        return _estimate_tokens(request.kwargs)

    async def close(self) -> None:
        """A script has nothing to release."""

    async def _fail(self, error: str, *, has_begun: bool = False) -> None:
        if error.split()[0] == "stalled":
            self.stalled.set()
            await asyncio.Event().wait()
        _raise(error, has_begun=has_begun)


def _raise(error: str, *, has_begun: bool) -> None:
    word, *rest = error.split()
    match word:
        case "broken":
            raise StreamBroken("the script breaks the stream here")
        case "refused":
            raise ModelRefused("the script refuses to answer")
        case "too-long":
            needed, allowed = (int(rest[0]), int(rest[1])) if len(rest) == 2 else (None, None)
            raise PromptTooLong(
                "the script rejects this as too long",
                needed_tokens=needed,
                allowed_tokens=allowed,
                status=400,
            )
    status, headers = read_status(error)
    fault = ProviderFault(status=status, message=f"scripted {word}", headers=headers)
    raise explain(fault, has_begun=has_begun)


def read_status(error: str) -> tuple[int, dict[str, str]]:
    word, *rest = error.split()
    return int(word), dict(pair.split("=", 1) for pair in rest if "=" in pair)


def _reply(answer: ScriptedAnswer, request: Request, turn: int, name: str) -> Reply:
    seed = msgspec.json.encode([request.kwargs.get("messages"), turn])
    stem = blake2b(seed, digest_size=8).hexdigest()
    content = tuple(
        ToolUse(id=f"toolu_{stem}_{place}", name=block.name, input=block.input)
        if isinstance(block, ToolUse) and not block.id
        else block
        for place, block in enumerate(answer.blocks)
    )
    calls_tool = any(isinstance(block, ToolUse) for block in content)
    return Reply(
        response_id=f"msg_{stem}",
        model=name,
        content=content,
        stop_reason=answer.stop_reason or ("tool_use" if calls_tool else "end_turn"),
        usage=answer.usage
        or Usage(
            input_tokens=_estimate_tokens(request.kwargs),
            output_tokens=sum(_estimate_tokens(block_to_wire(block)) for block in content),
        ),
    )


def _estimate_tokens(value: JsonObject) -> int:
    return -(-len(msgspec.json.encode(value)) // CHARS_PER_TOKEN)


def read_script(script: str) -> tuple[ScriptedAnswer, ...]:
    """Read a script. An invalid line raises `ConfigError` with its number."""
    answers: list[ScriptedAnswer] = []
    draft = ScriptedAnswer()
    for number, line in _logical_lines(script):
        if line == "---":
            answers.append(draft)
            draft = ScriptedAnswer()
            continue
        keyword, colon, rest = line.partition(":")
        try:
            if not colon or keyword not in KEYWORDS:
                raise ValueError(f"{line!r} does not begin with one of {', '.join(KEYWORDS)}")
            _apply(draft, keyword, rest.strip())
        except (ValueError, RecursionError, msgspec.DecodeError) as error:
            raise ConfigError(f"script line {number}: {error}") from error
    return (*answers, draft) if draft != ScriptedAnswer() else tuple(answers)


def _logical_lines(script: str) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    blanks = 0
    for number, line in enumerate(script.splitlines(), start=1):
        if not line.strip():
            blanks += 1
        elif line[0] in " \t" and lines:
            first, text = lines[-1]
            added = line.removeprefix("\t").removeprefix(INDENT).rstrip()
            lines[-1] = (first, text + "\n" * (blanks + 1) + added)
            blanks = 0
        elif not line.startswith("#"):
            lines.append((number, line.rstrip()))
            blanks = 0
    return lines


def _apply(draft: ScriptedAnswer, keyword: str, rest: str) -> None:
    match keyword:
        case "text":
            draft.blocks += (Text(text=rest),)
        case "think":
            draft.blocks += (Thinking(thinking=rest, signature="scripted"),)
        case "tool":
            name, _, written = rest.partition(" ")
            given = msgspec.json.decode(written or "{}", type=dict[str, Json])
            draft.blocks += (ToolUse(id="", name=name, input=given),)
        case "block":
            draft.blocks += (block_from_wire(msgspec.json.decode(rest, type=dict[str, Json])),)
        case "usage":
            draft.usage = _usage(rest)
        case "stop":
            draft.stop_reason = rest
        case "error":
            word = rest.split()[0] if rest else ""
            if not word.isdigit() and word not in WORDS:
                listed = ", ".join(WORDS)
                raise ValueError(f"error {rest!r} is neither a status nor one of {listed}")
            draft.error = rest


def _usage(rest: str) -> Usage:
    counts = {}
    for pair in rest.split():
        name, _, number = pair.partition("=")
        if name not in _USAGE_FIELDS:
            raise ValueError(f"usage has no {name!r}; it has {', '.join(_USAGE_FIELDS)}")
        counts[_USAGE_FIELDS[name]] = int(number)
    return msgspec.convert(counts, Usage)
