"""The stages of every session, in the order of the path: spill, snip, clear, collapse, compact.

Each exists to keep the next, dearer one from firing. A session of a program's own loop has all of
them; an agent puts in its tools, its hooks and its frame. What a session switches off by its
settings stays in the row and does nothing.
"""

from dataclasses import dataclass, field

from holdfast.stages.clear.clear import Clearing
from holdfast.stages.collapse.collapse import collapse
from holdfast.stages.compact.compact import Compaction
from holdfast.stages.compact.from_notes import FromNotes
from holdfast.stages.notes.notes import Notes
from holdfast.stages.snip import Snip
from holdfast.stages.spill.spill import Spill
from holdfast.turn.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardStages:
    """One session's stages; each keeps what it has counted so far."""

    spill: Spill = field(default_factory=Spill)
    snip: Snip = field(default_factory=Snip)
    clear: Clearing = field(default_factory=Clearing)
    compact: Compaction = field(default_factory=Compaction)
    notes: Notes = field(default_factory=Notes)

    def attach(self, engine: Engine) -> None:
        """Let them run before each of an engine's calls, behind the stages that are there."""
        self.spill.attach(engine)
        engine.stages = (*engine.stages, self.snip)
        self.clear.attach(engine)
        engine.stages = (*engine.stages, collapse)
        self.compact.attach(engine)
        self.notes.attach(engine)
        self.compact.notes = FromNotes(self.notes)
        self.notes.updated = self.compact.make_ready

    def close(self) -> None:
        """Stop what they do in the background."""
        self.notes.close()
        self.compact.close()
