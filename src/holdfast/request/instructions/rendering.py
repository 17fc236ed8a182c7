"""Renders instructions as one hidden message, each file in a tag of its own.

Also the sources that the log keeps, and the fields passed to hooks. The surrounding text is in
`prompts/`.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias
from xml.sax.saxutils import quoteattr

from holdfast.log.entries import Source
from holdfast.messages import JsonObject
from holdfast.messages.measure import measure_text
from holdfast.request.instructions.gathering import InstructionPart
from holdfast.request.instructions.places import SourceKind

LoadReason: TypeAlias = Literal["startup", "nested", "compact", "changed"]

_LOAD_REASONS: dict[LoadReason, str] = {
    "startup": "session_start",
    "nested": "nested_traversal",
    "compact": "compact",
    "changed": "session_start",
}
"""Names that hooks written for other programs expect."""

_FROM: dict[SourceKind, str] = {
    "user": "the user, for every project",
    "project": "the project",
    "local": "the user, for this project",
}


def said(
    parts: tuple[InstructionPart, ...],
    when: Literal["start", "nested", "changed"],
    gone: Sequence[str] = (),
) -> str:
    """Return the message with these instructions and files that are gone, or "" if there are none."""
    if not parts and not gone:
        return ""
    intro = (files("holdfast.request.instructions") / "prompts" / f"{when}.md").read_text(
        encoding="utf-8"
    )
    missing = (f"{_readable(file)} is gone: its instructions no longer hold." for file in gone)
    inner = "\n\n".join((intro.strip(), *map(_tagged, parts), *missing))
    return f"<reminder>\n{inner}\n</reminder>"


def sources(parts: tuple[InstructionPart, ...]) -> tuple[Source, ...]:
    return tuple(map(source_of, parts))


def source_of(part: InstructionPart) -> Source:
    text = _tagged(part)
    return Source(
        file=str(part.path),
        kind=part.kind,
        measure=measure_text(text),
        digest=blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
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
    name = quoteattr(_readable(str(part.path)))
    return f"<instructions file={name} from={quoteattr(_FROM[part.kind])}>\n{text}\n</instructions>"


def _readable(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()
