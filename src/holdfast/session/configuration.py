"""How a program set its session up, kept in its log: a resumed session is what it was.

What the program said is kept: window, output limit, dialect, settings, declared tools. What files
say is read anew. Values given on resume count from then on, by a new entry.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from holdfast.log import OpenLog
from holdfast.log.entries import Configured
from holdfast.messages import Json
from holdfast.settings import Settings, load_settings

Differences = dict[str, dict[str, Json]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a program says when it opens or resumes a session; None leaves it as it was."""

    dialect: str | None = None
    max_tokens: int | None = None
    window: int | None = None
    settings: Settings | None = None
    history: bool | None = None
    paths: bool | None = None
    memory: bool | None = None


def configured(before: Configured | None, wishes: Wishes) -> Configured:
    """Return a session's configuration with what the program says now."""
    entry = structs.replace(before or Configured(), n=0, at=0.0, why="")
    given: dict[str, Any] = {
        name: value
        for name in ("dialect", "max_tokens", "history", "memory", "paths")
        if (value := getattr(wishes, name)) is not None
    }
    said = entry.settings
    if wishes.settings is not None:
        said = differences(wishes.settings)
    if wishes.window is not None:
        said = with_window(said, wishes.window)
    return structs.replace(entry, **given, settings=said)


def with_window(said: Differences, window_tokens: int) -> Differences:
    """Set the window; 0 asks the model table again."""
    group = {k: v for k, v in said.get("window", {}).items() if k != "limit_tokens"}
    group |= {"limit_tokens": window_tokens} if window_tokens else {}
    rest = {name: values for name, values in said.items() if name != "window"}
    return rest | ({"window": group} if group else {})


def differences(settings: Settings) -> Differences:
    """Return what in settings is not the default, by group and key."""
    default, given = asdict(Settings()), asdict(settings)
    changed = {
        group: {key: value for key, value in values.items() if value != default[group][key]}
        for group, values in given.items()
    }
    return {group: values for group, values in changed.items() if values}


def settings_of(log: OpenLog) -> Settings:
    """Return the settings of a session that was opened before: its files', and what was said."""
    found = [entry for entry in log.entries if isinstance(entry, Configured)]
    base = load_settings(Path(log.header.directory or "."))
    return overlaid(base, found[-1].settings if found else {})


def overlaid(base: Settings, said: Mapping[str, Mapping[str, Json]]) -> Settings:
    """Put what a program said over what files say; a name this version does not have is ignored."""
    groups: dict[str, Any] = {}
    for group, values in said.items():
        current = getattr(base, group, None)
        if current is None:
            continue
        known = {field.name for field in fields(current)}
        groups[group] = replace(current, **{k: v for k, v in values.items() if k in known})
    return replace(base, **groups)
