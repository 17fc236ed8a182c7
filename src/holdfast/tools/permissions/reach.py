"""Which of a project's files a command may run: what trust in the command covers.

A shell can reach a script in more ways than can be read off a command, so nothing is proved here;
the files are over-counted, and a change to any of them asks the user again. Covered are

- files that the command names: their path, their name or their stem, wherever they lie, since the
  command may change directory, expand a variable or load a module;
- all files below a directory that it names;
- files that a covered file names in turn, and files beside it that it names by their stem;
- every file of the project that tools run or are configured by (executables, scripts of shells,
  build files, `package.json` and its like), unless the command is one script and its arguments.

Programs outside the project are not covered, nor is what a covered program downloads.
"""

import os
import re
import shlex
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.messages import Json
from holdfast.tools.ignore import VERSION_CONTROL
from holdfast.tools.permissions.script import names
from holdfast.tools.permissions.shell import read_script

FILES = 50_000
"""Of a larger project the files found first are covered."""
TEXT_BYTES = 256 << 10
"""How far into a file names are looked for; scripts are shorter."""
PROJECT_VARIABLES = ("HOLDFAST_PROJECT_DIR", "CLAUDE_PROJECT_DIR")

_WORD = re.compile(r"[\w.+@-]{1,255}")
_PLAIN = names("bash cat date echo false jq node perl printf python python3 ruby sh true")
"""Programs that run the file they are given, or none."""
_RUNNING = names("--eval --import --init-file --module --rcfile --require -c -e -i -m -r")
"""Options by which those run something else."""
_BUILD = names(
    "BUILD CMakeLists.txt Dockerfile GNUmakefile Gemfile Justfile Makefile Procfile Rakefile"
    " Taskfile.yml WORKSPACE build.gradle build.rs compose.yaml conftest.py deno.json"
    " docker-compose.yml go.mod justfile lefthook.yml makefile mise.toml noxfile.py package.json"
    " pom.xml pyproject.toml setup.cfg setup.py sitecustomize.py tox.ini"
)
_SCRIPTS = (".bash", ".bat", ".cmd", ".fish", ".mk", ".ps1", ".sh", ".zsh")


def reached_files(value: Json, project: Path) -> tuple[Path, ...]:
    """List the project's files that the commands in a section of settings may run."""
    commands = tuple(_commands(value))
    tree = _Tree(project)
    if commands:
        texts = [_with_project(text, project) for text in _texts(value)]
        tree.cover_paths(texts)
        tree.cover_named(texts)
        if not all(_is_plain(_with_project(command, project), project) for command in commands):
            tree.cover_runnable()
        tree.follow()
    else:
        tree.cover_paths(_texts(value))
    return tuple(sorted(tree.covered))


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def _commands(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        command, more = value.get("command"), value.get("args")
        if isinstance(command, str):
            words = [str(word) for word in more] if isinstance(more, list) else []
            yield shlex.join([command, *words]) if words else command
    for inner in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from _commands(inner)


def _with_project(text: str, project: Path) -> str:
    for name in PROJECT_VARIABLES:
        text = text.replace(f"${{{name}}}", str(project))
        text = re.sub(rf"\${name}(?!\w)", lambda _: str(project), text)
    return text


def _is_plain(text: str, project: Path) -> bool:
    """Return whether a command is nothing but programs that run the files it names, or none."""
    script = read_script(text)
    if script.doubts or not script.commands:
        return False
    for command in script.commands:
        words = command.words
        if command.assignments or any(not word.is_literal or word.has_glob for word in words):
            return False
        if any(one.operator.startswith("<") for one in command.redirects):
            return False
        is_script = "/" in command.name and (project / command.name).is_file()
        if not is_script and command.name not in _PLAIN:
            return False
        if not is_script and not _RUNNING.isdisjoint(command.arguments):
            return False
    return True


@dataclass(slots=True)
class _Tree:
    """A project's files by name, and those that are covered."""

    project: Path
    covered: set[Path] = field(default_factory=set)
    _by_name: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))
    _runnable: list[Path] = field(default_factory=list)
    _below: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))
    """By the name of each directory above them."""

    def __post_init__(self) -> None:
        count = 0
        for where, directories, files in os.walk(self.project):
            directories[:] = sorted(set(directories) - set(VERSION_CONTROL))
            parts = Path(where).relative_to(self.project).parts
            for name in sorted(files):
                count += 1
                if count > FILES:
                    return
                self._add(Path(where, name), parts)

    def _add(self, path: Path, parts: tuple[str, ...]) -> None:
        for key in {path.name, path.stem}:
            self._by_name[key].append(path)
        for part in parts:
            self._below[part].append(path)
        if _is_runnable(path):
            self._runnable.append(path)

    def cover_paths(self, texts: Iterable[str]) -> None:
        """Cover files whose path from the top is named, also where nothing else is looked for."""
        for text in texts:
            for command in read_script(text).commands:
                found = (
                    self.project / word.text for word in command.words if "\0" not in word.text
                )
                self.covered.update(path for path in found if path.is_file())

    def cover_named(self, texts: list[str]) -> None:
        for text in texts:
            for found in _WORD.findall(text):
                for word in {found, *found.split(".")}:
                    self.covered.update(self._by_name.get(word, ()))
                    self.covered.update(self._below.get(word, ()))

    def cover_runnable(self) -> None:
        self.covered.update(self._runnable)

    def follow(self) -> None:
        """Cover what covered files name: by whole names anywhere, by stems beside them."""
        waiting = sorted(self.covered)
        while waiting:
            path = waiting.pop()
            for word in set(_WORD.findall(_head_of(path))):
                for found in self._by_name.get(word, ()):
                    is_named = found.name == word and (found.suffix or found in self._runnable)
                    if found not in self.covered and (is_named or found.parent == path.parent):
                        self.covered.add(found)
                        waiting.append(found)


def _is_runnable(path: Path) -> bool:
    name = path.name
    if name in _BUILD or name.endswith(_SCRIPTS) or ".config." in name:
        return True
    if name.startswith(".") and "rc" in name:
        return True
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)


def _head_of(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return ""
        with path.open("rb") as file:
            return file.read(TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
