"""Change one setting in a settings file; everything else in it stays as it was written."""

import re
import tomllib
from pathlib import Path

from holdfast.errors import ConfigError
from holdfast.settings.files import write_private
from holdfast.settings.reading import Value, check_setting

_HEADER = re.compile(r"\s*\[")


def set_value(file: Path, name: str, text: str, *, is_project: bool = False) -> Value:
    """Write a setting as `group.key` with a value as typed; return the value it has now."""
    group, _, key = name.partition(".")
    value = check_setting((group, key), text, str(file), is_project=is_project)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    after = _changed(before.splitlines(), group, f"{key} = {_toml(value)}")
    try:
        written = tomllib.loads(after)[group][key]
    except (tomllib.TOMLDecodeError, KeyError, TypeError):
        written = None
    if written != value:
        raise ConfigError(f"{file}: cannot set {name} without harm; edit the file by hand")
    write_private(file, after)
    return value


def _changed(lines: list[str], group: str, line: str) -> str:
    """Replace the line of a key in its table, or put it there."""
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
