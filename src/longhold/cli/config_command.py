"""`longhold config`: list, look up, search and set settings."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import report
from longhold.core.settings import home, show_settings
from longhold.core.settings.project import project_root
from longhold.core.settings.reading import ShownSetting, set_value
from longhold.core.settings.setting import Value
from longhold.errors import ConfigError


@click.group(
    invoke_without_command=True, epilog="Example: longhold config set window.auto_line 80%"
)
@options.as_json
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List every setting with its value, source and reason.

    Change a setting with `config set`, in settings.toml in the home directory, in a project's
    .longhold/settings.toml, or in the environment as LONGHOLD_GROUP_KEY. Later places in this list
    take precedence.
    """
    if context.invoked_subcommand is None:
        _report(show_settings(Path.cwd()), as_json)


@command.command()
@click.argument("name")
@options.as_json
def get(name: str, as_json: bool) -> None:
    """Show one setting, or all settings of a group."""
    settings = show_settings(Path.cwd())
    found = [one for one in settings if one.name == name or one.name.startswith(f"{name}.")]
    if not found:
        raise ConfigError(f"there is no setting {name!r}; `longhold config` lists all")
    _report(found, as_json)


@command.command("set")
@click.argument("name")
@click.argument("value")
@click.option("--project", "is_project", is_flag=True, help="Set the value for this project only.")
@options.as_json
def set_command(name: str, value: str, is_project: bool, as_json: bool) -> None:
    """Set NAME (group.key) to VALUE in your settings, or in the project's."""
    place = project_root(Path.cwd()) / ".longhold" if is_project else home()
    file = place / "settings.toml"
    if is_project and (linked := next((at for at in (place, file) if at.is_symlink()), None)):
        raise ConfigError(f"{linked} is a link, which a clone may bring; remove it and try again")
    written = set_value(file, name, value, is_project=is_project)
    lines = [f"{name} = {_format_value(written)}, in {file}"]
    (now,) = (one for one in show_settings(Path.cwd()) if one.name == name)
    if now.value != written:
        lines.append(f"but {_format_value(now.value)} is in force, from {now.source}")
    report(as_json, {"name": name, "value": written, "file": str(file), "now": now.value}, lines)


def _report(settings: list[ShownSetting], as_json: bool) -> None:
    report(as_json, {"home": str(home()), "settings": settings}, _lines(settings))


def _lines(settings: Iterable[ShownSetting]) -> Iterator[str]:
    yield f"home: {home()}"
    for group, members in groupby(settings, lambda setting: setting.name.partition(".")[0]):
        yield f"\n[{group}]"
        for one in members:
            source = "" if one.source == "default" else f"  (from {one.source})"
            yield f"{one.name.partition('.')[2]} = {_format_value(one.value)}{source}"
            yield f"    # {one.why}"


def _format_value(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
