"""`@path` in a message: images go with it, other files are named for the model to read."""

import re
from pathlib import Path

from holdfast.messages import Block, Content, Text
from holdfast.tools.images import image_block, media_type_of, why_not_shown

_MENTION = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))')
HEAD_BYTES = 32
"""Enough to tell an image by."""


def with_images(text: str, directory: Path) -> tuple[str | Content, list[str]]:
    """Return a message with the images it mentions, and a line for each that cannot be sent."""
    images: list[Block] = []
    problems: list[str] = []
    for found in _MENTION.finditer(text):
        path = directory / Path(found[1] or found[2]).expanduser()
        try:
            with path.open("rb") as file:
                if not media_type_of(file.read(HEAD_BYTES)):
                    continue
            content = path.read_bytes()
        except (OSError, ValueError):
            continue
        if why := why_not_shown(content):
            problems.append(f"{path.name} is not sent as an image: {why}")
        else:
            images.append(image_block(content))
    return ((Text(text=text), *images) if images else text), problems
