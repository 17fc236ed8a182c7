"""Permission rules, such as `Bash(git status:*)`, `Edit(src/**)` or a bare tool name.

An allow rule must cover the whole call. A deny rule applies if it may cover the call. In a path,
`*` and `?` match within one directory and `**` across directories. A pattern without a slash
matches at any depth. A pattern that begins with `/` or `~/` is absolute. Any other pattern is
relative to a working directory. A rule for a directory covers everything in it.
"""

import ipaddress
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import urlsplit

from longhold.agent.permissions.places import Located, Places
from longhold.core.settings import Mode
from longhold.core.tools.shell_programs import program
from longhold.core.tools.shell_reader import Command, read_script
from longhold.errors import ConfigError

_SHAPE = re.compile(r"([A-Za-z_][\w.*-]*)(?:\((.*)\))?", re.S)

_GLOB_PIECE = re.compile(r"\*\*/|\*\*|.", re.S)

READERS = frozenset({"Read", "Grep", "Glob"})
"""A rule for one of these tools covers all of them. The same applies to writing."""
WRITERS = frozenset({"Edit", "Write", "NotebookEdit"})


MODES: dict[str, Mode] = {
    "ask": "ask",
    "default": "ask",
    "accept_edits": "accept_edits",
    "acceptEdits": "accept_edits",
    "plan": "plan",
    "bypass": "bypass",
    "bypassPermissions": "bypass",
}
"""Longhold's names for the modes, and the names in settings files of other agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    tool: str
    content: str = ""
    """The text in parentheses. "" matches every call."""

    @property
    def is_exact(self) -> bool:
        return bool(self.content) and "*" not in self.content

    def __str__(self) -> str:
        return f"{self.tool}({self.content})" if self.content else self.tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


def parse_rule(text: str) -> Rule:
    found = _SHAPE.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{text!r} is not a permission rule; write Tool or Tool(pattern)")
    content = (found[2] or "").strip()
    rule = Rule(tool=found[1], content="" if content in ("*", ":*") else content)
    if (
        rule.tool == "Bash"
        and rule.content
        and not rule.is_exact
        and not _split_rule(rule.content)[0]
    ):
        raise ConfigError(f"{rule} is not a family of commands; write Bash(name word:*)")
    return rule


def parse_rules(*, allow: tuple[str, ...] = (), deny: tuple[str, ...] = ()) -> Rules:
    return Rules(
        allow=tuple(parse_rule(text) for text in allow),
        deny=tuple(parse_rule(text) for text in deny),
    )


def is_for_tool(rule: Rule, tool: str) -> bool:
    if rule.tool.startswith("mcp__"):
        return fnmatchcase(tool, rule.tool) or tool.startswith(rule.tool + "__")
    same_family = any({rule.tool, tool} <= family for family in (READERS, WRITERS))
    return rule.tool == tool or (bool(rule.content) and same_family)


def allows_command(rule: Rule, command: Command) -> bool:
    """Return whether a rule covers one simple command, word by word."""
    if not rule.content:
        return True
    wanted, is_open = _split_rule(rule.content)
    given = tuple(word.text for word in command.words)
    if not wanted or len(given) < len(wanted) or (len(given) > len(wanted) and not is_open):
        return False
    return all(_matches(word, pattern) for word, pattern in zip(given, wanted, strict=False))


def denies_command(rule: Rule, command: Command) -> bool:
    """Return whether a rule may cover a command, in any directory and after any options."""
    if not rule.content:
        return True
    wanted, is_open = _split_rule(rule.content)
    given = [word.text for word in command.words]
    if not wanted or not given or not _same_word(program(given[0]), program(wanted[0])):
        return False
    return _follows(given[1:], list(wanted[1:]), is_open)


def _follows(given: list[str], wanted: list[str], is_open: bool) -> bool:
    reached = _past_options(given, {0})
    for pattern in wanted:
        matched = {at + 1 for at in reached if at < len(given) and _same_word(given[at], pattern)}
        reached = _past_options(given, matched)
    return bool(reached) and (is_open or len(given) in reached)


def _past_options(given: list[str], starts: set[int]) -> set[int]:
    reached = set(starts)
    for at, word in enumerate(given):
        if at in reached and word.startswith("-"):
            reached |= {at + 1, min(at + 2, len(given))}
    return reached


def _same_word(given: str, pattern: str) -> bool:
    return _matches(given.casefold(), pattern.casefold())


def _matches(word: str, pattern: str) -> bool:
    """Match a word. `*` is the only wildcard in commands."""
    return fnmatchcase(word, pattern.replace("[", "[[]").replace("?", "[?]"))


def _split_rule(content: str) -> tuple[tuple[str, ...], bool]:
    is_open = content.endswith((":*", " *"))
    head = content[:-2] if is_open else content
    commands = read_script(head).commands
    return tuple(word.text for word in commands[0].words) if len(commands) == 1 else (), is_open


def allows_path(rule: Rule, located: Located, places: Places) -> bool:
    if not rule.content:
        return False
    roots, path = places.real_roots, located.path
    return path is not None and _covers(rule.content, path, roots, places.home)


def names_path(rule: Rule, located: Located, places: Places) -> bool:
    """Return whether a rule names exactly this path, not a directory above it or a pattern."""
    is_file = rule.is_exact and "?" not in rule.content and bool(Path(rule.content).name)
    if located.path is None or not is_file:
        return False
    return _covers(rule.content, located.path, places.real_roots, places.home, is_whole=True)


def denies_path(rule: Rule, located: Located, places: Places) -> bool:
    """Return whether a rule covers a path as written or resolved, ignoring case."""
    if not rule.content:
        return True
    roots = tuple(Path(str(root).casefold()) for root in places.real_roots)
    spelled = tuple(Path(str(root).casefold()) for root in places.roots)
    home = Path(str(places.home).casefold())
    return any(
        _covers(rule.content.casefold(), Path(str(path).casefold()), roots + spelled, home)
        for path in (located.path, located.spelled)
        if path is not None
    )


def _covers(
    pattern: str, path: Path, roots: tuple[Path, ...], home: Path, *, is_whole: bool = False
) -> bool:
    ends = ("",) if is_whole else ("", "/")
    if pattern.startswith("~/"):
        return _fits(str(home) + pattern[1:], str(path), ends)
    if pattern.startswith("/"):
        return _fits("/" + pattern.lstrip("/"), str(path), ends)
    pattern = pattern.removeprefix("./")
    anywhere = "/" not in pattern.rstrip("/")
    pattern = "**/" + pattern if anywhere else pattern
    return any(
        _fits(pattern, str(path.relative_to(root)), ends)
        for root in roots
        if path.is_relative_to(root)
    )


def _fits(pattern: str, path: str, ends: tuple[str, ...]) -> bool:
    """Match piece by piece, because a regular expression could backtrack forever."""
    reached = {0}
    for piece in _GLOB_PIECE.findall(pattern.rstrip("/")):
        if piece in ("*", "**", "**/"):
            reached = set(_find_star_ends(piece, reached, path))
        else:
            fits = {*path} - {"/"} if piece == "?" else {piece}
            reached = {at + 1 for at in reached if path[at : at + 1] in fits}
    return any(path[at : at + 1] in ends for at in reached)


def _find_star_ends(star: str, reached: set[int], path: str) -> Iterator[int]:
    is_inside = False
    for at in range(min(reached, default=len(path) + 1), len(path) + 1):
        begins, is_slash = at in reached, path[at : at + 1] == "/"
        if begins or (is_inside and (star != "**/" or path[at - 1] == "/")):
            yield at
        goes_on = is_inside and not (star == "*" and is_slash)
        is_inside = goes_on or (begins and not (is_slash and star != "**"))


def allows_url(rule: Rule, url: str) -> bool:
    """Return whether a rule covers a URL whose host is unambiguous."""
    host = plain_host(url)
    if not rule.content:
        return bool(host)
    wanted = rule.content.removeprefix("domain:").casefold()
    return bool(host) and rule.content.startswith("domain:") and fnmatchcase(host, wanted)


def denies_url(rule: Rule, url: str) -> bool:
    """Return whether a rule may cover a URL. Every rule may cover an ambiguous URL."""
    host = plain_host(url)
    written = rule.content.removeprefix("domain:").casefold().strip("[]")
    wanted = _canonical_host(written) or written
    return not rule.content or not host or fnmatchcase(host, wanted) or host.endswith("." + wanted)


def plain_host(url: str) -> str:
    """Return the host of a web URL, or "" if parsers could disagree on it."""
    if not url.isascii() or not url.isprintable() or any(c in url for c in "\\ \"'<>^`{|}"):
        return ""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".").casefold()
        _ = parts.port
    except ValueError:
        return ""
    well_formed = parts.scheme in ("http", "https") and "@" not in parts.netloc and "%" not in host
    return _canonical_host(host) if well_formed else ""


def _canonical_host(host: str) -> str:
    """Return an address in its usual spelling, and "" for one that only some parsers read."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            socket.inet_aton(host)  # which also reads 127.1, 0x7f000001 and 2130706433
        except OSError:
            return host
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
