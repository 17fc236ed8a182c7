"""What a session's prompt says of where it runs: looked at once, when the frame is made.

A directory comes in, `Environment` go out. Clock and repository are looked at here and
nowhere else in a prompt, so that nothing of them can move while the session lasts.
"""

import platform
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.log.entries import Section
from holdfast.request.prompt.repository import look_at_repository
from holdfast.request.prompt.sections import Environment
from holdfast.settings import PromptSettings


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
    """Look at the machine, the clock and the repository."""
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
