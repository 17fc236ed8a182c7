"""Finds the paths a shell command would touch, as far as its words tell.

A script comes in; the located paths go out, read and written apart. Every word that could
be a path is taken for one, with `cd` followed along the way; what only the shell will know
makes the reach `unseen`. Too many paths cost a question, a missed one would cost the fence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.tools.permissions.inner import program
from holdfast.tools.permissions.places import Located, Places, locate, locate_glob
from holdfast.tools.permissions.script import Command, Redirect, Script, Word, names

_TEXT_ONLY = names("echo printf true false tr seq expr basename dirname date sleep : type which")
"""Their operands are text, never files that are opened."""

_PATTERN_FIRST = names("grep egrep fgrep rg")
_DELIMITED = names("cut sort column paste")
_GIVES_PATTERN = re.compile(r"-[A-Za-z0-9]*[ef]|--[rf]")
_UNSEEN = names(
    "xargs parallel cpio rsync tar bash sh dash zsh ksh fish eval source . ssh su watch trap script"
)
"""They take names from their input, or run a text of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReach:
    """Which files a command line names."""

    touched: tuple[Located, ...]
    """Words that may be paths; whether they are written depends on the command."""
    written: tuple[Located, ...]
    """Targets of redirections."""
    bases: tuple[Path, ...]
    """Every directory in which some part of it may run."""
    is_unseen: bool
    """Some paths will be known to the shell only."""


def find_reach(script: Script, places: Places) -> CommandReach:
    """Locate every path in a command line."""
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
        bases.extend(moved or ())
    return CommandReach(
        touched=tuple(touched), written=tuple(written), bases=tuple(bases), is_unseen=unseen
    )


def _names_no_file(redirect: Redirect) -> bool:
    """Say whether a redirection takes a text, joins streams or throws output away."""
    text = redirect.target.text
    joins = redirect.operator in (">&", "<&") and (text.isdecimal() or text == "-")
    return redirect.operator == "<<<" or joins or text == "/dev/null"


def _moved(command: Command, places: Places, bases: list[Path]) -> list[Path] | None:
    """Give the directories a `cd` may lead to, or None where that cannot be known."""
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
    if not word.is_literal:
        return (Located(text=word.text, where="unclear"),)
    if word.has_glob:
        return locate_glob(word.text, places, base=base)
    found = [locate(word.text, places, base=base)]
    if word.is_quoted and word.text.startswith("~"):
        found.append(locate("./" + word.text, places, base=base))
    return tuple(found)


def _candidates(command: Command) -> Iterator[Word]:
    """Yield the words, or the parts of words, that may name a file."""
    if command.name in _TEXT_ONLY:
        return
    words = list(command.words[1:])
    if command.name in _PATTERN_FIRST and not any(_GIVES_PATTERN.match(w.text) for w in words):
        first = next((w for w in words if not w.text.startswith("-")), None)
        words = [w for w in words if w is not first]
    if "/" in command.name:
        yield command.words[0]
    for word in words:
        if word.text in ("", "-", "--") or (command.name == "find" and word.text in "(!),;+{}"):
            continue
        if not word.text.startswith("-"):
            yield from _with_parts(word)
        elif command.name not in _DELIMITED:
            yield from _option_value(word)


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
