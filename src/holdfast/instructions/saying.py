"""Instructions as the model reads them: one hidden message, each file in a frame of its own.

Parts come in; a text goes out, and the sources that the log keeps with it. What comes around
the files is in `prompts/`.
"""

import re
from importlib.resources import files
from typing import Literal, TypeAlias
from xml.sax.saxutils import quoteattr

from holdfast.entries import Source
from holdfast.instructions.gathering import Part
from holdfast.instructions.places import Kind
from holdfast.measure import measure_text

When: TypeAlias = Literal["start", "nested"]

_FROM: dict[Kind, str] = {
    "user": "the user, for every project",
    "project": "the project",
    "local": "the user, for this project",
}


def said(parts: tuple[Part, ...], when: When) -> str:
    """Write the message that brings instructions; nothing if there are none."""
    if not parts:
        return ""
    intro = (files("holdfast.instructions") / "prompts" / f"{when}.md").read_text(encoding="utf-8")
    return "\n\n".join((intro.strip(), *map(_framed, parts)))


def sources(parts: tuple[Part, ...]) -> tuple[Source, ...]:
    """Say what each file weighs."""
    return tuple(
        Source(file=str(part.path), kind=part.kind, measure=measure_text(_framed(part)))
        for part in parts
    )


def _framed(part: Part) -> str:
    """Put a file into its frame; it cannot close the frame itself and speak for another."""
    text = re.sub(r"<(?=/?\s*instructions\b)", "&lt;", part.text, flags=re.IGNORECASE)
    name = str(part.path).encode("utf-8", "backslashreplace").decode()
    return (
        f"<instructions file={quoteattr(name)} from={quoteattr(_FROM[part.kind])}>\n"
        f"{text}\n</instructions>"
    )
