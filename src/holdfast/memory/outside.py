"""Whether a session took in text that strangers may have written.

Entries come in as they are recorded; what goes out is the first way by which such text came: a
fetched page, a tool of an MCP server, a command that downloads. From then on what the session
wants to remember waits for the user, since somebody else may have put it there.
"""

from collections.abc import Sequence
from pathlib import Path

from holdfast.entries import AnyEntry, Ran, Replied
from holdfast.errors import HoldfastError
from holdfast.log import load
from holdfast.messages import ToolUse
from holdfast.permissions.inner import every_command, program
from holdfast.permissions.script import names
from holdfast.permissions.shell import read_script
from holdfast.tools.describe import description_of

SERVED = "mcp__"
"""How the tools of MCP servers are called; which of them can be trusted, nobody knows."""
DOWNLOADERS = names(
    "curl wget http https httpie xh aria2c lynx w3m links elinks ftp sftp scp rsync ssh nc ncat"
    " netcat telnet socat gh glab aws gcloud az kubectl"
)
"""Programs whose output comes from another machine."""


class Outside:
    """Follows a session's entries."""

    def __init__(self) -> None:
        self.by = ""
        """By which tool such text came first; nothing if none did."""
        self._seen = 0
        self._open: dict[str, str] = {}
        """Calls that bring such text, by id, until their result is there."""

    def follow(self, history: Sequence[AnyEntry]) -> str:
        """Look at what is new; say by which tool text came from outside."""
        for entry in history[self._seen :]:
            if isinstance(entry, Replied):
                uses = (block for block in entry.content if isinstance(block, ToolUse))
                self._open |= {use.id: use.name for use in uses if reaches_out(use)}
            elif isinstance(entry, Ran):
                name = self._open.pop(entry.tool_use_id, "")
                self.by = self.by or name  # an error's text may be a stranger's too
        self._seen = len(history)
        return self.by


def reaches_out(use: ToolUse) -> bool:
    """Say whether a call brings text from another machine."""
    if use.name.startswith(SERVED):
        return True
    known = description_of(use.name)
    if known.kind == "fetch":
        return True
    command = use.input.get(known.command_input) if known.command_input else None
    if not isinstance(command, str):
        return False
    return any(program(one.name) in DOWNLOADERS for one in every_command(read_script(command)))


def outside_below(directory: Path) -> bool:
    """Say whether an agent whose log lies in a directory took in such text; a damaged log may have."""
    for path in sorted(directory.glob("*.jsonl")):
        try:
            if Outside().follow(load(path).entries):
                return True
        except (HoldfastError, OSError):
            return True
    return False
