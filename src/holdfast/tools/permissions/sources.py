"""Sections of settings files (`hooks`, `permissions`, `mcpServers`), and which are trusted.

Files in the user's home are the user's own. Files of a project came with the project, so what
they would run or allow counts only once the user has trusted exactly this content (what they
forbid counts always): the hash covers the section and the project's own files that its commands
may run (see `reach`). It is taken again right before a command runs.
"""

import hashlib
import json
import stat
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from holdfast.errors import ConfigError
from holdfast.messages import Json, JsonObject
from holdfast.settings import home
from holdfast.settings.files import write_private
from holdfast.settings.project import checkout_top
from holdfast.settings.project_files import UnusableFile, read_text
from holdfast.settings.toml import parse_toml
from holdfast.tools.permissions.decide import MODES, Mode
from holdfast.tools.permissions.reach import reached_files
from holdfast.tools.permissions.rules import Rules, parse_rules

_USER_FILES = ("settings.toml", "settings.json", "hooks.json")
_PROJECT_FILES = (
    ".holdfast/settings.toml",
    ".holdfast/settings.json",
    ".holdfast/hooks.json",
    ".claude/settings.json",
    ".mcp.json",
)
FILE_BYTES = 1 << 20
"""A larger settings file is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsSection:
    file: Path
    value: JsonObject
    fingerprint: str
    is_trusted: bool
    name: str = ""
    project: Path | None = None
    """None for a file of the user's own."""


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
    """Check a section against what is trusted; `project` is None for a file of the user's own."""
    mark = _fingerprint(name, file, value, project) if project is not None else ""
    return SettingsSection(
        file=file,
        value=value,
        fingerprint=mark,
        is_trusted=project is None or mark in trusted(at=at),
        name=name,
        project=project,
    )


def trusted(*, at: Path | None = None) -> frozenset[str]:
    """Return the fingerprints the user has vouched for."""
    file = (at or home()) / "trusted.json"
    try:
        return frozenset(msgspec.json.decode(file.read_bytes(), type=list[str]))
    except FileNotFoundError:
        return frozenset()
    except (msgspec.DecodeError, OSError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}; mend or remove it") from error


def trust(section: SettingsSection, *, at: Path | None = None) -> None:
    """Trust a section as it is now; a change to it asks anew."""
    vouch(section.fingerprint, at=at)


def vouch(fingerprint: str, *, at: Path | None = None) -> None:
    base = at or home()
    known = trusted(at=base) | {fingerprint}
    write_private(base / "trusted.json", msgspec.json.encode(sorted(known)))


def _value(name: str, file: Path, project: Path | None) -> JsonObject | None:
    try:
        text = read_text(file, FILE_BYTES, within=project and checkout_top(project))
        content: Json = parse_toml(text) if file.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError, UnusableFile) as error:
        raise ConfigError(f"{file}: cannot be read: {error}; mend or remove it") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{file}: must hold an object, not {type(content).__name__}")
    value = content.get(name)
    if not isinstance(value, dict | None):
        raise ConfigError(f"{file}: {name} must be an object, not {value!r}")
    return value


def is_unchanged(section: SettingsSection) -> bool:
    """Return whether what a trusted section may run is still what the user trusted."""
    if section.project is None:
        return True
    now = _fingerprint(section.name, section.file, section.value, section.project)
    return now == section.fingerprint


def _fingerprint(name: str, file: Path, value: JsonObject, project: Path) -> str:
    """Hash a section together with its location and the project's files it may run."""
    digest = hashlib.sha256()
    digest.update(msgspec.json.encode([name, str(file.resolve()), value], order="deterministic"))
    for path in reached_files(value, project):
        digest.update(str(path).encode("utf-8", "surrogateescape") + b"\0" + _hash(path))
    return digest.hexdigest()


def _hash(path: Path) -> bytes:
    """Hash a file's content, or say that it has none that could run."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return b"not a file"
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
    """Working directories besides the project's own."""
    untrusted: tuple[SettingsSection, ...] = ()
    """Sections of the project that would allow more, were they trusted."""


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
