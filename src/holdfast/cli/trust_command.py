"""`holdfast trust`: look at what a project wants to run or allow, and vouch for it."""

from pathlib import Path

import click
import msgspec

from holdfast.agents.catalogue import load_definitions
from holdfast.cli.show import json_out
from holdfast.permissions import read_sections, trust

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
    if as_json:
        json_out([{"kind": kind, "file": str(s.file), "value": s.value} for kind, s in waiting])
        return
    if not waiting:
        click.echo("There is nothing here that waits for your word.")
    for kind, section in waiting:
        click.echo(f"{section.file} brings {kind}:")
        click.echo(msgspec.json.format(msgspec.json.encode(section.value), indent=2).decode())
        if yes or click.confirm("Trust it as it stands?"):
            trust(section)
            click.echo("Trusted.")
