"""The permission rules that hold in a project, from the `permissions` sections of settings files.

What the user wrote counts. What a project's files forbid counts, too; what they allow counts
only after the user has trusted them.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from holdfast.errors import ConfigError
from holdfast.tools.permissions.decide import Mode
from holdfast.tools.permissions.rules import Rules, parse_rules
from holdfast.tools.permissions.sources import SettingsSection, read_sections

MODES: dict[str, Mode] = {
    "ask": "ask",
    "default": "ask",
    "accept_edits": "accept_edits",
    "acceptEdits": "accept_edits",
    "plan": "plan",
    "bypass": "bypass",
    "bypassPermissions": "bypass",
}
"""Our words for the modes, and those of settings files people already have."""


class _Wire(Struct, frozen=True, kw_only=True):
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
        wire = _read(section)
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


def _read(section: SettingsSection) -> _Wire:
    try:
        return msgspec.convert(section.value, _Wire)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{section.file}: permissions: {error}") from error


def _mode(text: str, section: SettingsSection) -> Mode:
    if text not in MODES:
        raise ConfigError(f"{section.file}: no mode {text!r}; there are {', '.join(MODES)}")
    return MODES[text]
