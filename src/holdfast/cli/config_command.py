"""`holdfast config`: every setting, its value, where it comes from and why it is what it is."""

from pathlib import Path

import click

from holdfast.cli.show import json_out
from holdfast.settings import home, show_settings


@click.command(epilog="Example: HOLDFAST_WINDOW_AUTO_LINE=80% holdfast config")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(as_json: bool) -> None:
    """Show every setting, its value, its source and its reason.

    Set them in settings.toml in the home directory, in .holdfast/settings.toml of a project,
    or in the environment as HOLDFAST_GROUP_KEY; later ones win.
    """
    shown = show_settings(Path.cwd())
    if as_json:
        json_out({"home": str(home()), "settings": shown})
        return
    click.echo(f"home: {home()}")
    group = ""
    for setting in shown:
        name, _, key = setting.name.partition(".")
        if name != group:
            group = name
            click.echo(f"\n[{group}]")
        value = (
            f'"{setting.value}"' if isinstance(setting.value, str) else str(setting.value).lower()
        )
        source = "" if setting.source == "default" else f"  (from {setting.source})"
        click.echo(f"{key} = {value}{source}")
        click.echo(f"    # {setting.why}")
