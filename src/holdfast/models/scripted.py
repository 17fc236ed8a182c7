"""A model that gives the answers of a script: for tests, demos and examples.

An error alone fails the request; after blocks it breaks the answer midway. Ids and usage that a
script leaves out are made up the same way every time. `requests` keeps what was asked.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import msgspec

from holdfast.errors import (
    ConfigError,
    ModelError,
    ModelRefused,
    PromptTooLong,
    RequestRejected,
    StreamBroken,
)
from holdfast.messages import Block, JsonObject, ToolUse, Usage, block_to_wire
from holdfast.models.capabilities import capabilities
from holdfast.models.protocol import Event, Reply, Request, play
from holdfast.models.script import ScriptedAnswer, read_script
from holdfast.models.translate import ProviderFault, explain

CHARS_PER_TOKEN = 4
"""For answers whose script gives no usage; a made-up model needs no better estimate."""


class ScriptedModel:
    def __init__(
        self,
        script: str,
        *,
        name: str = "scripted",
        overrides: Mapping[str, object] | None = None,
    ) -> None:
        self._answers = read_script(script)
        self.name = name
        self.capabilities = capabilities(name, overrides)
        self.requests: list[Request] = []

    @classmethod
    def from_file(
        cls, path: Path, *, overrides: Mapping[str, object] | None = None
    ) -> "ScriptedModel":
        try:
            script = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"no script at {path}: {error.strerror}; check the path") from error
        return cls(script, name=f"scripted:{path}", overrides=overrides)

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        turn = len(self.requests)
        self.requests.append(request)
        if turn >= len(self._answers):
            raise RequestRejected(f"the script is over after {turn} answers; add to it")
        answer = self._answers[turn]
        if answer.error and not answer.blocks:
            await _fail(answer.error)
        reply = _reply(answer, request, turn, self.name)
        length = 1 + 2 * len(answer.blocks) if answer.error else None
        for event in islice(play(reply), length):
            yield event
        if answer.error:
            await _fail(answer.error, has_begun=True)

    async def count(self, request: Request) -> int | None:
        return _estimate_tokens(request.kwargs)

    async def close(self) -> None:
        """Nothing to let go of."""


async def _fail(error: str, *, has_begun: bool = False) -> None:
    word, *rest = error.split()
    match word:
        case "stalled":
            await asyncio.Event().wait()
        case "broken":
            raise StreamBroken("the script breaks the stream here")
        case "refused":
            raise ModelRefused("the script refuses to answer")
        case "too-long":
            needed, allowed = (int(rest[0]), int(rest[1])) if len(rest) == 2 else (None, None)
            raise PromptTooLong(
                "the script finds this too long",
                needed_tokens=needed,
                allowed_tokens=allowed,
                status=400,
            )
    raise _status_error(int(word), rest, has_begun=has_begun)


def _status_error(status: int, rest: list[str], *, has_begun: bool) -> ModelError:
    headers = dict(pair.split("=", 1) for pair in rest if "=" in pair)
    fault = ProviderFault(status=status, message=f"scripted {status}", headers=headers)
    return explain(fault, has_begun=has_begun)


def _reply(answer: ScriptedAnswer, request: Request, turn: int, name: str) -> Reply:
    """Complete an answer: ids that no other conversation has, usage, a reason to stop."""
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
        usage=answer.usage or _made_up_usage(request, content),
    )


def _made_up_usage(request: Request, content: tuple[Block, ...]) -> Usage:
    written = sum(_estimate_tokens(block_to_wire(block)) for block in content)
    return Usage(input_tokens=_estimate_tokens(request.kwargs), output_tokens=written)


def _estimate_tokens(value: JsonObject) -> int:
    return -(-len(msgspec.json.encode(value)) // CHARS_PER_TOKEN)
