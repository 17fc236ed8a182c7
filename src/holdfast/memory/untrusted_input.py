"""Whether a session took in text that strangers may have written.

Entries come in as they are recorded; what goes out is the first way by which such text came: a
fetched page, a tool of an MCP server, a command that downloads. From then on what the session
wants to remember waits for the user, since somebody else may have put it there.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.log import load
from holdfast.log.entries import AnyEntry, Ran, Replied
from holdfast.messages import ToolUse
from holdfast.tools.describe import description_of
from holdfast.tools.permissions.inner import every_command, is_opaque, program
from holdfast.tools.permissions.script import Command, names
from holdfast.tools.permissions.shell import read_script

SERVED = "mcp__"
"""How the tools of MCP servers are called; which of them can be trusted, nobody knows."""
DOWNLOADERS = names(
    "curl wget http https httpie xh aria2c lynx w3m links elinks ftp sftp scp rsync ssh nc ncat"
    " netcat telnet socat gh glab aws gcloud az kubectl dig host nslookup drill whois"
)
"""Programs whose output comes from another machine."""
REACHING = {
    "git": names("pull clone fetch ls-remote submodule"),
    **dict.fromkeys(("pip", "pip3", "uv"), names("download index search")),
    **dict.fromkeys(("npm", "pnpm", "yarn"), names("view info show search")),
    **dict.fromkeys(("docker", "podman"), names("pull search")),
    **dict.fromkeys(("cargo", "gem"), names("search info fetch")),
    "openssl": names("s_client"),
}
"""Programs of which only these commands do."""
_VALUED = names("-C -c --git-dir --work-tree --namespace --config --prefix --context -H")
"""Options before a program's command that take the next word with them."""
_SOCKETS = ("/dev/tcp/", "/dev/udp/")
"""What a shell opens as a connection, though it looks like a file."""
_INTERPRETER = re.compile(r"(?:python|pypy|node|deno|bun|ruby|perl|php|lua)[\d.]*")
_NETWORK = re.compile(
    r"urlopen|urllib|urlretrieve|requests\b|httpx|aiohttp|http\.client|socket|fetch\(|https?://"
    r"|open-uri|Net::|LWP|IO::Socket|fsockopen|curl_"
)
"""How a program given to an interpreter speaks to other machines."""


class UntrustedInput:
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
    script = read_script(command)
    if is_opaque(script):
        return True  # nobody can say what it runs
    return any(_reaches(one, command) for one in every_command(script))


def _reaches(command: Command, script: str) -> bool:
    """Say whether one command of a script speaks to another machine."""
    name = program(command.name)
    if name in DOWNLOADERS or _subcommand(command.arguments) in REACHING.get(name, ()):
        return True
    if any(one.target.text.startswith(_SOCKETS) for one in command.redirects):
        return True
    return bool(_INTERPRETER.fullmatch(name) and _NETWORK.search(script))


def _subcommand(arguments: Sequence[str]) -> str:
    """Find the command of a program among its arguments: the first that is no option's."""
    words = iter(arguments)
    for word in words:
        if word in _VALUED:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def outside_below(directory: Path) -> bool:
    """Say whether an agent whose log lies in a directory took in such text; a damaged log may have."""
    for path in sorted(directory.glob("*.jsonl")):
        try:
            if UntrustedInput().follow(load(path).entries):
                return True
        except (HoldfastError, OSError):
            return True
    return False
