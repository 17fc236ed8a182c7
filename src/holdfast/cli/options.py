"""Options and arguments that several commands share."""

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
target = click.argument("target")
session = click.argument("session")
base_url = click.option("--base-url", default="", help="Address of the provider's API.")
