"""Renders instructions as one hidden message, each file in a tag of its own.

Also the sources that the log keeps, and the fields passed to hooks. The surrounding text is in
`prompts/`.
"""

import re
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias
from xml.sax.saxutils import quoteattr

from holdfast.log.entries import Source
from holdfast.messages import JsonObject
from holdfast.messages.measure import measure_text
from holdfast.request.instructions.gathering import InstructionPart
from holdfast.request.instructions.places import SourceKind

LoadReason: TypeAlias = Literal["startup", "nested", "compact"]

_LOAD_REASONS: dict[LoadReason, str] = {
    "startup": "session_start",
    "nested": "nested_traversal",
    "compact": "compact",
}
"""Names that hooks written for other programs expect."""

_FROM: dict[SourceKind, str] = {
    "user": "the user, for every project",
    "project": "the project",
    "local": "the user, for this project",
}


def said(parts: tuple[InstructionPart, ...], when: Literal["start", "nested"]) -> str:
    """Return the message with these instructions, or "" if there are none."""
    if not parts:
        return ""
    intro = (files("holdfast.request.instructions") / "prompts" / f"{when}.md").read_text(
        encoding="utf-8"
    )
    inner = "\n\n".join((intro.strip(), *map(_tagged, parts)))
    return f"<reminder>\n{inner}\n</reminder>"


def sources(parts: tuple[InstructionPart, ...]) -> tuple[Source, ...]:
    return tuple(
        Source(file=str(part.path), kind=part.kind, measure=measure_text(_tagged(part)))
        for part in parts
    )


def loaded_fields(
    part: InstructionPart, reason: LoadReason, touched: Path | None = None
) -> JsonObject:
    """Return a hook's fields for a file whose instructions are loaded."""
    how = _LOAD_REASONS[reason]
    if reason != "compact" and part.imported_by:
        how = "include"
    elif part.is_for_paths:
        how = "path_glob_match"
    return {
        "reason": reason,
        "load_reason": how,
        "file_path": str(part.path),
        "memory_type": part.kind.capitalize(),
        "trigger_file_path": str(touched or ""),
        "parent_file_path": str(part.imported_by or ""),
    }


def _tagged(part: InstructionPart) -> str:
    """Wrap a file in its tag, escaping tags in its text so that it cannot pose as another file."""
    text = re.sub(r"<(?=/?\s*(?:instructions|reminder)\b)", "&lt;", part.text, flags=re.IGNORECASE)
    name = str(part.path).encode("utf-8", "backslashreplace").decode()
    return (
        f"<instructions file={quoteattr(name)} from={quoteattr(_FROM[part.kind])}>\n"
        f"{text}\n</instructions>"
    )
