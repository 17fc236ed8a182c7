"""Finds every command that a script might run, also inside other commands.

Those behind `sudo`, `env`, `xargs` or `timeout`, in the text given to `bash -c` or `eval`, and
after `find -exec`. It finds too much rather than too little, since it serves prohibitions only;
permission is given by the commands as written.
"""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.tools.permissions.script import Command, Script, names
from holdfast.tools.permissions.shell import read_script

_CARRIERS = names(
    "sudo doas env nohup nice ionice timeout time stdbuf setsid command builtin exec xargs watch"
    " parallel busybox toybox chroot unshare nsenter flock strace ltrace script su runuser pkexec"
    " run0 ssh bash sh dash zsh ksh fish eval trap source . caffeinate chrt taskset systemd-run"
    " docker podman kubectl npx uvx arch proot fakeroot entr coproc"
)
_FIND_RUNS = names("-exec -execdir -ok -okdir")

MAX_DEPTH = 5
"""Texts inside texts; nested deeper than people write by hand."""

MAX_COMMANDS = 5_000
"""Past this many candidates the script is called opaque instead of being searched on."""


def program(name: str) -> str:
    """Return a program's name without its directory."""
    return name.rpartition("/")[2]


def every_command(script: Script, *, depth: int = 0) -> Iterator[Command]:
    """Yield each command that could run, as written first, then those it carries."""
    for command in script.commands:
        yield command
        yield from _carried(command)
        if depth < MAX_DEPTH:
            for text in _texts(command):
                yield from every_command(read_script(text), depth=depth + 1)


def is_opaque(script: Script) -> bool:
    """Return whether a command's name, or a text it runs, cannot be known beforehand."""
    if script.doubts & {"too long", "unreadable", "odd character"}:
        return True
    for count, command in enumerate(every_command(script)):
        if count > MAX_COMMANDS or (command.words and not command.words[0].is_literal):
            return True
        runs_text = program(command.name) in ("eval", "source", ".") or "-c" in command.arguments
        if runs_text and not all(word.is_literal for word in command.words):
            return True
        if any(read_script(text).doubts & {"too long", "unreadable"} for text in _texts(command)):
            return True
    return False


def _carried(command: Command) -> Iterator[Command]:
    """Yield every tail of the words that could itself be a command."""
    words = command.words
    carries = bool(words) and program(words[0].text) in _CARRIERS
    for index in range(1, len(words)):
        if carries or words[index - 1].text in _FIND_RUNS:
            yield replace(command, words=words[index:], assignments=())


def _texts(command: Command) -> Iterator[str]:
    """Yield the arguments that a shell would read as a script of their own."""
    words = command.words
    if not words or not any(program(word.text) in _CARRIERS for word in words):
        return
    for word in words[1:]:
        if any(char in word.text for char in " \t\n;&|<>$`"):
            yield word.text
    if program(words[0].text) in ("eval", "ssh", "trap", "source", "."):
        yield " ".join(command.arguments)
