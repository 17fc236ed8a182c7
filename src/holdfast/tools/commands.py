"""Command lines that surely change nothing, so that they may run beside others.

A command line comes in; yes or no goes out. The answer is no whenever there is a doubt:
redirections, substitutions, assignments, groups and every program not listed. It decides
what runs in parallel and is no permission: who may run what is decided elsewhere.
"""

import re
import shlex

_LOOKING = """
basename cat cksum cmp column comm cut date df diff dirname du echo egrep expr false fgrep file find
fold free grep head hexdump id jq ls md5sum nl nproc od paste printf ps pwd readlink realpath rg
sha1sum sha256sum sleep sort stat strings tac tail test tr tree true type uname uniq wc which whoami
"""
_HARMLESS = frozenset(_LOOKING.split())

_LOOKING_GIT = """
blame cat-file describe diff for-each-ref grep log ls-files ls-tree merge-base name-rev rev-list
rev-parse shortlog show show-ref status whatchanged
"""
_HARMLESS_GIT = frozenset(_LOOKING_GIT.split())

_CHANGING_OPTIONS = {
    "date": re.compile(r"-s|--set"),
    "diff": re.compile(r"--output"),
    "file": re.compile(r"-C|--compile"),
    "find": re.compile(r"-(exec|ok|delete|fprint|fls)"),
    "git": re.compile(r"--output|-c$|--exec-path|--ext-diff|--textconv|-O|--open-files"),
    "rg": re.compile(r"--pre"),
    "sort": re.compile(r"-o|--output|--compress-program|-[a-zA-Z]*o"),
    "tree": re.compile(r"-o|--output|-R"),
}
"""Options with which a program that looks can write, or run another."""

_PLAIN = re.compile(r"""(?:'[^']*'|"[^"$`\\!]*"|&&|[^'"`$<>(){}!#\n\\&])*""")
"""A line in which the shell expands, redirects, groups and sends to the background nothing."""

_ERRORS = re.compile(r" 2>(?:&1|/dev/null)(?= |$)")
"""Where the error stream goes changes nothing."""


def is_read_only_command(command: str) -> bool:
    """Say whether a command line surely changes nothing."""
    line = _ERRORS.sub("", command)
    if not _PLAIN.fullmatch(line):
        return False
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return False
    return all(_is_harmless(part) for part in _parts(words))


def _parts(words: list[str]) -> list[list[str]]:
    """Cut a line at its pipes and separators; an empty part is no command."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word and set(word) <= set("|&;"):
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _is_harmless(part: list[str]) -> bool:
    if not part:
        return False
    program, *arguments = part
    options = _CHANGING_OPTIONS.get(program)
    if options and any(options.match(argument) for argument in arguments):
        return False
    if program == "git":
        return bool(arguments) and arguments[0] in _HARMLESS_GIT
    if program == "uniq":  # its second file is written
        return not [argument for argument in arguments if not argument.startswith("-")]
    return program in _HARMLESS
