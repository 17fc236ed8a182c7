"""Options and arguments that several commands share."""

from functools import partial

import click


def message_number(value: object) -> int:
    from longhold.core.tools.history.catalogue import number_in  # imported late for a quick start

    n = number_in(str(value))
    if n is None:
        raise click.BadParameter(f"{value!r} is not a message number; give one such as 12")
    return n


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
target = click.argument("target", default="newest")
session = click.argument("session", default="newest")
base_url = click.option("--base-url", default="", help="Address of the provider's API.")
host = partial(click.option, "--host", default="127.0.0.1", show_default=True)
port = partial(
    click.option,
    "--port",
    type=click.IntRange(0, 65_535),
    show_default=True,
    help="0 picks a free port.",
)
