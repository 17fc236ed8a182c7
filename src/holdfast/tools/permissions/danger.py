"""Recognises commands that no general permission should cover.

*Ruin* cannot be undone on this machine: its roots, its disks, all its processes; it is asked
about in every mode. *Risk* reaches past the project or destroys work: it needs a permission
that names exactly this command. A list like this is never complete; it is a second net under
the rules, not the fence.
"""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from holdfast.tools.permissions.inner import every_command, program
from holdfast.tools.permissions.script import Command, Script, Word, names


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    level: Literal["ruin", "risk"]
    reason: str


_DISK = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|md\d|dm-|loop|mem$|kmem$)")
_FORK_BOMB = re.compile(r"([\w:.]{1,40})\(\)[{(].{0,200}\1\|\1.{0,200}&")
_HOMES = ("~", "$HOME", "${HOME}")
_SHELLS = names("sh bash dash zsh ksh fish python python3 perl ruby node php")
_AS_OTHERS = names("sudo su doas pkexec run0 runuser")
_FORMATTERS = names("fdisk sfdisk cfdisk parted sgdisk gdisk wipefs mkswap blkdiscard hdparm")
_OPEN_MODE = names("777 0777 a+w a+rw a+rwx ugo+rwx o+w o+rwx +w")
_STOPPERS = names("shutdown reboot halt poweroff killall pkill crontab iptables nft visudo passwd")
_OUTWARD = {
    "kubectl": names("delete drain"),
    "terraform": names("destroy apply"),
    "npm": names("publish unpublish"),
    "cargo": names("publish yank"),
    "twine": names("upload"),
    "docker": names("prune"),
    "systemctl": names("poweroff reboot halt disable mask stop"),
    "gh": names("delete merge"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _GitCase:
    """Git commands that lose work or rewrite what others have, and what gives them away."""

    verbs: frozenset[str]
    reason: str
    words: frozenset[str] = frozenset()
    letters: frozenset[str] = frozenset()
    long: tuple[str, ...] = ()
    is_always: bool = False


_GIT_CASES = (
    _GitCase(
        verbs=names("push send-pack"),
        reason="rewrites or removes what others have fetched",
        letters=frozenset("fd"),
        long=("--force", "--force-with-lease", "--mirror", "--delete", "--prune"),
    ),
    _GitCase(
        verbs=names("filter-branch filter-repo rebase replace update-ref fast-import"),
        reason="rewrites history",
        is_always=True,
    ),
    _GitCase(verbs=names("commit"), reason="rewrites the last commit", long=("--amend",)),
    _GitCase(
        verbs=names("reset"),
        reason="throws away uncommitted work",
        long=("--hard", "--merge", "--keep"),
    ),
    _GitCase(verbs=names("clean prune"), reason="removes files for good", is_always=True),
    _GitCase(
        verbs=names("checkout restore switch"),
        reason="throws away uncommitted work",
        words=names("-- ."),
        letters=frozenset("f"),
        long=("--force", "--discard-changes"),
    ),
    _GitCase(
        verbs=names("branch tag"),
        reason="removes a branch or a tag",
        letters=frozenset("dDM"),
        long=("--delete",),
    ),
    _GitCase(
        verbs=names("stash reflog"),
        reason="removes the way back",
        words=names("drop clear expire delete"),
    ),
    _GitCase(verbs=names("gc"), reason="removes the way back", long=("--prune",)),
    _GitCase(verbs=names("config"), reason="changes what git itself would run", is_always=True),
    _GitCase(
        verbs=names("worktree remote submodule"),
        reason="changes where the repository's parts lie",
        words=names("remove rm set-url deinit foreach"),
    ),
)


_GIT_PLAIN = names(
    "--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects --version --help -v"
    " -h --glob-pathspecs --noglob-pathspecs --icase-pathspecs"
)
"""Options in front of git's verb that change nothing about what it runs or where."""


def find_danger(script: Script, text: str) -> Danger | None:
    """Return the worst danger in a command line, or None."""
    found = list(_dangers(script, text))
    return next((danger for danger in found if danger.level == "ruin"), found[0] if found else None)


def _dangers(script: Script, text: str) -> Iterator[Danger]:
    if _FORK_BOMB.search(re.sub(r"\s+", "", text)):
        yield Danger(level="ruin", reason="a process that multiplies without end")
    for command in every_command(script):
        for redirect in command.redirects:
            if ">" in redirect.operator and _DISK.match(_normal(redirect.target.text)):
                yield Danger(level="ruin", reason=f"writes to the disk {redirect.target.text}")
            if redirect.target.text.startswith(("/dev/tcp/", "/dev/udp/")):
                yield Danger(level="risk", reason="opens a network connection")
        if not command.words:
            continue
        for check in _CHECKS:
            yield from check(program(command.name), command)


def _normal(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/")) if path.startswith("/") else path


def _is_root(word: Word) -> bool:
    """Return whether a word names the root, a directory right below it, or a home directory."""
    text = word.text
    for home in _HOMES:
        if text == home or text.startswith((home + "/", home + "*")):
            return posixpath.normpath(text[len(home) :].strip("/*") or ".") in (".", "..")
    if text.startswith("~"):
        return "/" not in text.rstrip("/*")
    if not text.startswith("/"):
        return False
    parts = [part for part in _normal(text).split("/") if part and part not in ("*", ".*")]
    return len(parts) < 2 or (len(parts) == 2 and parts[0] in ("home", "Users"))


def _letters(command: Command) -> str:
    return "".join(a[1:] for a in command.arguments if re.match(r"-[A-Za-z]", a))


def _has_long(command: Command, *wanted: str) -> bool:
    """Return whether a long option is present, also abbreviated or with a value."""
    given = (a.partition("=")[0] for a in command.arguments if a.startswith("--") and len(a) > 4)
    return any(name.startswith(option) for option in given for name in wanted)


def _removal(name: str, command: Command) -> Iterator[Danger]:
    operands = _operands(command)
    is_recursive = set(_letters(command)) & set("rR") or _has_long(command, "--recursive")
    deep = name in ("mv", "shred") or is_recursive
    if name in ("rm", "rmdir", "unlink", "shred", "mv", "chmod", "chown", "chgrp", "truncate"):
        if _has_long(command, "--no-preserve-root"):
            yield Danger(level="ruin", reason=f"{name} with --no-preserve-root")
        if deep and any(_is_root(word) for word in operands):
            yield Danger(level="ruin", reason=f"{name} on a root or home directory")
    if name == "rm" and deep and any(not word.is_literal for word in operands):
        yield Danger(level="risk", reason="removes what only the shell will know")
    if name == "rm" and deep and any(_is_everything(word.text) for word in operands):
        yield Danger(level="risk", reason="removes everything in a directory")
    if name == "chmod" and deep and _OPEN_MODE & set(command.arguments):
        yield Danger(level="risk", reason="opens a whole tree to everyone")
    if name == "find" and "-delete" in command.arguments:
        deep_root = any(_is_root(word) for word in operands)
        yield Danger(level="ruin" if deep_root else "risk", reason="find deletes what it finds")


def _operands(command: Command) -> list[Word]:
    return [word for word in command.words[1:] if not word.text.startswith("-")]


def _is_everything(text: str) -> bool:
    is_here = posixpath.normpath(text.rstrip("*") or ".") in (".", "..")
    return is_here and ("*" in text or "." in text)


def _disk(name: str, command: Command) -> Iterator[Danger]:
    targets = [a.partition("=")[2] if a.startswith("of=") else a for a in command.arguments]
    writes = name in ("cp", "dd", "tee", "shred", "cat", "mv", "install")
    if name.startswith("mkfs") or name in _FORMATTERS:
        yield Danger(level="ruin", reason=f"{name} changes a disk")
    if writes and any(_DISK.match(_normal(t)) for t in targets if not t.startswith("if=")):
        yield Danger(level="ruin", reason=f"{name} writes to a disk")


def _process(name: str, command: Command) -> Iterator[Danger]:
    if name == "kill" and "-1" in command.arguments[1:]:
        yield Danger(level="ruin", reason="ends every process")
    if name in _STOPPERS or (name == "init" and command.arguments[:1] in (("0",), ("6",))):
        yield Danger(level="risk", reason=f"{name} reaches past this project")
    if name in _AS_OTHERS:
        yield Danger(level="risk", reason=f"{name} runs with another user's rights")
    if name in _OUTWARD and _OUTWARD[name] & set(command.arguments):
        yield Danger(level="risk", reason=f"{name} changes things outside this machine or project")


def _fed_shell(name: str, command: Command) -> Iterator[Danger]:
    """A program whose text comes from a pipe, a substitution or an expansion."""
    if name in ("eval", "source", ".") and not all(word.is_literal for word in command.words):
        yield Danger(level="risk", reason="runs text that only the shell will know")
    operands = _operands(command)
    is_piped = command.reads_pipe and (not operands or "-s" in command.arguments)
    starts = ("<(", "$(", "`", "/dev/stdin")
    if name in _SHELLS and (is_piped or any(word.text.startswith(starts) for word in operands)):
        yield Danger(level="risk", reason=f"feeds what it was sent to {name}")


def _before_verb(arguments: tuple[str, ...]) -> Iterator[str]:
    """Yield the options in front of git's verb, but for a directory to start in."""
    rest = iter(arguments)
    for argument in rest:
        if argument == "-C":
            next(rest, None)
        elif argument.startswith("-"):
            yield argument
        else:
            return


def _git(name: str, command: Command) -> Iterator[Danger]:
    if name != "git":
        return
    if any(option not in _GIT_PLAIN for option in _before_verb(command.arguments)):
        yield Danger(level="risk", reason="changes what git itself would run")
    words, letters = set(command.arguments), set(_letters(command))
    for case in _GIT_CASES:
        if not case.verbs & words:
            continue
        marked = case.words & words or case.letters & letters or _has_long(command, *case.long)
        refspec = "push" in case.verbs and any(a[0] in "+:" for a in command.arguments if a)
        if case.is_always or marked or refspec:
            yield Danger(level="risk", reason=case.reason)


_CHECKS = (_removal, _disk, _process, _fed_shell, _git)
