"""`holdfast config`: every setting with its value, source and reason."""

from collections.abc import Iterable, Iterator
from itertools import groupby
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
    for group, members in groupby(settings, lambda setting: setting.name.partition(".")[0]):
        yield f"\n[{group}]"
        for one in members:
            value = f'"{one.value}"' if isinstance(one.value, str) else str(one.value).lower()
            source = "" if one.source == "default" else f"  (from {one.source})"
            yield f"{one.name.partition('.')[2]} = {value}{source}"
            yield f"    # {one.why}"
