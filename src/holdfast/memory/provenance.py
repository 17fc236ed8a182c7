"""What a memory rests on, noted when it is written: where it was said, and the files it names.

A change comes in and leaves with evidence and sources in its head. Whoever writes a memory, a
model or an extraction, need not think of either; recall and dreams go by them.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.memory.commits import MemoryChange
from holdfast.memory.memory import Memory, parse
from holdfast.memory.sources import source_hash

SOURCES = 8
"""A memory that names more files is about the project, not about them."""

_FILE = re.compile(r"(?<![\w./~-])[\w@+-][\w.@+-]*(?:/[\w.@+-]+)*\.\w{1,8}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Where memories come from just now."""

    session: str
    message: int
    """The last thing the user said."""
    repository: Path

    def on(self, change: MemoryChange) -> MemoryChange:
        """Note what a memory rests on; a removal has nothing to note."""
        if change.text is None:
            return change
        memory = parse(change.file, change.text)
        evidence = dict.fromkeys((*memory.evidence, f"{self.session}#{self.message}"))
        sources = sources_of(memory, self.repository)
        sealed = replace(memory, evidence=tuple(evidence), sources=sources)
        return replace(change, text=sealed.text)


def sources_of(memory: Memory, repository: Path) -> dict[str, str]:
    """Find the files of the repository that a memory names, as they are now."""
    named = dict.fromkeys(_FILE.findall(f"{memory.description}\n{memory.body}"))
    found = {path: source_hash(repository, path) for path in named}
    kept = {path: told for path, told in found.items() if told}
    return dict(list(kept.items())[:SOURCES])
