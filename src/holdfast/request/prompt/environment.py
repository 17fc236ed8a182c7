"""Where a session runs, for its system prompt.

Clock and repository are read here and nowhere else in a prompt, once, when the frame is made, so
that nothing of them can move while the session lasts.
"""

import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.log.entries import Section
from holdfast.request.prompt.repository import Repository, look_at_repository
from holdfast.settings import PromptSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the dynamic sections are made of."""

    directory: Path
    platform: str
    shell: str
    date: str
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


async def look_around(
    directory: Path,
    settings: PromptSettings,
    *,
    tools: tuple[str, ...] = (),
    skills: str = "",
    memory: str = "",
    scratchpad: Path | None = None,
    more: tuple[Section, ...] = (),
    clock: Callable[[], float] = time.time,
) -> Environment:
    """Read the machine, the clock and the repository."""
    return Environment(
        directory=directory,
        platform=f"{platform.system()} {platform.release()}".strip(),
        shell=shutil.which("bash") or "/bin/sh",
        date=time.strftime("%Y-%m-%d", time.localtime(clock())),
        repository=await look_at_repository(directory, settings),
        tools=tools,
        skills=skills,
        memory=memory,
        language=settings.language,
        scratchpad=scratchpad,
        more=more,
    )
