"""`holdfast trust`: look at what a project wants to run or allow, and vouch for it."""

from pathlib import Path

import click
import msgspec

from holdfast.agent.subagents.catalogue import load_definitions
from holdfast.cli.show import json_out, plain
from holdfast.request.instructions import Waiting, ground, imports_waiting
from holdfast.settings import load_settings
from holdfast.tools.permissions import read_sections, trust, trusted, vouch

KINDS = ("hooks", "permissions", "mcpServers")


@click.command(epilog="Example: holdfast trust")
@click.option("--yes", is_flag=True, help="Vouch for everything shown without asking.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print what is not trusted as JSON, and ask nothing."
)
def command(yes: bool, as_json: bool) -> None:
    """Show the hooks, rules, servers and agents this project brings, and vouch for them one by one.

    Nothing of them is used before. A change to any of them asks anew.
    """
    waiting = [
        (kind, section)
        for kind in KINDS
        for section in read_sections(kind, Path.cwd())
        if not section.is_trusted
    ]
    waiting += [("agents", section) for section in load_definitions(Path.cwd()).untrusted]
    imports = _imports(Path.cwd())
    if as_json:
        shown = [{"kind": kind, "file": str(s.file), "value": s.value} for kind, s in waiting]
        for one in imports:
            shown.append({"kind": "import", "file": str(one.importer), "value": str(one.path)})
        json_out(shown)
        return
    if not waiting and not imports:
        click.echo("There is nothing here that waits for your word.")
    for kind, section in waiting:
        click.echo(f"{section.file} brings {kind}:")
        click.echo(msgspec.json.format(msgspec.json.encode(section.value), indent=2).decode())
        if yes or click.confirm("Trust it as it stands?"):
            trust(section)
            click.echo("Trusted.")
    for one in imports:
        click.echo(f"{plain(str(one.importer))} would bring in {plain(str(one.path))}")
        if yes or click.confirm("Trust it, whatever the file says then?"):
            vouch(one.fingerprint)
            click.echo("Trusted.")


def _imports(directory: Path) -> tuple[Waiting, ...]:
    """Find the imports that wait for the user's word, further down in the project as well."""
    place = ground(directory, settings=load_settings(directory).instructions)
    return imports_waiting(place, trusted=trusted())
