"""Read all settings from files and the environment, and validate them."""

import dataclasses
import difflib
import os
import re
import stat
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from longhold.core.settings import groups
from longhold.core.settings.private_files import private_directory, write_private
from longhold.core.settings.project import UnusableFile, checkout_top, project_root, read_text
from longhold.core.settings.setting import SettingSpec, Value
from longhold.errors import ConfigError, StoreError

KEY_PARTS = 32
"""Limit for the parts of a dotted key, because parsing takes quadratic time."""

_PART = r"""\.\s*+(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
# The pattern begins with a dot. With leading space, a search would take quadratic time.
_LONG_KEY = re.compile(rf"{_PART}(?:\s*+{_PART}){{{KEY_PARTS - 1}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML. Raise `ValueError` if it is invalid or nested too deeply."""
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


SettingName = tuple[str, str]
"""The group and key of a setting."""

FILE_BYTES = 1 << 20
"""The size limit of a settings file, fifty times the size of all settings with descriptions."""
LARGEST = 2**53
"""Larger numbers are typing errors and would break float arithmetic."""

ELSEWHERE = frozenset({"hooks", "permissions", "mcpServers"})
"""Tables in the same files that other modules read and check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    model: groups.ModelSettings = field(default_factory=groups.ModelSettings)
    window: groups.WindowSettings = field(default_factory=groups.WindowSettings)
    gauge: groups.GaugeSettings = field(default_factory=groups.GaugeSettings)
    log: groups.LogSettings = field(default_factory=groups.LogSettings)
    loop: groups.LoopSettings = field(default_factory=groups.LoopSettings)
    shell: groups.ShellSettings = field(default_factory=groups.ShellSettings)
    cost: groups.CostSettings = field(default_factory=groups.CostSettings)
    budget: groups.BudgetSettings = field(default_factory=groups.BudgetSettings)
    prompt: groups.PromptSettings = field(default_factory=groups.PromptSettings)
    instructions: groups.InstructionsSettings = field(default_factory=groups.InstructionsSettings)
    cache: groups.CacheSettings = field(default_factory=groups.CacheSettings)
    spill: groups.SpillSettings = field(default_factory=groups.SpillSettings)
    clear: groups.ClearSettings = field(default_factory=groups.ClearSettings)
    collapse: groups.CollapseSettings = field(default_factory=groups.CollapseSettings)
    compact: groups.CompactSettings = field(default_factory=groups.CompactSettings)
    notes: groups.NotesSettings = field(default_factory=groups.NotesSettings)
    memory: groups.MemorySettings = field(default_factory=groups.MemorySettings)
    dream: groups.DreamSettings = field(default_factory=groups.DreamSettings)
    agents: groups.AgentsSettings = field(default_factory=groups.AgentsSettings)
    page: groups.PageSettings = field(default_factory=groups.PageSettings)
    gateway: groups.GatewaySettings = field(default_factory=groups.GatewaySettings)
    store: groups.StoreSettings = field(default_factory=groups.StoreSettings)
    telemetry: groups.TelemetrySettings = field(default_factory=groups.TelemetrySettings)
    terminal: groups.TerminalSettings = field(default_factory=groups.TerminalSettings)
    plugins: groups.PluginsSettings = field(default_factory=groups.PluginsSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSetting:
    name: str
    value: Value
    default: Value
    source: str
    why: str


def user_home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise ConfigError(
            "HOME is not set and the user has no passwd entry; set HOME to a directory"
        ) from error


def home() -> Path:
    """Return the directory for Longhold's files: `LONGHOLD_HOME` or `~/.longhold`."""
    chosen = os.environ.get("LONGHOLD_HOME")
    try:
        place = Path(chosen).expanduser() if chosen else user_home() / ".longhold"
    except RuntimeError as error:
        raise ConfigError(f"LONGHOLD_HOME is {chosen!r}: {error}; give an absolute path") from error
    _check_owner(place)
    return place


def _check_owner(place: Path) -> None:
    """Reject a home directory that others can write to, because they could change settings."""
    try:
        status = place.stat()
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"{place} is not a directory; set LONGHOLD_HOME to one")
    if sys.platform == "win32":  # Windows reports neither owners nor permissions
        return
    if os.getuid() not in (0, status.st_uid) and status.st_uid != 0:
        raise ConfigError(f"{place} belongs to another user; set LONGHOLD_HOME to yours")
    is_private_group = status.st_gid == os.getgid() and os.getgid() == os.getuid()
    if status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and not is_private_group):
        raise ConfigError(f"{place} is writable by others; run chmod go-w, or set LONGHOLD_HOME")


def load_settings(project: Path | None = None) -> Settings:
    return _build(_sources(project))


def show_settings(project: Path | None = None) -> list[ShownSetting]:
    found = _sources(project)
    settings = _build(found)
    return [
        ShownSetting(
            name=f"{group}.{key}",
            value=getattr(getattr(settings, group), key),
            default=spec.default,
            source=found.get((group, key), (None, "default"))[1],
            why=spec.why,
        )
        for (group, key), spec in _specs().items()
    ]


@cache
def _groups() -> dict[str, Any]:
    return get_type_hints(Settings)


@cache
def _specs() -> dict[SettingName, SettingSpec]:
    return {
        (group, one.name): one.metadata["spec"]
        for group, kind in _groups().items()
        for one in dataclasses.fields(kind)
    }


def _sources(project: Path | None) -> dict[SettingName, tuple[Value, str]]:
    files = [home() / "settings.toml"]
    if project is not None:
        places = dict.fromkeys((project_root(project), project.resolve()))
        files += [place / ".longhold" / "settings.toml" for place in places]
    found: dict[SettingName, tuple[Value, str]] = {}
    for file in files:
        if file.is_file():
            within = None if file == files[0] else checkout_top(file.parent.parent)
            found |= {name: (value, str(file)) for name, value in _read_toml(file, within)}
    return found | dict(_environment(os.environ))


def _read_toml(file: Path, within: Path | None) -> Iterator[tuple[SettingName, Value]]:
    """Read settings from the user's file, or from a project's file if `within` is its checkout."""
    try:
        tables = parse_toml(read_text(file, FILE_BYTES, within=within))
    except (ValueError, UnusableFile) as error:
        raise ConfigError(
            f"{file}: this cannot be read as TOML: {error}; fix or remove it"
        ) from error
    for group, table in tables.items():
        if group in ELSEWHERE:
            continue
        if group not in _groups() or not isinstance(table, dict):
            raise _unknown_group(group, str(file))
        for key, value in table.items():
            name = (group, key)
            yield name, _check_value(name, value, str(file), is_project=within is not None)


def _environment(variables: Mapping[str, str]) -> Iterator[tuple[SettingName, tuple[Value, str]]]:
    for group in _groups():
        prefix = f"LONGHOLD_{group}_".upper()
        for variable in sorted(name for name in variables if name.startswith(prefix)):
            name = (group, variable.removeprefix(prefix).lower())
            value = _check_value(name, _parse_value(name, variables[variable]), variable)
            yield name, (value, variable)


def _parse_value(name: SettingName, text: str) -> Value:
    like = _specs()[name].default if name in _specs() else ""
    if isinstance(like, bool):
        return {"1": True, "true": True, "0": False, "false": False}.get(text.lower(), text)
    if isinstance(like, int | float):
        try:
            return type(like)(text.replace("_", "").replace(",", ""))
        except ValueError:
            return text
    return text


def _check_value(
    name: SettingName, value: object, where: str, *, is_project: bool = False
) -> Value:
    group, key = name
    if name not in _specs():
        raise ConfigError(f"{where}: {_explain_unknown(group, key)}")
    spec, said = _specs()[name], f"{where}: {group}.{key}"
    if is_project and spec.is_personal:
        raise ConfigError(f"{said} can only be set by the user, in {home() / 'settings.toml'}")
    wanted = type(spec.default)
    if wanted is float and type(value) is int:
        value = float(min(value, 2 * LARGEST))
    if type(value) is not wanted:
        raise ConfigError(f"{said} must be {wanted.__name__}, not {value!r}")
    if value != value:
        raise ConfigError(f"{said} must be a number, not {value!r}")
    if spec.form and not re.fullmatch(spec.form, str(value)):
        raise ConfigError(f"{said} is {value!r}; {spec.why}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = spec.low, LARGEST if spec.high is None else spec.high
        if low is not None and value < low:
            raise ConfigError(f"{said} must be at least {low:,}, not {value:,}")
        if value > high:
            raise ConfigError(f"{said} must be at most {high:,}, not {value:,}")
    assert isinstance(value, Value)
    return value


def _unknown_group(group: str, where: str) -> ConfigError:
    known = list(_groups())
    there = f"there are {', '.join(known)}"
    return ConfigError(f"{where}: there is no group [{group}]; {there}{_suggest(group, known)}")


def _explain_unknown(group: str, key: str) -> str:
    keys = [other for owner, other in _specs() if owner == group]
    names = [".".join(name) for name in _specs()]
    there = f"there are {', '.join(keys)}"
    return f"no setting {group}.{key}; {there}{_suggest(f'{group}.{key}', names)}"


def _suggest(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _build(found: Mapping[SettingName, tuple[Value, str]]) -> Settings:
    given: dict[str, dict[str, Any]] = {group: {} for group in _groups()}
    for (group, key), (value, _) in found.items():
        given[group][key] = value
    return Settings(**{group: kind(**given[group]) for group, kind in _groups().items()})


_HEADER = re.compile(r"\s*\[")


def set_value(file: Path, name: str, text: str, *, is_project: bool = False) -> Value:
    group, _, key = name.partition(".")
    if group not in _groups():
        raise _unknown_group(group, str(file))
    typed = _parse_value((group, key), text)
    value = _check_value((group, key), typed, str(file), is_project=is_project)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    after = _replace_line(before.splitlines(), group, f"{key} = {_toml(value)}")
    try:
        written = tomllib.loads(after)[group][key]
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        written = None
    if written != value:
        raise ConfigError(f"{file}: {name} cannot be changed safely; edit the file by hand")
    write_private(file, after)
    return value


def _replace_line(lines: list[str], group: str, line: str) -> str:
    key = line.partition(" =")[0]
    start = next((i for i, each in enumerate(lines) if each.strip() == f"[{group}]"), None)
    if start is None:
        lines = [*lines, *([""] if lines else []), f"[{group}]"]
        start = len(lines) - 1
    end = next((i for i in range(start + 1, len(lines)) if _HEADER.match(lines[i])), len(lines))
    known = re.compile(rf"\s*{re.escape(key)}\s*=")
    place = next((i for i in range(start + 1, end) if known.match(lines[i])), None)
    before, after = (start + 1, start + 1) if place is None else (place, place + 1)
    return "\n".join([*lines[:before], line, *lines[after:]]) + "\n"


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = "".join(
            char if char.isprintable() and char not in '"\\' else f"\\U{ord(char):08x}"
            for char in value
        )
        return f'"{escaped}"'
    return repr(value)


FILE = "keys.json"
ANTHROPIC, OPENAI = "ANTHROPIC_API_KEY", "OPENAI_API_KEY"


def saved_key(name: str) -> str | None:
    return _read().get(name) or None


def save_key(name: str, key: str) -> None:
    place = private_directory(home()) / FILE
    write_private(place, msgspec.json.encode(_read() | {name: key}).decode())


def _read() -> dict[str, str]:
    place = home() / FILE
    try:
        return msgspec.json.decode(place.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"{place}: {error}; correct or remove it") from error
