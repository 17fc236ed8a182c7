"""Find every command that a script might run, including nested ones.

Examples are commands behind `sudo` or `xargs`, in `bash -c`, and after `find -exec`. Only deny
rules use the result, so it may list too many commands but never too few. Allow rules match commands
as written. A script whose commands cannot be known is opaque.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, pairwise
from typing import NamedTuple

from longhold.core.tools.shell_reader import Command, Script, Word, read_script, split_words

_SHELLS = split_words("sh bash rbash dash zsh ksh mksh ash fish csh tcsh posh yash pwsh")
_CARRIERS = _SHELLS | split_words(
    "sudo doas env nohup nice ionice timeout time stdbuf setsid command builtin exec xargs watch"
    " parallel busybox toybox chroot unshare nsenter flock strace ltrace script su runuser pkexec"
    " run0 ssh eval trap source . caffeinate chrt taskset systemd-run sg newgrp"
    " docker podman kubectl npx uvx arch proot fakeroot entr coproc setarch linux32 linux64 prlimit"
    " choom numactl unbuffer rlwrap firejail bwrap dbus-run-session xvfb-run run-parts faketime tini"
    " mapfile readarray compgen complete zip gosu su-exec capsh perf valgrind gdb tmux screen at batch setpriv catchsegv hyperfine fd"
)
_INTERPRETERS = split_words(
    "python python2 python3 pypy pypy3 perl ruby node deno bun php lua luajit tclsh expect awk gawk"
    " mawk nawk sed m4 dc ed ex vi vim nvim emacs less more man gdb sqlite3 psql mysql osascript make"
)
_SPAWNS = re.compile(
    r"system|popen|subprocess|spawn|exec|eval|fork|pty|ctypes|import|require|child_process|qx\b|`"
    r"|\bos\b|getattr|compile|decode|chr\b|unpack|open\s*\(?.*\||\|\s*getline|\|\s*\"|/e\b|![a-z]|shell",
    re.IGNORECASE,
)
"""Matches code that may start a program whose name is computed."""
_INLINE = re.compile(r"-[A-Za-z]*[cerE]|--(eval|execute|command|print|run)|-(ex|exec|eval|batch)")
_RUN_WORDS = split_words(
    "-exec -execdir -ok -okdir -x -X --exec --exec-batch run exec dlx -- --run --command foreach"
)
_PROGRAM = re.compile(r"(.*/)?(s?bin|libexec)/[^/]+")
_PROGRAM_DIRECTORY = re.compile(r"(.*/)?(s?bin|libexec)/*")
_FILE_OPTIONS = split_words("-f --file --makefile")
_FINDERS = split_words("which type command whereis hash")
_RENAMES = split_words("alias enable")
_HIDDEN = re.compile(r"\$\(|`|<\(")
_MARK = re.compile(r"(?:-[A-Za-z0-9]*I|--replace=)(.*)", re.DOTALL)
_SPEAKERS = split_words(
    "echo printf grep egrep fgrep zgrep rg ag ack jq yq test [ [[ expr tr cut read logger say"
    " notify-send"
)
"""Programs that print or search for their arguments and do not run them."""
_COMMIT_TEXTS = split_words("-m -am --message -S -G --grep --author --date --trailer")
_REQUEST_TEXTS = split_words("-t --title -b --body -n --notes -m --message -S --search")
_TEST_FILTERS = split_words("-k -m")
_SPOKEN = {
    **dict.fromkeys(("git", "hg", "jj", "svn"), _COMMIT_TEXTS),
    **dict.fromkeys(("gh", "glab"), _REQUEST_TEXTS),
    **dict.fromkeys(("pytest", "python", "python3"), _TEST_FILTERS),
    "curl": split_words("-H --header -d --data --data-raw --json -F --form -A --user-agent"),
}
"""Options of common programs that take prose, such as a commit message."""

MAX_DEPTH = 5
"""Nesting limit for scripts in arguments. Hand-written scripts are less deep."""

DATA_CHARS = 2_000
"""Longer values and quoted texts are not searched, and their command is opaque."""

SEARCHED_CHARS = 100_000
"""If values and quotes contain more text, the script is opaque."""

PIECE_CHARS = 50
"""Parsing a short text takes as long as this many characters of a longer one."""

MAX_COMMANDS = 5_000
"""With more candidates, the script is opaque."""


def program(name: str) -> str:
    return name.rpartition("/")[2]


def every_command(script: Script, *, depth: int = 0) -> Iterator[Command]:
    for command in script.commands:
        yield command
        yield from _list_tails(command)
        if depth < MAX_DEPTH:
            for text in _texts(command):
                yield from every_command(read_script(text), depth=depth + 1)


def hidden_commands(script: Script) -> Iterator[Command]:
    """Yield possible commands from texts that may be run."""
    is_among_programs = False
    for command in islice(_list_named(script), MAX_COMMANDS):
        is_named = is_among_programs or program(command.name) in _FINDERS
        for index, word in enumerate(command.words[1:], start=1):
            if is_named or _PROGRAM.fullmatch(word.text):
                yield replace(command, words=command.words[index:], assignments=())
        for target in (redirect.target for redirect in command.redirects):
            if is_among_programs or _PROGRAM.fullmatch(target.text):
                yield Command(words=(target,))
        is_among_programs = is_among_programs or _enters_programs(command)
        for text in _list_phrases(command):
            yield from _read_phrase(text)
        for text in _code(command):
            tokens = [Word(text=token) for token in re.findall(r"[\w./+-]+", text)]
            for index in range(min(len(tokens), MAX_COMMANDS)):
                yield Command(words=tuple(tokens[index : index + 5]))
    for text in _data(script).pieces:
        yield from every_command(read_script(text), depth=MAX_DEPTH)


def _enters_programs(command: Command) -> bool:
    """Return whether `cd` enters a directory of programs, where a bare name may run one of them."""
    moves = command.name in ("cd", "pushd")
    return moves and any(_PROGRAM_DIRECTORY.fullmatch(text) for text in command.arguments)


def _list_phrases(command: Command) -> Iterator[str]:
    """Yield arguments with blanks, except prose. A program may run them (`tar -I 'touch x'`)."""
    name = program(command.name)
    prose = _SPOKEN.get(name, frozenset())
    if name in _SPEAKERS or (name == "git" and "grep" in command.arguments[:1]):
        return
    for before, word in pairwise(command.words):
        text = word.text.lstrip("!")
        is_prose = before.text in prose or text[:2] in prose
        if is_prose or not re.search(r"\S\s", text):
            continue
        yield text
        if re.match(r"-[A-Za-z].", text):
            yield text[2:].lstrip("!")
        if before.text == "-o" or text.startswith("-o"):  # `ssh -o 'ProxyCommand touch x'`
            yield text.split(maxsplit=1)[-1]


def _read_phrase(text: str) -> Iterator[Command]:
    script = read_script(text)
    yield from every_command(script, depth=1)
    if script.doubts & {"too long", "unreadable"}:  # a shell runs the lines before an error
        for part in islice(re.split(r"[;&|\n(){}`]+", text), MAX_COMMANDS):
            yield Command(words=tuple(Word(text=each) for each in part.split()[:5]))


class _Data(NamedTuple):
    pieces: set[str]
    is_complete: bool


def _data(script: Script) -> _Data:
    """Select the values and quoted texts that programs or the shell may run later."""
    pieces: set[str] = set()
    chars, is_complete = 0, True
    for text in chain.from_iterable(map(_values, islice(_list_named(script), MAX_COMMANDS))):
        found = {text, *re.split(r"\$\(|`|<\(|\)", text)[1:]} if len(text) <= DATA_CHARS else set()
        chars += sum(len(piece) + PIECE_CHARS for piece in found - pieces)
        if not found or chars > SEARCHED_CHARS:
            is_complete = False
        else:
            pieces |= found
    return _Data(pieces, is_complete)


def _values(command: Command) -> Iterator[str]:
    for text in (*command.assignments, *command.arguments):
        for found in re.finditer("=", text[:DATA_CHARS]):
            yield text[found.end() :].lstrip("!")
    for word in command.words:
        if word.is_literal and _HIDDEN.search(word.text):
            yield word.text


def is_opaque(script: Script) -> bool:
    """Return whether a command's name, or a text that it runs, cannot be known beforehand."""
    if script.doubts & {"too long", "unreadable", "odd character"}:
        return True
    for count, command in enumerate(every_command(script)):
        if count > MAX_COMMANDS or (command.words and not command.words[0].is_literal):
            return True
        if any(read_script(text).doubts & {"too long", "unreadable"} for text in _texts(command)):
            return True
    return not _data(script).is_complete or any(map(_hides, _list_named(script)))


def _list_named(script: Script, *, depth: int = 0) -> Iterator[Command]:
    """Yield the commands as written and the commands that they certainly run."""
    for command in script.commands:
        yield command
        yield from _find_carried(command)
        if depth < MAX_DEPTH:
            for text in _texts(command):
                yield from _list_named(read_script(text), depth=depth + 1)


def _find_carried(command: Command) -> Iterator[Command]:
    """Yield the command behind a wrapper: its first operand, or the next if that may be a value."""
    words = command.words
    while words and program(words[0].text) in _CARRIERS:
        at = 1
        while at < len(words) and _is_setting(words[at].text):
            at += 1
        words = words[at:]
        if words:
            yield replace(command, words=words, assignments=())
        if at > 1 and len(words) > 1:
            yield replace(command, words=words[1:], assignments=())


def _is_setting(text: str) -> bool:
    return text.startswith("-") or "=" in text or bool(re.fullmatch(r"[\d.]+[smhd]?", text))


def _hides(command: Command) -> bool:
    """Return whether a command takes its program, or the program's name, from elsewhere."""
    words, name = command.words, program(command.name)
    if not words:
        return False
    if (words[0].has_glob and name != "[") or "{}" in name or "@P}" in "".join(command.arguments):
        return True
    if name in _RENAMES and len(words) > 1:
        return True
    if name == "hash" and "-p" in command.arguments:
        return True
    is_loose = not all(word.is_literal for word in words)
    if is_loose and (name in ("eval", "source", ".") or "-c" in command.arguments):
        return True
    if name in ("xargs", "parallel"):
        last = command.arguments[-1] if command.arguments else ""
        given = " ".join(command.arguments)
        is_replaced = bool(re.search(r"(?:^| )(?:-I|--replace=) ?(\S+)(?: -\S+)* \1(?: |$)", given))
        is_replaced = is_replaced or _fills_in_name(command)
        is_open = last == "-c" or program(last) in _CARRIERS | _INTERPRETERS
        return is_open or is_replaced or (name == "parallel" and (not last or last[0] == "-"))
    return _is_fed(command, name) or any(_SPAWNS.search(text) for text in _code(command))


def _fills_in_name(command: Command) -> bool:
    """Return whether `xargs -I%` inserts its input as the name of the command."""
    for at, word in enumerate(command.words):
        found = _MARK.fullmatch(word.text)
        mark, rest = found[1] if found else "", command.words[at + 1 :]
        if found and not mark and rest:
            mark, rest = rest[0].text, rest[1:]
        for index, carrier in enumerate(rest if mark else ()):
            if program(carrier.text) in _CARRIERS:
                inner = replace(command, words=rest[index:])
                carried = Script(commands=(inner,), doubts=frozenset())
                names = (each.name.split(maxsplit=1) for each in _list_named(carried))
                return any(mark in name[0] for name in names if name)
    return False


def _is_fed(command: Command, name: str) -> bool:
    if name in ("sg", "newgrp") and command.reads_pipe:
        return True
    if name not in _SHELLS | _INTERPRETERS | {".", "source", "busybox"} or name in (
        "sed",
        "less",
        "more",
    ):
        return False
    operands = [a for a in command.arguments if not a.startswith("-") or a == "-"]
    reads_input = {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"} & set(operands)
    is_bare = not operands or "-s" in command.arguments or bool(reads_input)
    streams = [redirect for redirect in command.redirects if redirect.operator.startswith("<")]
    loose = any(not redirect.target.is_literal for redirect in streams)
    if name in ("awk", "gawk", "mawk", "nawk", "make", "man"):
        files = (word for before, word in pairwise(command.words) if before.text in _FILE_OPTIONS)
        is_loose = any(not word.is_literal and "<(" in word.text for word in files)
        return is_loose or ("-f" in command.arguments and bool(reads_input))
    return loose or (is_bare and command.reads_pipe)


def _code(command: Command) -> Iterator[str]:
    name = program(command.name)
    if name not in _INTERPRETERS and not name.startswith(("python", "perl", "ruby")):
        return
    takes_first = name in ("awk", "gawk", "mawk", "nawk", "sed", "sqlite3")
    for before, word in pairwise(command.words):
        is_first = takes_first and not word.text.startswith("-")
        if is_first or _INLINE.fullmatch(before.text) or word.text.startswith(("+", "!")):
            yield word.text
    if name != "sed":
        yield from (r.target.text for r in command.redirects if r.operator == "<<<")


def _list_tails(command: Command) -> Iterator[Command]:
    words = command.words
    carries = bool(words) and program(words[0].text) in _CARRIERS
    for index in range(1, len(words)):
        if carries or words[index - 1].text in _RUN_WORDS:
            yield replace(command, words=words[index:], assignments=())


def _texts(command: Command) -> Iterator[str]:
    words = command.words
    is_carrier = any(program(word.text) in _CARRIERS for word in words)
    for before, word in pairwise(words):
        is_run = is_carrier or before.text in _RUN_WORDS
        if is_run and any(char in word.text for char in " \t\n;&|<>$`"):
            yield word.text
            if re.match(r"-[A-Za-z].", word.text):
                yield from (word.text[2:], word.text[3:])
    if program(command.name) in ("eval", "ssh", "trap", "source", "."):
        yield " ".join(command.arguments)
    if is_carrier:
        yield from (r.target.text for r in command.redirects if r.operator == "<<<")
