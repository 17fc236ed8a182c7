"""`holdfast config`: every setting with its value, source and reason."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from holdfast.cli import options
from holdfast.cli.output import report
from holdfast.settings import home, show_settings
from holdfast.settings.reading import ShownSetting


@click.command(epilog="Example: HOLDFAST_WINDOW_AUTO_LINE=80% holdfast config")
@options.as_json
def command(as_json: bool) -> None:
    """List every setting with its value, source and reason.

    Change them in settings.toml in the home directory, in a project's .holdfast/settings.toml,
    or in the environment as HOLDFAST_GROUP_KEY; later ones win.
    """
    settings = show_settings(Path.cwd())
    report(as_json, {"home": str(home()), "settings": settings}, _lines(settings))


def _lines(settings: Iterable[ShownSetting]) -> Iterator[str]:
    yield f"home: {home()}"
    group = ""
    for setting in settings:
        name, _, key = setting.name.partition(".")
        if name != group:
            group = name
            yield f"\n[{group}]"
        value = (
            f'"{setting.value}"' if isinstance(setting.value, str) else str(setting.value).lower()
        )
        source = "" if setting.source == "default" else f"  (from {setting.source})"
        yield f"{key} = {value}{source}"
        yield f"    # {setting.why}"
