"""One tool call with everything a decision needs: its paths, its command, its address.

The disk is looked at here, through `places`, so that the decision can be pure. For a command
line, every word that may be a path is located, wherever a `cd` may have led before it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.messages import JsonObject
from holdfast.tools.permissions.danger import Danger, find_danger
from holdfast.tools.permissions.inner import is_opaque, program
from holdfast.tools.permissions.places import (
    Located,
    Places,
    is_below,
    locate,
    locate_glob,
)
from holdfast.tools.permissions.readonly import is_read_only_script
from holdfast.tools.permissions.repositories import Suspicion, suspect
from holdfast.tools.permissions.script import Command, Redirect, Script, Word, names
from holdfast.tools.permissions.shell import read_script
from holdfast.tools.process import find_program
from holdfast.tools.protocol import Tool, ToolKind

_TEXT_ONLY = names("echo printf true false tr seq expr basename dirname sleep : type which")
"""Their operands are text, never files that are opened; a glob still lists names."""

_PATTERN_FIRST = names("grep egrep fgrep rg")
_DELIMITED = names("cut sort column paste")
_DELIMITER = re.compile(
    r"-[A-Za-z]*[dts].|--(field-separator|delimiter|output-delimiter|separator)=."
)
_LEAVES = re.compile(r"[/~]|.*\.\.", re.DOTALL)
"""A pattern that may lead out of the directory it counts from."""
_GIVES_PATTERN = re.compile(r"-[^-]*[ef]|--[rf]")
_UNSEEN = names(
    "xargs parallel cpio rsync tar bash sh dash zsh ksh fish eval source . ssh su watch trap script"
)
"""They take names from their input, or run a text of their own."""

MAX_BASES = 20
"""Each `cd` can double the directories in which the rest may run; nobody writes as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReach:
    touched: tuple[Located, ...]
    """Words that may be paths; whether they are written depends on the command."""
    written: tuple[Located, ...]
    """Targets of redirections."""
    bases: tuple[Path, ...]
    """Every directory in which some part of it may run."""
    is_unseen: bool
    """Some paths will be known to the shell only."""


def find_reach(script: Script, places: Places) -> CommandReach:
    bases = [places.cwd]
    touched: list[Located] = []
    written: list[Located] = []
    unseen = bool(script.doubts)
    for command in script.commands:
        unseen = unseen or program(command.name) in _UNSEEN
        for word in _candidates(command):
            for base in bases:
                touched.extend(_located(word, places, base))
        for redirect in command.redirects:
            if _names_no_file(redirect):
                continue
            found = [at for base in bases for at in _located(redirect.target, places, base)]
            (written if ">" in redirect.operator else touched).extend(found)
        moved = _moved(command, places, bases)
        unseen = unseen or moved is None
        bases = list(dict.fromkeys((*bases, *(moved or ()))))
        unseen = unseen or len(bases) > MAX_BASES
        del bases[MAX_BASES:]
    return CommandReach(
        touched=tuple(touched), written=tuple(written), bases=tuple(bases), is_unseen=unseen
    )


def _names_no_file(redirect: Redirect) -> bool:
    """Return whether a redirection takes a text, joins streams or discards output."""
    text = redirect.target.text
    return redirect.operator == "<<<" or redirect.joins_streams or text == "/dev/null"


def _moved(command: Command, places: Places, bases: list[Path]) -> list[Path] | None:
    """Return the directories a `cd` may lead to, or None if that cannot be known."""
    if command.name not in ("cd", "pushd", "popd"):
        return []
    words = [word for word in command.words[1:] if word.text not in ("--", "-P", "-L")]
    if command.name == "popd" or len(words) > 1 or (words and words[0].text.startswith("-")):
        return None
    if words and (not words[0].is_literal or words[0].has_glob):
        return None
    target = words[0].text if words else "~"
    found = (locate(target, places, base=base).path for base in bases)
    return [path for path in found if path is not None]


def _located(word: Word, places: Places, base: Path) -> tuple[Located, ...]:
    if not word.is_literal or (word.has_glob and word.is_quoted):
        return (Located(text=word.text, where="unclear"),)
    if word.has_glob:
        return locate_glob(word.text, places, base=base)
    found = [locate(word.text, places, base=base)]
    if word.is_quoted and word.text.startswith("~"):
        found.append(locate("./" + word.text, places, base=base))
    return tuple(found)


def _candidates(command: Command) -> Iterator[Word]:
    """Yield the words, or the parts of words, that may name a file."""
    words = list(command.words[1:])
    if command.name in _TEXT_ONLY:
        words = [word for word in words if word.has_glob]
    if command.name in _PATTERN_FIRST and not any(_GIVES_PATTERN.match(w.text) for w in words):
        words = _without_pattern(words)
    if "/" in command.name:
        yield command.words[0]
    is_ended = False
    for word in words:
        is_ended = is_ended or word.text == "--"
        if word.text in ("", "-", "--") or (command.name == "find" and word.text in "(!),;+{}"):
            continue
        is_option = word.text.startswith("-") and not is_ended
        if is_option and command.name in _DELIMITED and _DELIMITER.fullmatch(word.text):
            continue
        # a file can have the name of an option, and be meant: on some systems behind any other
        yield from _with_parts(word)
        if is_option:
            yield from _option_value(word)


def _without_pattern(words: list[Word]) -> list[Word]:
    """Leave out the first operand, unless the shell could make several words of it."""
    for index, word in enumerate(words):
        if word.text in ("-", "--") or not word.text.startswith("-"):
            at = index + 1 if word.text == "--" else index
            is_pattern = at < len(words) and not words[at].has_glob
            return [*words[:at], *words[at + 1 :]] if is_pattern else words
    return words


def _with_parts(word: Word) -> Iterator[Word]:
    """Yield an operand, and what in it follows a mark that often stands before a path."""
    yield word
    for found in re.finditer(r"[=@:,](?=/|~|\.\.)", word.text):
        yield replace(word, text=word.text[found.end() :], is_quoted=False)


def _option_value(word: Word) -> Iterator[Word]:
    """Yield what may be a value glued to an option."""
    values = {word.text[2:]} if not word.text.startswith("--") else set()
    values |= {found[1] for found in re.finditer(r"(?:=|(?=[/~]|\.\.))(.+)", word.text, re.S)}
    for value in sorted(values - {""}):
        yield from _with_parts(replace(word, text=value, is_quoted=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCall:
    text: str
    script: Script
    reach: CommandReach
    danger: Danger | None
    is_read_only: bool
    objection: str
    """Why a part of it that looks harmless may not be so here; '' if nothing speaks against it."""
    is_opaque: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    tool: str
    kind: ToolKind
    paths: tuple[Located, ...] = ()
    shell: ShellCall | None = None
    has_command: bool = False
    """Whether the tool takes a command line, given or not."""
    url: str = ""
    to: str = ""
    """Whom a message is for."""
    is_read_only: bool = False


def examine(tool: Tool, given: JsonObject, places: Places) -> ToolCall:
    command = given.get(tool.command_input) if tool.command_input else None
    return ToolCall(
        tool=tool.name,
        kind=tool.kind,
        paths=tuple(_paths(tool, given, places)),
        shell=_examine_shell(command, places) if isinstance(command, str) else None,
        has_command=bool(tool.command_input),
        url=str(given.get("url", "")),
        to=str(given.get("to", "")),
        is_read_only=tool.is_read_only(given),
    )


def _paths(tool: Tool, given: JsonObject, places: Places) -> Iterator[Located]:
    named = [given[key] for key in tool.path_inputs if given.get(key) not in (None, "")]
    for value in named:
        for text in value if isinstance(value, list) else [value]:
            is_path = isinstance(text, str)
            yield locate(text, places) if is_path else Located(text=str(text), where="unclear")
    if tool.kind == "search" and not named:
        yield locate(".", places)
    pattern = given.get("pattern")
    if tool.name == "Glob" and isinstance(pattern, str) and _LEAVES.match(pattern):
        yield from locate_glob(pattern, places)


def _examine_shell(text: str, places: Places) -> ShellCall:
    script = read_script(text)
    reach = find_reach(script, places)
    found = _suspicion(script, reach, places)
    trap = Danger(level="risk", reason=found.reason) if found and found.is_trap else None
    objection = found.reason if found else _objection(script, reach, places)
    return ShellCall(
        text=text,
        script=script,
        reach=reach,
        danger=find_danger(script, text) or trap,
        is_read_only=is_read_only_script(script) and not objection,
        objection=objection,
        is_opaque=is_opaque(script),
    )


def _suspicion(script: Script, reach: CommandReach, places: Places) -> Suspicion | None:
    """Look at the repositories in which git would run."""
    runs = [command for command in script.commands if program(command.name) == "git"]
    if not any(command.arguments[:1] != ("--version",) for command in runs):
        return None
    verbs = frozenset(text for command in runs for text in command.arguments)
    found = (suspect(base, verbs, places) for base in dict.fromkeys(reach.bases))
    return next((each for each in found if each is not None), None)


def _is_projects(name: str, places: Places) -> bool:
    """Return whether the shell would find a program, or a link to one, in the working directories."""
    found = find_program(name)
    return found is not None and any(
        is_below(path, places.roots)
        for path in (Path(found).resolve(), Path(found).parent.resolve())
    )


def _objection(script: Script, reach: CommandReach, places: Places) -> str:
    """Return what on the disk makes a command other than it looks."""
    for command in script.commands:
        if command.name and "/" not in command.name and _is_projects(command.name, places):
            return f"{command.name} is a program of the project"
        if command.name == "diff" and any(at.path and at.path.is_dir() for at in reach.touched):
            return "diff follows the links in a directory"
    return ""
