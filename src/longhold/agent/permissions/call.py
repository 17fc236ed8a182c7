"""One tool call with everything that a decision needs: paths, command, URL. This module reads the
disk, so that the decision can be a pure function. It locates every word of a command that may be a
path, starting from every directory that a `cd` may lead to.
"""

import os
import posixpath
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from longhold.agent.permissions.places import Located, Places, is_below, locate, locate_glob
from longhold.agent.permissions.readonly import is_read_only_script, is_reading_only
from longhold.agent.permissions.repositories import suspect
from longhold.core.messages import JsonObject
from longhold.core.tools.environment import absolute_path
from longhold.core.tools.protocol import Tool, ToolKind
from longhold.core.tools.shell_programs import every_command, is_opaque, program
from longhold.core.tools.shell_reader import (
    Command,
    Redirect,
    Script,
    Word,
    read_script,
    split_words,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    level: Literal["ruin", "risk"]
    reason: str


_DISK = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|md\d|dm-|loop|mem$|kmem$)")
_FORK_BOMB = re.compile(r"([\w:.]{1,40})\(\)[{(].{0,200}\1\|\1.{0,200}&")
_HOMES = ("~", "$HOME", "${HOME}")
_SHELLS = split_words("sh bash dash zsh ksh fish python python3 perl ruby node php")
_AS_OTHERS = split_words("sudo su doas pkexec run0 runuser")
_FORMATTERS = split_words("fdisk sfdisk cfdisk parted sgdisk gdisk wipefs mkswap blkdiscard hdparm")
_OPEN_MODE = split_words("777 0777 a+w a+rw a+rwx ugo+rwx o+w o+rwx +w")
_STOPPERS = split_words(
    "shutdown reboot halt poweroff killall pkill crontab iptables nft visudo passwd"
)
_OUTWARD = {
    "kubectl": split_words("delete drain"),
    "terraform": split_words("destroy apply"),
    "npm": split_words("publish unpublish"),
    "cargo": split_words("publish yank"),
    "twine": split_words("upload"),
    "docker": split_words("prune"),
    "systemctl": split_words("poweroff reboot halt disable mask stop"),
    "gh": split_words("delete merge"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _GitCase:
    """Git commands that lose work or rewrite published history, and how to recognise them."""

    verbs: frozenset[str]
    reason: str
    words: frozenset[str] = frozenset()
    letters: frozenset[str] = frozenset()
    long: tuple[str, ...] = ()
    is_always: bool = False


_GIT_CASES = (
    _GitCase(
        verbs=split_words("push send-pack"),
        reason="rewrites or removes what others have fetched",
        letters=frozenset("fd"),
        long=("--force", "--force-with-lease", "--mirror", "--delete", "--prune"),
    ),
    _GitCase(
        verbs=split_words("push send-pack fetch pull clone ls-remote fetch-pack archive submodule"),
        reason="runs a program that an option names",
        long=("--receive-pack", "--upload-pack", "--exec", "--config", "--template"),
    ),
    _GitCase(
        verbs=split_words("clone"),
        reason="runs a program that an option names",
        letters=frozenset("uc"),
    ),
    _GitCase(
        verbs=split_words("grep difftool mergetool"),
        reason="runs a program that an option names",
        letters=frozenset("Oxt"),
        long=("--open-files-in-pager", "--extcmd", "--tool"),
    ),
    _GitCase(
        verbs=split_words("filter-branch filter-repo rebase replace update-ref fast-import"),
        reason="rewrites history",
        is_always=True,
    ),
    _GitCase(verbs=split_words("commit"), reason="rewrites the last commit", long=("--amend",)),
    _GitCase(
        verbs=split_words("reset"),
        reason="throws away uncommitted work",
        long=("--hard", "--merge", "--keep"),
    ),
    _GitCase(verbs=split_words("clean prune"), reason="removes files for good", is_always=True),
    _GitCase(
        verbs=split_words("checkout restore switch"),
        reason="throws away uncommitted work",
        words=split_words("-- ."),
        letters=frozenset("f"),
        long=("--force", "--discard-changes"),
    ),
    _GitCase(
        verbs=split_words("branch tag"),
        reason="removes a branch or a tag",
        letters=frozenset("dDM"),
        long=("--delete",),
    ),
    _GitCase(
        verbs=split_words("stash reflog"),
        reason="removes the means to undo",
        words=split_words("drop clear expire delete"),
    ),
    _GitCase(verbs=split_words("gc"), reason="removes the means to undo", long=("--prune",)),
    _GitCase(
        verbs=split_words("config"), reason="changes what git itself would run", is_always=True
    ),
    _GitCase(
        verbs=split_words("worktree remote submodule"),
        reason="changes where git stores parts of the repository",
        words=split_words("remove rm set-url deinit foreach"),
    ),
    _GitCase(verbs=split_words("bisect"), reason="runs a program", words=split_words("run")),
)


_GIT_PLAIN = split_words(
    "--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects --version --help -v"
    " -h --glob-pathspecs --noglob-pathspecs --icase-pathspecs"
)
"""Options before git's verb that do not change what it runs or where."""


def find_danger(script: Script, text: str) -> Danger | None:
    found = list(_dangers(script, text))
    return next((danger for danger in found if danger.level == "ruin"), found[0] if found else None)


def _dangers(script: Script, text: str) -> Iterator[Danger]:
    if _FORK_BOMB.search(re.sub(r"\s+", "", text)):
        yield Danger(level="ruin", reason="a fork bomb")
    for command in every_command(script):
        for redirect in command.redirects:
            if ">" in redirect.operator and _DISK.match(_normalise(redirect.target.text)):
                yield Danger(level="ruin", reason=f"writes to the disk {redirect.target.text}")
            if redirect.target.text.startswith(("/dev/tcp/", "/dev/udp/")):
                yield Danger(level="risk", reason="opens a network connection")
        if not command.words:
            continue
        for check in _CHECKS:
            yield from check(program(command.name), command)


def _normalise(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/")) if path.startswith("/") else path


def _is_root(word: Word) -> bool:
    """Return whether a word names `/`, a directory directly below it, or a home directory."""
    text = word.text
    for home in _HOMES:
        if text == home or text.startswith((home + "/", home + "*")):
            return posixpath.normpath(text[len(home) :].strip("/*") or ".") in (".", "..")
    if text.startswith("~"):
        return "/" not in text.rstrip("/*")
    if not text.startswith("/"):
        return False
    parts = [part for part in _normalise(text).split("/") if part and part not in ("*", ".*")]
    return len(parts) < 2 or (len(parts) == 2 and parts[0] in ("home", "Users"))


def _letters(command: Command) -> str:
    return "".join(a[1:] for a in command.arguments if re.match(r"-[A-Za-z]", a))


def _has_long(command: Command, *wanted: str) -> bool:
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
        yield Danger(level="risk", reason="removes paths that only the shell can determine")
    if name == "rm" and deep and any(_is_everything(word.text) for word in operands):
        yield Danger(level="risk", reason="removes everything in a directory")
    if name == "chmod" and deep and _OPEN_MODE & set(command.arguments):
        yield Danger(level="risk", reason="makes a whole directory tree writable for everyone")
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
    if writes and any(_DISK.match(_normalise(t)) for t in targets if not t.startswith("if=")):
        yield Danger(level="ruin", reason=f"{name} writes to a disk")


def _process(name: str, command: Command) -> Iterator[Danger]:
    if name == "kill" and "-1" in command.arguments[1:]:
        yield Danger(level="ruin", reason="ends every process")
    if name in _STOPPERS or (name == "init" and command.arguments[:1] in (("0",), ("6",))):
        yield Danger(level="risk", reason=f"{name} affects more than this project")
    if name in _AS_OTHERS:
        yield Danger(level="risk", reason=f"{name} runs with another user's rights")
    if name in _OUTWARD and _OUTWARD[name] & set(command.arguments):
        yield Danger(level="risk", reason=f"{name} changes things outside this machine or project")


def _fed_shell(name: str, command: Command) -> Iterator[Danger]:
    """Yield interpreters that run text from a pipe, a substitution or an expansion."""
    if name in ("eval", "source", ".") and not all(word.is_literal for word in command.words):
        yield Danger(level="risk", reason="runs text that only the shell can determine")
    operands = _operands(command)
    is_piped = command.reads_pipe and (not operands or "-s" in command.arguments)
    starts = ("<(", "$(", "`", "/dev/stdin")
    if name in _SHELLS and (is_piped or any(word.text.startswith(starts) for word in operands)):
        yield Danger(level="risk", reason=f"{name} runs text from a pipe or a substitution")


def _read_options(arguments: tuple[str, ...]) -> Iterator[str]:
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
    if any(option not in _GIT_PLAIN for option in _read_options(command.arguments)):
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


_TEXT_ONLY = split_words("echo printf true false tr seq expr basename dirname sleep : type which")
"""Programs that treat operands as text and never open them. A glob still lists file names."""

_PATTERN_FIRST = split_words("grep egrep fgrep rg")
_DELIMITED = split_words("cut sort column paste")
_DELIMITER = re.compile(
    r"-[A-Za-z]*[dts].|--(field-separator|delimiter|output-delimiter|separator)=."
)
_LEAVES = re.compile(r"[/~]|.*\.\.", re.DOTALL)
_GIVES_PATTERN = re.compile(r"-[^-]*[ef]|--[rf]")
_UNSEEN = split_words(
    "xargs parallel cpio rsync tar bash sh dash zsh ksh fish eval source . ssh su watch trap script"
)
"""Programs that read names from stdin, or run another command line."""

_CD_OPTIONS = ("--", "-P", "-L")
_HOME = "~"
"""The target of a `cd` that has only options."""
MAX_BASES = 20
"""A limit, because each `cd` can double the directories in which the rest may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReach:
    touched: tuple[Located, ...]
    """Words that may be paths. The kind of command decides whether they count as written."""
    written: tuple[Located, ...]
    bases: tuple[Path, ...]
    is_unseen: bool
    """Whether some of the paths are known only to the shell."""


def find_reach(script: Script, places: Places) -> CommandReach:
    bases = [places.cwd]
    touched: list[Located] = []
    written: list[Located] = []
    unseen = bool(script.doubts)
    for command in script.commands:
        unseen = unseen or program(command.name) in _UNSEEN
        for word in _candidates(command):
            for base in bases:
                touched.extend(_locate_word(word, places, base))
        for redirect in command.redirects:
            if _names_no_file(redirect):
                continue
            found = [at for base in bases for at in _locate_word(redirect.target, places, base)]
            (written if ">" in redirect.operator else touched).extend(found)
        moved = _follow_cd(command, places, bases)
        unseen = unseen or moved is None
        bases = list(dict.fromkeys((*bases, *(moved or ()))))
        unseen = unseen or len(bases) > MAX_BASES
        del bases[MAX_BASES:]
    return CommandReach(
        touched=tuple(touched), written=tuple(written), bases=tuple(bases), is_unseen=unseen
    )


def _names_no_file(redirect: Redirect) -> bool:
    text = redirect.target.text
    return redirect.operator == "<<<" or redirect.joins_streams or text == "/dev/null"


def _follow_cd(command: Command, places: Places, bases: list[Path]) -> list[Path] | None:
    """Return the directories that a `cd` may lead to, or None if they are unknown."""
    if command.name not in ("cd", "pushd", "popd"):
        return []
    words = [word for word in command.words[1:] if word.text not in _CD_OPTIONS]
    if command.name == "popd" or len(words) > 1 or (words and words[0].text.startswith("-")):
        return None
    if words and (not words[0].is_literal or words[0].has_glob):
        return None
    if command.name == "pushd" and not words:
        return None  # because it swaps two directories of an unknown stack
    target = words[0] if words else Word(text=_HOME)
    found = [at for base in bases for at in _locate_word(target, places, base)]
    # After `cd link`, `cd ..` goes back by name in bash and by path elsewhere. Follow both.
    return [path for at in found for path in (at.path, at.spelled) if path is not None]


def _locate_word(word: Word, places: Places, base: Path) -> tuple[Located, ...]:
    if not word.is_literal or (word.has_glob and word.is_quoted):
        return (Located(text=word.text, where="unclear"),)
    if word.has_glob:
        return locate_glob(word.text, places, base=base)
    found = [locate(word.text, places, base=base)]
    if word.is_quoted and word.text.startswith("~"):
        found.append(locate("./" + word.text, places, base=base))
    return tuple(found)


def _candidates(command: Command) -> Iterator[Word]:
    words = list(command.words[1:])
    if command.name == "cd" and all(word.text in _CD_OPTIONS for word in words):
        yield replace(command.words[0], text=_HOME, is_quoted=False)
    if command.name in _TEXT_ONLY:
        words = [word for word in words if word.has_glob]
    if command.name in _PATTERN_FIRST and not any(_GIVES_PATTERN.match(w.text) for w in words):
        words = _without_pattern(words)
    if "/" in command.name:
        yield command.words[0]
    is_ended = False
    for word in words:
        is_ended = is_ended or word.text == "--"
        # because `column -` and `cat -- --` open files with these names
        if not word.text or (command.name == "find" and word.text in "(!),;+{}"):
            continue
        is_option = word.text.startswith("-") and not is_ended
        if is_option and command.name in _DELIMITED and _DELIMITER.fullmatch(word.text):
            continue
        if len(_PART.findall(word.text)) > MAX_PARTS:
            yield replace(word, is_literal=False)  # so the path counts as unclear
            continue
        # because on some systems options end at the first operand, so `-x` can be a file
        yield from _with_parts(word)
        if is_option and word.text != "-":
            yield from _option_value(word)


def _without_pattern(words: list[Word]) -> list[Word]:
    """Drop the first operand, unless the shell could expand it to several words."""
    for index, word in enumerate(words):
        if word.text in ("-", "--") or not word.text.startswith("-"):
            at = index + 1 if word.text == "--" else index
            is_pattern = at < len(words) and not words[at].has_glob
            return [*words[:at], *words[at + 1 :]] if is_pattern else words
    return words


_PART = re.compile(r"[=@:,](?=/|~|\.\.)")
MAX_PARTS = 20
"""A limit above that of real arguments, because each part is looked up on disk."""


def _with_parts(word: Word) -> Iterator[Word]:
    """Yield an operand, and its parts after `=`, `@`, `:` or `,` that look like paths."""
    yield word
    for found in _PART.finditer(word.text):
        yield replace(word, text=word.text[found.end() :], is_quoted=False)


def _option_value(word: Word) -> Iterator[Word]:
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
    """Why a part that looks harmless may not be harmless here, or ""."""
    is_opaque: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    tool: str
    kind: ToolKind
    paths: tuple[Located, ...] = ()
    shell: ShellCall | None = None
    has_command: bool = False
    """Whether the tool has a command input, even if none was given."""
    url: str = ""
    to: str = ""
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
    # Only a rule for exactly this command permits it. `git diff:*` does not cover such a case.
    trap = Danger(level="risk", reason=found) if found else None
    objection = found or _objection(script, reach, places)
    return ShellCall(
        text=text,
        script=script,
        reach=reach,
        danger=find_danger(script, text) or trap,
        is_read_only=is_read_only_script(script) and not objection,
        objection=objection,
        is_opaque=is_opaque(script),
    )


def _suspicion(script: Script, reach: CommandReach, places: Places) -> str:
    runs = [command for command in script.commands if program(command.name) == "git"]
    if not any(command.arguments[:1] != ("--version",) for command in runs):
        return ""
    verbs = frozenset(text for command in runs for text in command.arguments)
    reading = is_reading_only(script)
    bases = dict.fromkeys(reach.bases)
    found = (suspect(base, verbs, places, is_reading=reading) for base in bases)
    return next(filter(None, found), "")


_SCRIPTS_RUNNING = {"egrep": ("grep",), "fgrep": ("grep",)}
"""Programs that find another program by PATH."""


def _is_projects(name: str, places: Places) -> bool:
    """Return whether the shell would find this program inside the working directories."""
    found = shutil.which(name, path=absolute_path(os.environ.get("PATH", os.defpath)))
    return found is not None and any(
        is_below(path, places.real_roots)
        for path in (Path(found).resolve(), Path(found).parent.resolve())
    )


def _objection(script: Script, reach: CommandReach, places: Places) -> str:
    """Return why files on disk change what a command does, or ""."""
    for command in script.commands:
        for name in (command.name, *_SCRIPTS_RUNNING.get(command.name, ())):
            if name and "/" not in name and _is_projects(name, places):
                return f"{name} is a program of the project"
        if command.name == "diff" and any(at.path and at.path.is_dir() for at in reach.touched):
            return "diff follows the links in a directory"
    return ""
