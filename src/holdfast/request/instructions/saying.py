"""Instructions as the model reads them: one hidden message, each file in a frame of its own.

Parts come in; a text goes out, with the sources that the log keeps and the fields that hooks
are told. What comes around the files is in `prompts/`.
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

When: TypeAlias = Literal["start", "nested"]
LoadReason: TypeAlias = Literal["startup", "nested", "compact"]

_LOAD_REASONS: dict[LoadReason, str] = {
    "startup": "session_start",
    "nested": "nested_traversal",
    "compact": "compact",
}
"""As hooks written for other programs expect them."""

_FROM: dict[SourceKind, str] = {
    "user": "the user, for every project",
    "project": "the project",
    "local": "the user, for this project",
}


def said(parts: tuple[InstructionPart, ...], when: When) -> str:
    """Write the message that brings instructions; nothing if there are none."""
    if not parts:
        return ""
    intro = (files("holdfast.request.instructions") / "prompts" / f"{when}.md").read_text(
        encoding="utf-8"
    )
    inner = "\n\n".join((intro.strip(), *map(_framed, parts)))
    return f"<reminder>\n{inner}\n</reminder>"


def sources(parts: tuple[InstructionPart, ...]) -> tuple[Source, ...]:
    """Say what each file weighs."""
    return tuple(
        Source(file=str(part.path), kind=part.kind, measure=measure_text(_framed(part)))
        for part in parts
    )


def loaded_fields(
    part: InstructionPart, reason: LoadReason, touched: Path | None = None
) -> JsonObject:
    """Write what a hook is told when a file's instructions come before the model."""
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


def _framed(part: InstructionPart) -> str:
    """Put a file into its frame; it cannot close the frame itself and speak for another."""
    text = re.sub(r"<(?=/?\s*(?:instructions|reminder)\b)", "&lt;", part.text, flags=re.IGNORECASE)
    name = str(part.path).encode("utf-8", "backslashreplace").decode()
    return (
        f"<instructions file={quoteattr(name)} from={quoteattr(_FROM[part.kind])}>\n"
        f"{text}\n</instructions>"
    )
