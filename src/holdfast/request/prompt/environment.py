"""Where a session runs, for its system prompt.

It is read once, when the frame is made, so that nothing of it can move while the session lasts.
"""

import platform
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.log.entries import Section
from holdfast.request.prompt.repository import Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the dynamic sections are made of."""

    directory: Path
    date: str
    platform: str = field(
        default_factory=lambda: f"{platform.system()} {platform.release()}".strip()
    )
    shell: str = field(default_factory=lambda: shutil.which("bash") or "/bin/sh")
    repository: Repository | None = None
    tools: tuple[str, ...] = ()
    """Names of the tools; some have a line of guidance."""
    skills: str = ""
    """The listing of skills."""
    memory: str = ""
    """The memory section, as `memory_text` renders it."""
    language: str = ""
    scratchpad: Path | None = None
    more: tuple[Section, ...] = ()
    """Sections of other layers, placed last."""
