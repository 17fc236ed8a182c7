"""Reads sections of settings files (`hooks`, `permissions`, `mcpServers`) and their trust.

A project's sections may run or allow things only once the user has trusted exactly this content.
Their deny rules always apply. The hash covers the section and the project files its commands may
run, and is checked again before a command runs.
"""

import hashlib
import json
import os
import re
import secrets
import shlex
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from longhold.agent.permissions.rules import MODES, Rules, parse_rules
from longhold.core.messages import Json, JsonObject
from longhold.core.settings import Mode, home
from longhold.core.settings.private_files import write_private
from longhold.core.settings.project import UnusableFile, checkout_top, read_text
from longhold.core.settings.reading import parse_toml
from longhold.core.tools.shell_reader import read_script, split_words
from longhold.errors import ConfigError

INSTALLED_FILES = 50_000
"""The limit for covered files of installed packages. The project's own files have no limit."""
LINKED_FILES = 50_000
"""A project whose links lead to more files than this cannot be trusted."""
LINKS_DEEP = 3
"""The limit for links to directories in one path, because two links can lead to each other."""
TEXT_BYTES = 1 << 18
"""A longer file is not searched for names, so all files of the project are covered with it."""
PROJECT_VARIABLES = ("LONGHOLD_PROJECT_DIR", "CLAUDE_PROJECT_DIR")

_WORD = re.compile(r"[\w.+@-]{1,255}")
_PLAIN = split_words("bash cat date echo false jq node perl printf python python3 ruby sh true")
"""Programs that run at most the file they are given."""
_RUNNING = re.compile(
    r"--(?:eval|import|init-file|module|rcfile|require)(?:=.*)?|-\w*[ceimrM].*", re.S
)
"""Options with which those programs run something else."""
_BUILD = split_words(
    ".justfile .lefthook.yml .pre-commit-config.yaml BUILD BUILD.bazel CMakeLists.txt Cargo.toml"
    " Dockerfile GNUmakefile Gemfile Justfile MODULE.bazel Makefile Procfile Rakefile Taskfile.yaml"
    " Taskfile.yml WORKSPACE WORKSPACE.bazel build.gradle build.gradle.kts build.rs compose.yaml"
    " compose.yml conftest.py deno.json deno.jsonc docker-compose.yaml docker-compose.yml dodo.py"
    " fabfile.py go.mod justfile lefthook.yml makefile mise.toml noxfile.py package.json pom.xml"
    " pyproject.toml settings.gradle settings.gradle.kts setup.cfg setup.py sitecustomize.py tasks.py"
    " tox.ini usercustomize.py"
)
_ORDINARY = split_words(
    ".c .cc .cfg .cjs .cpp .cs .css .csv .db .gif .go .gz .h .hpp .html .ico .ini .ipynb .java .jpeg"
    " .jpg .js .json .jsonl .jsx .kt .less .lock .log .md .mjs .pdf .php .png .po .proto .py .pyc .pyi"
    " .rb .rs .rst .scala .scss .sql .svg .swift .toml .ts .tsx .ttf .txt .vue .webp .woff .woff2 .xml"
    " .yaml .yml .zip"
)
"""Suffixes of sources and data. A shell that picks files by a pattern may run any other file."""
_WRAPPERS = split_words("gradlew mvnw")
"""Scripts of a project that run commands from its build files."""
_INSTALLED = split_words("node_modules site-packages .venv venv .tox .nox __pypackages__")
_LOADS = re.compile(
    r"\b(?:import|from|require\w*|include\w*|source|load|use|mod|extends|autoload)\b|^\s*\.\s", re.M
)
"""Lines that load another file by a name without its suffix."""
_RUNNERS = split_words(
    "ant bazel behave bun bundle cargo cmake composer coverage ctest deno docker docker-compose doit"
    " dotnet go gradle gradlew grunt gulp hatch invoke jest just lefthook make mise mocha mvn mvnw"
    " ninja nox npm npx pdm phpunit pnpm poetry pre-commit pytest rake rspec swift task tox uv uvx"
    " vitest yarn"
)
"""Programs that run commands from build files. A file that names one also covers build files."""
_COMPUTED = re.compile(r"([\w.+@-]{1,255}(?:/[\w.+@-]{1,255}){0,30})/[^\s/]{0,255}[*?$\[{]")
"""The directory in a path whose rest is only known when the script runs."""
_PATH = re.compile(r"[\w.+@-]{1,255}(?:(?:/|::|\.)[\w.+@-]{1,255}){1,30}")
_MODULE = re.compile(
    r"(?:\s-[A-Za-z]{0,3}[mM]|\b(?:python[\d.]*|node|deno|bun)\s)\s{0,3}(\w{1,255})"
)
"""A module or directory that is an argument of an interpreter."""
_SCRIPTS = (".Dockerfile", ".bash", ".bat", ".cmd", ".fish", ".mk", ".ps1", ".sh", ".zsh")


def _list_reached(value: Json, project: Path) -> tuple[Path, ...]:
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
    """Return whether a command consists only of `_PLAIN` programs and scripts that it names."""
    script = read_script(text)
    if script.doubts or not script.commands:
        return False
    for command in script.commands:
        words = command.words
        if command.assignments or any(not word.is_literal or word.has_glob for word in words):
            return False
        if any(one.operator.startswith("<") for one in command.redirects):
            return False
        is_script = "/" in command.name and _is_file(project / command.name)
        is_script = is_script and Path(command.name).name not in _WRAPPERS
        if not is_script and command.name not in _PLAIN:
            return False
        if not is_script and any(map(_RUNNING.fullmatch, command.arguments)):
            return False
    return True


@dataclass(slots=True)
class _Tree:
    project: Path
    covered: set[Path] = field(default_factory=set)
    _by_name: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))
    _runnable: set[Path] = field(default_factory=set)
    _below: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))
    _by_full_name: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))
    _beside: dict[tuple[str, str], list[Path]] = field(default_factory=lambda: defaultdict(list))
    _own: dict[tuple[str, ...], set[Path]] = field(default_factory=lambda: defaultdict(set))
    """Files without those of installed packages, by name, by stem and by directory.

    Each key also exists with the directory above it, because a scan of all files of one name for
    every path in a text would take quadratic time.
    """
    _all: set[Path] = field(default_factory=set)
    _oddly_named: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list))
    """Files whose names are not one word, such as `my helper.py`, by the name's longest part."""
    _links: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        installed = islice(self._walk(are_installed=True), INSTALLED_FILES)
        for path in (*self._walk(are_installed=False), *self._walk_links(), *installed):
            self._add(path)

    def _walk(self, *, are_installed: bool) -> Iterator[Path]:
        """List the files, and the links to directories, because a link can be changed."""
        for where, directories, files in os.walk(self.project):
            is_inside = not _INSTALLED.isdisjoint(Path(where).relative_to(self.project).parts)
            skipped = {".git", *(() if are_installed else _INSTALLED)}
            directories[:] = sorted(set(directories) - skipped)
            if is_inside == are_installed:
                links = [path for name in directories if (path := Path(where, name)).is_symlink()]
                self._links += () if are_installed else links
                yield from (Path(where, name) for name in sorted(files))
                yield from links

    def _walk_links(self) -> Iterator[Path]:
        """List the files behind links to directories of the project, under the links' names."""
        project, count = self.project.resolve(), 0
        waiting = [(link, 1) for link in self._links]
        while waiting:
            link, depth = waiting.pop()
            if not Path(os.path.realpath(link)).is_relative_to(project):
                continue
            for where, directories, files in os.walk(link):
                directories[:] = sorted(set(directories) - {".git", *_INSTALLED})
                links = [path for name in directories if (path := Path(where, name)).is_symlink()]
                waiting += [(path, depth + 1) for path in links if depth < LINKS_DEEP]
                count += len(files) + len(directories) + 1
                if count > LINKED_FILES:
                    raise _TooManyLinksError
                yield from (Path(where, name) for name in sorted(files))

    def _add(self, path: Path) -> None:
        parts = path.parent.relative_to(self.project).parts
        is_runnable = _is_runnable(path)
        for key in {path.name, path.stem}:
            self._by_name[key].append(path)
            self._beside[str(path.parent), key].append(path)
        if path.suffix or is_runnable:
            self._by_full_name[path.name].append(path)
        if not _WORD.fullmatch(path.name):
            parts_of_name = re.findall(r"\w+", path.name)
            self._oddly_named[max(parts_of_name, key=len, default="")].append(path)
        for part in parts:
            self._below[part].append(path)
        if _INSTALLED.isdisjoint(parts[:-2]):  # so that the first files of each package count
            self._all.add(path)
            above = path.parts[-3:-1]
            for end in ((*above, path.name), (*above, path.stem), above):
                self._own[end[-1:]].add(path)
                self._own[end[-2:]].add(path)
        if is_runnable:
            self._runnable.add(path)

    def cover_paths(self, texts: Iterable[str]) -> None:
        for text in texts:
            for command in read_script(text).commands:
                found = (self.project / word.text for word in command.words)
                self.covered.update(path for path in found if _is_file(path))

    def cover_named(self, texts: list[str]) -> None:
        for text in texts:
            for found in _find_words(text):
                for word in {found, *found.split(".")}:
                    self.covered.update(self._by_name.get(word, ()))
                    self.covered.update(self._below.get(word, ()))
            self.covered |= self._find_oddly_named(text)

    def cover_runnable(self) -> None:
        self.covered.update(self._runnable)

    def follow(self) -> None:
        """Cover files named in covered files.

        A full name counts anywhere. A stem counts in the same directory, after another directory's
        name, or in a line that loads something.
        """
        waiting = sorted(self.covered)
        while waiting:
            path = waiting.pop()
            for found in self._find_named(path) - self.covered:
                self.covered.add(found)
                waiting.append(found)

    def _find_named(self, path: Path) -> set[Path]:
        text, where = _read_text(path), str(path.parent)
        if text is None:
            found, self._all = self._all, set()  # once is enough
            return found
        found, words = self._find_oddly_named(text), _find_words(text)
        for word in words:
            found.update(self._by_full_name.get(word, ()))
            found.update(self._beside.get((where, word), ()))
        if not _INSTALLED.isdisjoint(path.parts):
            return found  # because packages name each other everywhere
        if _is_script(path, text) and not _RUNNERS.isdisjoint(words):
            found |= self._runnable
        for name in set(_COMPUTED.findall(text)):
            found |= self._find_path(tuple(name.split("/")))
        for name in _MODULE.findall(text):
            found |= self._find_path((name,)) | self._find_path((name, "__main__"))
        for name in set(_PATH.findall(text)):
            found |= self._find_path(tuple(re.split(r"/|::", name)))
            found |= self._find_path(tuple(re.split(r"/|::|\.", name)))
        for line in text.splitlines():
            if _LOADS.search(line):
                for word in set(re.findall(r"\w{1,255}", line)):
                    found |= self._find_path((word,))
        return found

    def _find_oddly_named(self, text: str) -> set[Path]:
        """Find files if all parts of their names occur in a text, in any way of quoting."""
        words = {"", *re.findall(r"\w+", text)}
        candidates = (path for word in words for path in self._oddly_named.get(word, ()))
        return {path for path in candidates if words.issuperset(re.findall(r"\w+", path.name))}

    def _find_path(self, parts: tuple[str, ...]) -> set[Path]:
        """Find files whose path ends with these parts and any suffix, or files in a directory."""
        parts = tuple(part for part in parts if part.strip("."))
        if not parts:
            return set()
        count, last = len(parts), parts[-1]
        return {
            each
            for each in self._own.get(parts[-2:], ())
            if (each.parts[-count:-1] == parts[:-1] and last in (each.name, each.stem))
            or each.parts[-1 - count : -1] == parts
        }


class _TooManyLinksError(Exception):
    pass


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # because the name is too long or contains a null character
        return False


def _find_words(text: str) -> set[str]:
    """Find words, including words joined to an option, as in `python3 -Bmserver`."""
    words = set(_WORD.findall(text))
    joined = (word for word in words if word.startswith("-") and len(word) > 2)
    return words | {word[start:] for word in joined for start in range(2, min(len(word), 6))}


def _is_runnable(path: Path) -> bool:
    name = path.name
    if name in _BUILD or name.endswith(_SCRIPTS) or ".mvn" in path.parts:
        return True
    is_odd = path.suffix.casefold() not in _ORDINARY and _INSTALLED.isdisjoint(path.parts)
    if ".config." in name or ".setup." in name or is_odd:
        return True
    if name.startswith(".") and "rc" in name:
        return True
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)


def _is_script(path: Path, text: str) -> bool:
    return path.name.endswith((*_SCRIPTS, ".js", ".mjs", ".py", ".rb")) or text.startswith("#!")


def _read_text(path: Path) -> str | None:
    """Return a file's text, or None if it is too long to be searched for names."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return ""
        if status.st_size > TEXT_BYTES:
            return None
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


_USER_FILES = ("settings.toml", "settings.json", "hooks.json")
_PROJECT_FILES = (
    ".longhold/settings.toml",
    ".longhold/settings.json",
    ".longhold/hooks.json",
    ".claude/settings.json",
    ".mcp.json",
)
FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsSection:
    file: Path
    value: JsonObject
    fingerprint: str
    is_trusted: bool
    name: str = ""
    project: Path | None = None
    """The project, or None for the user's own files, which are always trusted."""


def read_sections(
    name: str, project: Path | None, *, at: Path | None = None
) -> tuple[SettingsSection, ...]:
    """Read a section from every settings file that has it, the user's files first."""
    base = at or home()
    files: list[tuple[Path, Path | None]] = [(base / file, None) for file in _USER_FILES]
    if project is not None:
        files += [(project / file, project) for file in _PROJECT_FILES]
    return tuple(
        as_section(name, file, value, owner, at=base)
        for file, owner in files
        if file.is_file() and (value := _value(name, file, owner)) is not None
    )


def as_section(
    name: str, file: Path, value: JsonObject, project: Path | None, *, at: Path | None = None
) -> SettingsSection:
    """Check a section's trust. `project` is None for the user's own files."""
    mark = _fingerprint(name, file, value, project) if project is not None else ""
    return SettingsSection(
        file=file,
        value=value,
        fingerprint=mark,
        is_trusted=project is None or mark in load_trusted(at=at),
        name=name,
        project=project,
    )


def load_trusted(*, at: Path | None = None) -> frozenset[str]:
    file = (at or home()) / "trusted.json"
    try:
        return frozenset(msgspec.json.decode(file.read_bytes(), type=list[str]))
    except FileNotFoundError:
        return frozenset()
    except (msgspec.DecodeError, OSError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}; fix or remove it") from error


def trust(section: SettingsSection, *, at: Path | None = None) -> None:
    """Trust a section as it is now. A changed section must be trusted again."""
    vouch(section.fingerprint, at=at)


def vouch(fingerprint: str, *, at: Path | None = None) -> None:
    base = at or home()
    known = load_trusted(at=base) | {fingerprint}
    write_private(base / "trusted.json", msgspec.json.encode(sorted(known)))


def _value(name: str, file: Path, project: Path | None) -> JsonObject | None:
    try:
        text = read_text(file, FILE_BYTES, within=project and checkout_top(project))
        content: Json = parse_toml(text) if file.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError, UnusableFile) as error:
        raise ConfigError(f"{file}: cannot be read: {error}; fix or remove it") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: must contain an object, not {type(content).__name__}")
    value = content.get(name)
    if not isinstance(value, dict | None):
        raise ConfigError(f"{file}: {name} must be an object, not {value!r}")
    return value


def is_unchanged(section: SettingsSection) -> bool:
    if section.project is None:
        return True
    now = _fingerprint(section.name, section.file, section.value, section.project)
    return now == section.fingerprint


def _fingerprint(name: str, file: Path, value: JsonObject, project: Path) -> str:
    digest = hashlib.sha256()
    digest.update(msgspec.json.encode([name, str(file.resolve()), value], order="deterministic"))
    try:
        reached = _list_reached(value, project)
    except _TooManyLinksError:
        return secrets.token_hex()  # which no record of trust contains
    for path in reached:
        digest.update(str(path).encode("utf-8", "surrogateescape") + b"\0" + _hash(path))
    return digest.hexdigest()


def _hash(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return os.fsencode(path.readlink()) if path.is_symlink() else b"not a file"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return b"unreadable"


class _PermissionsSection(Struct, frozen=True, kw_only=True):
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mode: str = msgspec.field(default="", name="defaultMode")
    directories: tuple[str, ...] = msgspec.field(default=(), name="additionalDirectories")


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    rules: Rules
    mode: Mode = "ask"
    directories: tuple[Path, ...] = ()
    untrusted: tuple[SettingsSection, ...] = ()
    """The project's sections that would allow more if they were trusted."""


def load_permissions(project: Path | None, *, at: Path | None = None) -> Permissions:
    allow: list[str] = []
    deny: list[str] = []
    mode: Mode = "ask"
    directories: list[Path] = []
    untrusted: list[SettingsSection] = []
    for section in read_sections("permissions", project, at=at):
        wire = _read_permissions(section)
        deny.extend(wire.deny)
        if not section.is_trusted:
            untrusted.extend([section] if wire.allow or wire.mode or wire.directories else [])
            continue
        allow.extend(wire.allow)
        mode = _mode(wire.mode, section) if wire.mode else mode
        directories.extend(Path(text).expanduser() for text in wire.directories)
    return Permissions(
        rules=parse_rules(allow=tuple(allow), deny=tuple(deny)),
        mode=mode,
        directories=tuple(directories),
        untrusted=tuple(untrusted),
    )


def _read_permissions(section: SettingsSection) -> _PermissionsSection:
    try:
        return msgspec.convert(section.value, _PermissionsSection)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{section.file}: permissions: {error}") from error


def _mode(text: str, section: SettingsSection) -> Mode:
    if text not in MODES:
        raise ConfigError(f"{section.file}: no mode {text!r}; there are {', '.join(MODES)}")
    return MODES[text]
