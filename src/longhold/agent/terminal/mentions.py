"""Resolves `@path` in a message. Images are included, and text files are attached."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from longhold.agent.agent import Agent
from longhold.agent.tools.read import READ, explain_rejection, image_block, media_type_of
from longhold.core.messages import Block, Content, Text, text_of
from longhold.core.messages.text import tokens
from longhold.core.stages.compact.segment import tokens_of
from longhold.core.view.window import scale_tokens

_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))')
HEAD_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions:
    content: str | Content
    attached: Content = ()
    said: tuple[str, ...] = ()


async def with_mentions(text: str, agent: Agent) -> Mentions:
    """Read mentioned files. Mentions of missing or unreadable files remain plain text."""
    images: list[Block] = []
    attached: list[Block] = []
    said: list[str] = []
    most = agent.engine.settings.terminal.mention_tokens
    room = scale_tokens(most, agent.engine.fullness().window.limit_tokens)
    for path in dict.fromkeys(_paths(text, agent)):
        if _is_image(path):
            found = path.read_bytes()
            if why := explain_rejection(found):
                said.append(f"{path.name} is not sent as an image: {why}")
            else:
                images.append(image_block(found))
        elif not agent.parts.guard.may_read(READ, path):
            said.append(f"{path.name} is not sent: allow reading it first")
        else:
            line, block = await _attach(path, agent, room)
            said.append(line)
            if block is not None:
                attached.append(block)
                room -= tokens_of((block,))
    content = (Text(text=text), *images) if images else text
    return Mentions(content=content, attached=tuple(attached), said=tuple(said))


def _paths(text: str, agent: Agent) -> Iterator[Path]:
    for found in _MENTION.finditer(text):
        path = agent.tool_context.resolve(found[1] or found[2])
        try:
            if path.is_file():
                yield path
        except (OSError, ValueError):
            continue


def _is_image(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return bool(media_type_of(file.read(HEAD_BYTES)))
    except OSError:
        return False


async def _attach(path: Path, agent: Agent, room: int) -> tuple[str, Text | None]:
    """Read a file with the Read tool. The file counts as read if it is sent."""
    context = agent.tool_context
    place, name = context.fork(), context.show_path(path)
    outcome = await READ.run({"file_path": str(path)}, place)
    shown = text_of(outcome.content)
    if outcome.is_error:
        return f"{name} is not sent: {shown}", None
    block = Text(text=f"[File {name}, named in the message above]\n{shown}\n[End of {name}]")
    if (size := tokens_of((block,))) > room:
        return f"{name} is not sent: {tokens(size)} tokens; the model can read parts of it", None
    if seen := place.files.of(path):
        context.files.record(seen)
    return f"{name} is attached, {tokens(size)} tokens", block
