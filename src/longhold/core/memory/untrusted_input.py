"""Detect whether a session read text that a stranger may have written.

Sources are fetched pages, MCP tools, commands that download, undeclared tools, imported logs, and
mail from a session that read such text. In a checkout whose settings are not trusted, the prompt
itself is such text. Afterwards new memories wait for the user's consent, because the text may have
asked for them. All code that writes memories checks `watch_session`.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Configured, Imported, Ran, Replied, Said, ToolTraits
from longhold.core.log.protocol import AgentLog
from longhold.core.messages import ToolUse
from longhold.core.tools.describe import KNOWN, UNKNOWN, Described, describe_kind
from longhold.core.tools.protocol import unwrap_call
from longhold.core.tools.shell_programs import every_command, is_opaque, program
from longhold.core.tools.shell_reader import Command, read_script, split_words
from longhold.core.turn.engine import Engine
from longhold.errors import LongholdError

SERVED = "mcp__"
"""The prefix of MCP tools, none of which is trusted."""
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
"""Programs that reach another machine only with these subcommands."""
_VALUED = split_words("-C -c --git-dir --work-tree --namespace --config --prefix --context -H")
"""Options before a subcommand that take a value."""
_SOCKETS = ("/dev/tcp/", "/dev/udp/")
_INTERPRETER = re.compile(r"(?:python|pypy|node|deno|bun|ruby|perl|php|lua)[\d.]*")
_NETWORK = re.compile(
    r"urlopen|urllib|urlretrieve|requests\b|httpx|aiohttp|http\.client|socket|fetch\(|https?://"
    r"|open-uri|Net::|LWP|IO::Socket|fsockopen|curl_"
)

OWN = split_words(
    "Agent AgentStop CallTool SendMessage TaskClaim TaskCreate TaskGet TaskList TaskUpdate ToolSearch"
    " memory"
)
"""Longhold's tools that have no description by name. The logs of agents show their reads."""


class UntrustedInput:
    def __init__(self) -> None:
        self.by = ""
        """The first source of such text, or ''."""
        self._position = LogCursor()
        self._open: dict[str, str] = {}
        self._declared: dict[str, ToolTraits] = {}

    def follow(self, history: Sequence[AnyEntry]) -> str:
        """Read new entries. Return the tool that brought untrusted text, or ''."""
        for entry in self._position.advance(history):
            match entry:
                case Replied(content=content):
                    uses = (block for block in content if isinstance(block, ToolUse))
                    self._open |= {
                        use.id: use.name for use in uses if reaches_out(use, self._declared)
                    }
                case Ran(tool_use_id=id):
                    # Failed calls count too, because a stranger may have written the error's text.
                    self.by = self.by or self._open.pop(id, "")
                case Said(is_outside=True):
                    self.by = self.by or "mail"
                case Imported(format=format):
                    self.by = self.by or f"a session of {format}"
                case Configured(tools=tools):
                    self._declared = tools
        return self.by


def _describe(name: str, declared: Mapping[str, ToolTraits]) -> Described:
    """Describe a tool by its declaration or its name. Unknown tools count as fetching."""
    kind = declared[name].kind if name in declared else ""
    if kind and kind != "other":
        return describe_kind(kind)
    return KNOWN.get(name) or (UNKNOWN if name in OWN else describe_kind("fetch"))


def reaches_out(use: ToolUse, declared: Mapping[str, ToolTraits] = MappingProxyType({})) -> bool:
    """Return whether a call may bring text from another machine."""
    use = unwrap_call(use)
    if use.name.startswith(SERVED):
        return True
    known = _describe(use.name, declared)
    if known.kind == "fetch":
        return True
    command = use.input.get(known.command_input) if known.command_input else None
    if not isinstance(command, str):
        return False
    script = read_script(command)
    if is_opaque(script):
        return True  # the program that it runs cannot be determined
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


def watch_session(engine: Engine, *, is_strict: bool = False) -> Callable[[], bool]:
    """Return a function that reports whether the session or its agents read untrusted text.

    With `is_strict`, the function always returns True, because the checkout is not trusted.
    """
    own = UntrustedInput()
    return lambda: (
        is_strict or bool(own.follow(engine.view.history)) or has_outside(engine.log.agents())
    )


def has_outside(logs: Iterable[AgentLog]) -> bool:
    """Return whether one of these agents read untrusted text. A damaged log counts as untrusted."""
    for log in logs:
        try:
            if UntrustedInput().follow(log.load().entries):
                return True
        except (LongholdError, OSError):
            return True
    return False
