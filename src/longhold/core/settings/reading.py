"""All settings by group, read from files and the environment, and checked."""

import dataclasses
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from longhold.core.settings.agent import (
    AgentsSettings,
    GatewaySettings,
    InstructionsSettings,
    LoopSettings,
    PromptSettings,
    ShellSettings,
    TerminalSettings,
)
from longhold.core.settings.files import private_directory, write_private
from longhold.core.settings.memory import (
    DreamSettings,
    HistorySettings,
    LogSettings,
    MemorySettings,
    PageSettings,
)
from longhold.core.settings.model import (
    BudgetSettings,
    CacheSettings,
    CostSettings,
    GaugeSettings,
    ModelSettings,
    StoreSettings,
    TelemetrySettings,
    WindowSettings,
)
from longhold.core.settings.project import UnusableFile, checkout_top, project_root, read_text
from longhold.core.settings.stages import (
    ClearSettings,
    CollapseSettings,
    CompactSettings,
    NotesSettings,
    SpillSettings,
)
from longhold.errors import ConfigError, StoreError

KEY_PARTS = 32
"""Of a dotted key: settings have two, and the parser takes the square of their number."""

_PART = r"""\s*+\.\s*+(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?:{_PART}){{{KEY_PARTS}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a document; raise a `ValueError` for what is none, or is deeper than any of ours."""
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


Value = bool | int | float | str
SettingName = tuple[str, str]
"""A setting's group and key."""

FILE_BYTES = 1 << 20
"""All settings with their reasons are a fiftieth of this."""
LARGEST = 2**53
"""Beyond this a number is a slip, and arithmetic with fractions fails."""

ELSEWHERE = frozenset({"hooks", "permissions", "mcpServers"})
"""Tables of the same files that other modules read and check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    model: ModelSettings = field(default_factory=ModelSettings)
    window: WindowSettings = field(default_factory=WindowSettings)
    gauge: GaugeSettings = field(default_factory=GaugeSettings)
    log: LogSettings = field(default_factory=LogSettings)
    loop: LoopSettings = field(default_factory=LoopSettings)
    shell: ShellSettings = field(default_factory=ShellSettings)
    cost: CostSettings = field(default_factory=CostSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    prompt: PromptSettings = field(default_factory=PromptSettings)
    instructions: InstructionsSettings = field(default_factory=InstructionsSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    spill: SpillSettings = field(default_factory=SpillSettings)
    clear: ClearSettings = field(default_factory=ClearSettings)
    collapse: CollapseSettings = field(default_factory=CollapseSettings)
    history: HistorySettings = field(default_factory=HistorySettings)
    compact: CompactSettings = field(default_factory=CompactSettings)
    notes: NotesSettings = field(default_factory=NotesSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    dream: DreamSettings = field(default_factory=DreamSettings)
    agents: AgentsSettings = field(default_factory=AgentsSettings)
    page: PageSettings = field(default_factory=PageSettings)
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    terminal: TerminalSettings = field(default_factory=TerminalSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSetting:
    """One setting as `longhold config` prints it."""

    name: str
    value: Value
    default: Value
    source: str
    why: str


def home() -> Path:
    """Return where Longhold keeps its files: `LONGHOLD_HOME`, or `.longhold` in the user's home."""
    chosen = os.environ.get("LONGHOLD_HOME")
    try:
        place = Path(chosen).expanduser() if chosen else Path.home() / ".longhold"
    except RuntimeError as error:
        raise ConfigError(f"LONGHOLD_HOME is {chosen!r}: {error}; give a whole path") from error
    _check_owner(place)
    return place


def _check_owner(place: Path) -> None:
    """Refuse a home that others can write to: they would be writing our settings and hooks."""
    try:
        status = place.stat()
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"{place} is not a directory; set LONGHOLD_HOME to one")
    if os.getuid() not in (0, status.st_uid) and status.st_uid != 0:
        raise ConfigError(f"{place} belongs to another user; set LONGHOLD_HOME to one of yours")
    if status.st_mode & stat.S_IWOTH:
        raise ConfigError(
            f"{place} can be written by everybody; chmod o-w it, or set LONGHOLD_HOME"
        )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spec:
    default: Value
    why: str
    low: float | None
    high: float | None
    form: str
    """For text: a regular expression it must match as a whole."""
    personal: bool
    """Only the user may set it: in a cloned repository it could do harm."""


@cache
def _specs() -> dict[SettingName, _Spec]:
    return {
        (group, spec.name): _Spec(**spec.metadata)
        for group, kind in get_type_hints(Settings).items()
        for spec in dataclasses.fields(kind)
    }


def _sources(project: Path | None) -> dict[SettingName, tuple[Value, str]]:
    """Gather the values that are set, each with where it was set last."""
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
    """Read the settings in a file: the user's own, or a project's `within` its checkout."""
    try:
        tables = parse_toml(read_text(file, FILE_BYTES, within=within))
    except (ValueError, UnusableFile) as error:
        raise ConfigError(f"{file}: cannot be read as TOML: {error}; mend or remove it") from error
    known = get_type_hints(Settings)
    for group, table in tables.items():
        if group in ELSEWHERE:
            continue
        if group not in known or not isinstance(table, dict):
            raise ConfigError(f"{file}: no group [{group}]; there are {', '.join(known)}")
        for key, value in table.items():
            if within is not None and (group, key) in _specs() and _specs()[group, key].personal:
                raise ConfigError(
                    f"{file}: {group}.{key} is for the user alone; "
                    f"set it in {home() / 'settings.toml'}"
                )
            yield (group, key), _check_value((group, key), value, str(file))


def _environment(variables: Mapping[str, str]) -> Iterator[tuple[SettingName, tuple[Value, str]]]:
    for group in get_type_hints(Settings):
        prefix = f"LONGHOLD_{group}_".upper()
        for variable in sorted(name for name in variables if name.startswith(prefix)):
            name = (group, variable.removeprefix(prefix).lower())
            like = _specs()[name].default if name in _specs() else ""
            yield (
                name,
                (_check_value(name, _parse_value(variables[variable], like), variable), variable),
            )


def _check_setting(name: SettingName, text: str, where: str, *, is_project: bool) -> Value:
    """Return the value that a text means for a setting, or raise a `ConfigError` that says why not."""
    group, key = name
    if group not in get_type_hints(Settings):
        known = ", ".join(get_type_hints(Settings))
        raise ConfigError(f"no group {group!r}; there are {known}")
    if is_project and name in _specs() and _specs()[name].personal:
        raise ConfigError(f"{group}.{key} is for the user alone; leave out --project")
    like = _specs()[name].default if name in _specs() else ""
    return _check_value(name, _parse_value(text, like), where)


def _parse_value(text: str, like: Value) -> Value:
    """Read a text, as an environment variable has it, as the type its default has."""
    if isinstance(like, bool):
        return {"1": True, "true": True, "0": False, "false": False}.get(text.lower(), text)
    if isinstance(like, int | float):
        try:
            return type(like)(text.replace("_", "").replace(",", ""))
        except ValueError:
            return text
    return text


def _check_value(name: SettingName, value: object, where: str) -> Value:
    group, key = name
    if name not in _specs():
        keys = ", ".join(other for owner, other in _specs() if owner == group)
        raise ConfigError(f"{where}: no setting {group}.{key}; there are {keys}")
    spec = _specs()[name]
    wanted = type(spec.default)
    if wanted is float and type(value) is int:
        value = float(min(value, 2 * LARGEST))
    if type(value) is not wanted:
        raise ConfigError(f"{where}: {group}.{key} must be {wanted.__name__}, not {value!r}")
    if value != value:
        raise ConfigError(f"{where}: {group}.{key} must be a number, not {value!r}")
    if spec.form and not re.fullmatch(spec.form, str(value)):
        raise ConfigError(f"{where}: {group}.{key} is {value!r}; {spec.why}")
    low, high = spec.low, LARGEST if spec.high is None else spec.high
    if isinstance(value, int | float) and not isinstance(value, bool):
        if low is not None and value < low:
            raise ConfigError(f"{where}: {group}.{key} must be at least {low:,}, not {value:,}")
        if value > high:
            raise ConfigError(f"{where}: {group}.{key} must be at most {high:,}, not {value:,}")
    assert isinstance(value, bool | int | float | str)
    return value


def _build(found: Mapping[SettingName, tuple[Value, str]]) -> Settings:
    groups: dict[str, Any] = {
        group: kind(**{key: value for (owner, key), (value, _) in found.items() if owner == group})
        for group, kind in get_type_hints(Settings).items()
    }
    return Settings(**groups)


_HEADER = re.compile(r"\s*\[")


def set_value(file: Path, name: str, text: str, *, is_project: bool = False) -> Value:
    """Write a setting as `group.key` with a value as typed; return the value it has now."""
    group, _, key = name.partition(".")
    value = _check_setting((group, key), text, str(file), is_project=is_project)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    after = _replace_line(before.splitlines(), group, f"{key} = {_toml(value)}")
    try:
        written = tomllib.loads(after)[group][key]
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        written = None
    if written != value:
        raise ConfigError(f"{file}: cannot set {name} without harm; edit the file by hand")
    write_private(file, after)
    return value


def _replace_line(lines: list[str], group: str, line: str) -> str:
    key = line.partition(" =")[0]
    start = next((i for i, each in enumerate(lines) if each.strip() == f"[{group}]"), None)
    if start is None:
        lines = [*lines, *([""] if lines else []), f"[{group}]", line]
        return "\n".join(lines) + "\n"
    end = next((i for i in range(start + 1, len(lines)) if _HEADER.match(lines[i])), len(lines))
    known = re.compile(rf"\s*{re.escape(key)}\s*=")
    place = next((i for i in range(start + 1, end) if known.match(lines[i])), None)
    if place is None:
        return "\n".join([*lines[: start + 1], line, *lines[start + 1 :]]) + "\n"
    return "\n".join([*lines[:place], line, *lines[place + 1 :]]) + "\n"


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
