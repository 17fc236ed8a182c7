"""Detect whether a session read text that a stranger may have written.

Sources are fetched pages, MCP tools and commands that download. After that, new memories wait for
the user's consent, because the text may have asked for them.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Ran, Replied
from longhold.core.log.protocol import AgentLog
from longhold.core.messages import ToolUse
from longhold.core.tools.describe import description_of
from longhold.core.tools.protocol import unwrap_call
from longhold.core.tools.shell_programs import every_command, is_opaque, program
from longhold.core.tools.shell_reader import Command, read_script, split_words
from longhold.core.turn.engine import Engine
from longhold.errors import LongholdError

SERVED = "mcp__"
"""The prefix of MCP tools. None of them is known to be trustworthy."""
DOWNLOADERS = split_words(
    "curl wget http https httpie xh aria2c lynx w3m links elinks ftp sftp scp rsync ssh nc ncat"
    " netcat telnet socat gh glab aws gcloud az kubectl dig host nslookup drill whois"
)
"""Programs whose output comes from another machine."""
REACHING = {
    "git": split_words("pull clone fetch ls-remote submodule"),
    **dict.fromkeys(("pip", "pip3", "uv"), split_words("download index search")),
    **dict.fromkeys(("npm", "pnpm", "yarn"), split_words("view info show search")),
    **dict.fromkeys(("docker", "podman"), split_words("pull search")),
    **dict.fromkeys(("cargo", "gem"), split_words("search info fetch")),
    "openssl": split_words("s_client"),
}
"""Programs of which only these subcommands reach another machine."""
_VALUED = split_words("-C -c --git-dir --work-tree --namespace --config --prefix --context -H")
"""Options before a subcommand that take a value."""
_SOCKETS = ("/dev/tcp/", "/dev/udp/")
_INTERPRETER = re.compile(r"(?:python|pypy|node|deno|bun|ruby|perl|php|lua)[\d.]*")
_NETWORK = re.compile(
    r"urlopen|urllib|urlretrieve|requests\b|httpx|aiohttp|http\.client|socket|fetch\(|https?://"
    r"|open-uri|Net::|LWP|IO::Socket|fsockopen|curl_"
)


class UntrustedInput:
    def __init__(self) -> None:
        self.by = ""
        """The tool that first brought such text; '' if none did."""
        self._position = LogCursor()
        self._open: dict[str, str] = {}

    def follow(self, history: Sequence[AnyEntry]) -> str:
        """Read new entries; return the tool that brought untrusted text, or ''."""
        for entry in self._position.advance(history):
            if isinstance(entry, Replied):
                uses = (block for block in entry.content if isinstance(block, ToolUse))
                self._open |= {use.id: use.name for use in uses if reaches_out(use)}
            elif isinstance(entry, Ran):
                # Also after a failure, because an error's text may come from a stranger.
                self.by = self.by or self._open.pop(entry.tool_use_id, "")
        return self.by


def reaches_out(use: ToolUse) -> bool:
    """Return whether a call brings text from another machine."""
    use = unwrap_call(use)
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
        return True  # what it runs cannot be known
    return any(_reaches(one, command) for one in every_command(script))


def _reaches(command: Command, script: str) -> bool:
    name = program(command.name)
    if name in DOWNLOADERS or _subcommand(command.arguments) in REACHING.get(name, ()):
        return True
    if any(one.target.text.startswith(_SOCKETS) for one in command.redirects):
        return True
    return bool(_INTERPRETER.fullmatch(name) and _NETWORK.search(script))


def _subcommand(arguments: Sequence[str]) -> str:
    words = iter(arguments)
    for word in words:
        if word in _VALUED:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def watch_session(engine: Engine) -> Callable[[], bool]:
    """Return a function that reports whether the session or its agents read such text."""
    own = UntrustedInput()
    return lambda: bool(own.follow(engine.view.history)) or has_outside(engine.log.agents())


def has_outside(logs: Iterable[AgentLog]) -> bool:
    """Return whether one of these agents read such text. A damaged log counts as yes."""
    for log in logs:
        try:
            if UntrustedInput().follow(log.load().entries):
                return True
        except (LongholdError, OSError):
            return True
    return False
