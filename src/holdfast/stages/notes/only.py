"""Permission for a fork to change the notes draft and nothing else.

A call passes if it is Edit or Write on exactly that path, and the file is a plain one: no symlink
and no hard link. The tool then gets our path, not the model's.
"""

import os
import stat
from pathlib import Path

from holdfast.messages import ToolUse
from holdfast.tools.protocol import Tool
from holdfast.turn.fork import Permit
from holdfast.turn.round import Allowed, Denied

TOOLS = ("Edit", "Write")
PATH = "file_path"


def only(file: Path) -> Permit:
    refusal = f"Only Edit and Write on {file} are possible here. Change that file, or stop."

    async def permit(use: ToolUse, tool: Tool) -> Allowed | Denied:
        given = use.input.get(PATH)
        is_meant = (
            use.name == tool.name
            and tool.name in TOOLS
            and tool.kind == "write"
            and isinstance(given, str)
            and _names(given, file)
        )
        if not is_meant:
            return Denied(reason=refusal)
        if not is_plain(file):
            return Denied(reason=f"{file} is not the file it was. Stop here.")
        return Allowed(input={**use.input, PATH: str(file)})

    return permit


def _names(path: str, file: Path) -> bool:
    return Path(path).is_absolute() and os.path.normpath(path) == str(file)


def is_plain(file: Path) -> bool:
    """True if a path leads, without links, to a file that has no other name."""
    try:
        found = file.lstat()
        return (
            stat.S_ISREG(found.st_mode)
            and found.st_nlink == 1
            and file.parent.resolve() / file.name == file.resolve()
        )
    except OSError:
        return False
